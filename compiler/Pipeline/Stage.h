// The stages of the compiler, in order, and the module attribute that records how far a printed
// module has come.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <span>
#include <string_view>

namespace titan {

enum class Stage {
  Import,
  Differentiate,
  Optimize,
  Accumulate,
  Shard,
  Schedule,
  Lower,
  Plan,
  Codegen
};

/// "import", "differentiate", ...: the names that `--emit` takes.
std::string_view stageName(Stage stage);
std::optional<Stage> parseStage(std::string_view name);
std::span<const Stage> allStages();

/// The last stage that `module` went through (`titan.stage`); a module without the attribute is an
/// import.
mlir::FailureOr<Stage> getStage(mlir::ModuleOp module);
void setStage(mlir::ModuleOp module, Stage stage);

} // namespace titan
