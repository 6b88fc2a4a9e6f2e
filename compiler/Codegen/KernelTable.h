// The kernels of a job: equal bodies once.
#pragma once

#include "compiler/Codegen/Target.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace titan::codegen {

class KernelTable {
public:
  /// With a `reference`, a target for a CPU, every kernel is emitted for it, too: a CPU can walk
  /// the table, and what a card computes can be compared with it.
  explicit KernelTable(Target& target, Target* reference = nullptr)
      : target_(target), reference_(reference) {}

  /// Index in Program::kernels of the code for `op`, emitted on the first call for its body. Fails
  /// with a diagnostic on the op.
  mlir::FailureOr<uint32_t> kernelFor(kernel::FusedOp op);

  /// How a call is run.
  struct Routine {
    const RoutineEmitter* emitter = nullptr;
    uint32_t kernel = 0;                ///< index in Program::kernels
    std::optional<uint32_t> library;    ///< index in Program::libraryCalls: it may stand in
    llvm::SmallVector<int64_t> scalars; ///< behind those of the call
  };
  /// Likewise. An error where the target has no kernel for the routine.
  mlir::FailureOr<Routine> routineFor(kernel::CallOp op);

  Target& target() { return target_; }
  /// How a CPU that walks the table spreads the work over threads.
  Target& host() { return reference_ ? *reference_ : target_; }
  /// Is what failed the user's: an op or blocks that the target has no code for?
  bool refusesInput() const { return refusesInput_; }
  /// The end of the planned arena, where what library calls share begins.
  void setWorkspaceOffset(int64_t offset) { workspaceOffset_ = offset; }
  int64_t workspaceOffset() const { return workspaceOffset_; }
  int64_t workspaceBytes(uint32_t library) const { return libraryCalls_[library].workspace; }
  /// Moves symbols, labels and configurations to the program, whose arena grows by the workspace.
  void finish(Program& program);
  /// The symbols of host code in the order in which a job lists their addresses: of all kernels,
  /// then of those that find bounds. Empty where there is none.
  std::vector<std::string> hostSymbols() const;

private:
  struct Entry {
    std::string symbol, description;
    std::vector<GridLaunch> launches;
    Comparison comparison; ///< with a reference
    llvm::SetVector<mlir::Attribute> paths;
    std::string label() const;
  };
  template <typename Op>
  mlir::FailureOr<uint32_t> find(llvm::StringMap<uint32_t>& known, llvm::StringRef key, Op op,
                                 llvm::function_ref<std::string()> describe);

  /// Emits what the reference has for a kernel, and says how the two are compared.
  mlir::FailureOr<Comparison> addReference(kernel::FusedOp op, size_t index);
  mlir::FailureOr<Comparison> addReference(kernel::CallOp op, size_t index);

  Target& target_;
  Target* reference_;
  bool refusesInput_ = false;
  std::vector<Entry> kernels_;
  llvm::StringMap<uint32_t> fused_, routines_;
  std::vector<LibraryCall> libraryCalls_;
  int64_t workspaceOffset_ = 0;
};

} // namespace titan::codegen
