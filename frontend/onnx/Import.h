// Public entry of the importer: an ONNX file becomes one module with a `titan.state` per parameter
// and buffer and one function `@model` (states, then inputs) -> outputs, of static shapes.
#pragma once

#include "frontend/onnx/name/Names.h"
#include "runtime/program/Recipe.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <functional>

namespace titan::frontend {

struct ImportOptions {
  std::string weightsDirectory; ///< --weights-dir; empty: beside the model
  std::string namesFile;        ///< --names; empty: recipe.model.names
  bool strictNames = false;     ///< --strict-names: refuse what is not exactly the source's
  /// Gets the manager of the raise passes before they run.
  std::function<void(mlir::PassManager&)> instrument;
};

/// What an import found out, for `--check` and for notes to the user.
struct ImportReport {
  std::vector<std::string> notes;
};

/// Imports `path`. The batch dimension of the inputs becomes `recipe.batch.micro`, symbolic
/// dimensions are bound by `recipe.model.dims`. Errors (BadInput) list every node that is not
/// supported.
Result<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(mlir::MLIRContext& context,
                                                     const std::string& path, const Recipe& recipe,
                                                     const ImportOptions& options,
                                                     ImportReport& report);

/// The same for a graph that was read before, with names that were found before. `instrument` gets
/// the manager of the raise passes before they run.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
importGraph(mlir::MLIRContext& context, const Graph& graph, const NameTable& names,
            const Recipe& recipe, const std::function<void(mlir::PassManager&)>& instrument = {});

/// Reads `path` for `recipe`: with `model.init = "fresh"` masks without data are made up.
Result<Graph> readModel(const std::string& path, const Recipe& recipe,
                        const ImportOptions& options);

/// What the user should know of a model, a line each, a cause once: `--check` and a compilation
/// print the same.
std::vector<std::string> notesOf(const Graph& graph, const NameTable& names, const Recipe& recipe);
/// The same of an imported module: sources of random numbers, which draw in evaluation too, and
/// look-ups at computed indices.
std::vector<std::string> notesOfModule(mlir::ModuleOp module);

/// The names file that `options` or `recipe` name, or no overrides.
Result<NameOverrides> nameOverrides(const Recipe& recipe, const ImportOptions& options);

} // namespace titan::frontend
