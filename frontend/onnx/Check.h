// `titan-compile --check`: what is unsupported, names and shapes, without compiling; and the
// coverage table of the importer.
#pragma once

#include "frontend/onnx/Import.h"

namespace titan::frontend {

struct CheckReport {
  bool importable = false; ///< the importer takes the model with this recipe
  std::string text;        ///< the report, as printed
};

/// Reads, names and imports `path`. An unreadable file is an error; a model that cannot be imported
/// is a report that says why.
Result<CheckReport> checkModel(mlir::MLIRContext& context, const std::string& path,
                               const Recipe& recipe, const ImportOptions& options);

/// One line per op that can be imported: op, first opset, restrictions. Markdown.
std::string coverageTable();

} // namespace titan::frontend
