// `titan-compile --check`: the account of a model, its inputs and outputs, and what is unsupported,
// without compiling; and the coverage table of the importer.
#pragma once

#include "frontend/onnx/Import.h"

namespace titan::frontend {

struct CheckReport {
  Graph graph;
  NameTable names;
  std::vector<std::string> notes;
  int64_t microbatch = 0;    ///< of the recipe
  bool trainingMode = false; ///< model.mode = "train"
  std::string error;         ///< why the model cannot be imported with the recipe; empty: it can
};

/// Reads, names and imports `path`. An unreadable file is an error; a model that cannot be imported
/// is a report that says why.
Result<CheckReport> checkModel(mlir::MLIRContext& context, const std::string& path,
                               const Recipe& recipe, const ImportOptions& options);

/// For people: ports, tensors by kind, the form of each norm of the batch, notes; the account's
/// counts are the last line.
std::string toText(const CheckReport& report);
/// For programs, one object:
///   {"model", "producer", "importable", "error": null or text, "notes": [text],
///    "counts": {"exact": 40, "alias": 2, ...},
///    "tensors": [{"standing": "exact", "name", "kind": "parameter" | "buffer" | "constant",
///                 "dtype", "shape": [...], "initializers": [...], "of": [...],
///                 "proof": null or text, "noted": false}],
///    "batch_norms": [{"node", "module", "form": "batch" | "fixed" | "folded"}]}
/// An alias has no initializers, what is absent neither these nor dtype and shape. `of` names the
/// exact one of an alias, and the parameters that a part stands for, as far as they are known.
std::string toJson(const CheckReport& report);

/// One line per op that can be imported: op, first opset, restrictions. Markdown.
std::string coverageTable();

} // namespace titan::frontend
