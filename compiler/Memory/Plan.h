// The memory plan of a module, as codegen reads it.
#pragma once

#include "compiler/Memory/Liveness.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace titan::memory {

struct StatePlan {
  ir::StateOp state;
  int64_t offset = 0, bytes = 0;
  bool isOnHost = false; ///< in the host's memory, away from the card
};

/// Bytes of `value`, row-major, copied to `offset` when the job starts.
struct ConstantPlan {
  mlir::ElementsAttr value;
  int64_t offset = 0, bytes = 0;
};

enum class BindingRole { Input, Control, Metric, Output };

/// An argument that the caller fills before a call (input, control) or reads after it (metric,
/// output).
struct BindingPlan {
  mlir::BlockArgument argument;
  BindingRole role = BindingRole::Input;
  llvm::StringRef name;
  int64_t offset = 0, bytes = 0;
};

struct TemporaryPlan {
  kernel::BufferOp buffer;
  int64_t offset = 0, bytes = 0;
  LiveRange live; ///< positions in `commands`
};

struct FunctionPlan {
  mlir::func::FuncOp function;
  llvm::SmallVector<Command> commands;
  std::vector<BindingPlan> bindings;
  std::vector<TemporaryPlan> temporaries;
  /// The largest sum of live temporaries, each rounded up to the arena's alignment.
  int64_t maxLiveBytes = 0;
};

struct ModulePlan {
  std::vector<StatePlan> states;
  std::vector<ConstantPlan> constants;
  std::vector<FunctionPlan> functions;
  // The arena: [states | constants | bindings | staging | temporaries]; the sizes are those of the
  // regions, padding included. Outputs lie among the temporaries, sources of collectives in
  // staging.
  int64_t arenaBytes = 0, stateBytes = 0, constantBytes = 0, bindingBytes = 0, temporaryBytes = 0;
  int64_t stagingOffset = 0, stagingBytes = 0; ///< 0 and 0 where there is none
  int64_t hostBytes = 0;                       ///< of the states that a card leaves to the host
  int64_t alignment = 0;                       ///< of offsets and sizes, bytes: the machine model's

  /// What memory.limit is about.
  int64_t deviceBytes() const { return arenaBytes - hostBytes; }
};

/// Reads the plan from the offsets in the IR. Fails with a diagnostic where an offset is missing
/// (the module has not been through *plan*).
mlir::FailureOr<ModulePlan> readPlan(mlir::ModuleOp module);

/// The offset in the arena of the buffer `root` (a function argument, a kernel.buffer or a
/// kernel.constant).
mlir::FailureOr<int64_t> offsetOf(mlir::Value root);

/// Role and name of an argument that is no state.
std::optional<std::pair<BindingRole, llvm::StringRef>> bindingOf(mlir::BlockArgument argument);
/// The state that an argument holds, or null.
mlir::FlatSymbolRefAttr stateOf(mlir::BlockArgument argument);

/// Module attribute with the figures of the plan: a dictionary of i64 `bytes`, `states`,
/// `constants`, `bindings`, `temporaries`, and where ranks exchange `staging_offset`, `staging`.
inline constexpr llvm::StringLiteral arenaTag = "kernel.arena";
/// Function attribute: FunctionPlan::maxLiveBytes.
inline constexpr llvm::StringLiteral maxLiveTag = "kernel.max_live";

} // namespace titan::memory
