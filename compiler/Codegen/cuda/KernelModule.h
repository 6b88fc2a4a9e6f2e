// The module that a job's kernels are emitted into, and the entry points in it.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace titan::codegen::cuda {

inline constexpr int64_t warpSize = 32;
/// Address spaces of NVPTX.
inline constexpr unsigned globalSpace = 1, sharedSpace = 3;
/// Shared memory that an entry point may declare (`KernelModule::shared`), all arrays together.
inline constexpr int64_t mostDeclaredBytes = int64_t{48} << 10;

/// What a parameter of an entry point points to.
struct EntryOperand {
  enum class Use { Read, Write, Both } use = Use::Read;
  int64_t bytes = 0; ///< from the address on; no access goes beyond
};

/// All elements of `buffer`.
EntryOperand wholeOf(mlir::Value buffer, EntryOperand::Use use);

/// An entry point: a launch of `blocks` blocks of `threads` threads along x. Its parameters are an
/// address each operand, then an i64 each scalar.
struct Entry {
  std::string name;
  int64_t blocks = 1, threads = warpSize;
  std::vector<EntryOperand> operands;
  unsigned scalars = 0;
  int64_t sharedBytes = 0; ///< that its launch asks for (`dynamicShared`)
  /// The assembler unrolls no loop. nvJitLink reads so far ahead in unrolled ones that a thread's
  /// registers may not suffice.
  bool keepsLoops = false;
  /// Blocks that shall find room on a multiprocessor at once: bounds the registers of a thread. 0:
  /// no matter.
  int64_t blocksTogether = 0;
};

/// Is `entry` a launch of the kernel `symbol`: the only one, "titan_kernel_3", or one of several,
/// "titan_kernel_3_0" and so on?
bool isLaunchOf(const Entry& entry, llvm::StringRef symbol);

/// "// titan: titan_kernel_3 operands(read 4096, both 64) scalars(1)": stands before the entry
/// point in PTX.
std::string describe(const Entry& entry);

class KernelModule {
public:
  explicit KernelModule(mlir::MLIRContext* context);

  /// Adds an entry point, with an empty body, and moves `builder` into it.
  mlir::func::FuncOp add(mlir::OpBuilder& builder, mlir::Location loc, Entry entry);
  /// Shared memory of `bytes` for the newest entry point, aligned to 16: its address.
  mlir::Value shared(mlir::OpBuilder& builder, mlir::Location loc, int64_t bytes);
  /// Further shared memory of `bytes`, aligned to 16, which its launch asks for: what an entry
  /// point declares may not be more than `mostDeclaredBytes`. Once for an entry point.
  mlir::Value dynamicShared(mlir::OpBuilder& builder, mlir::Location loc, int64_t bytes);

  /// The entry points of these names keep their loops. False: they did already.
  bool keepLoops(llvm::ArrayRef<std::string> names);
  /// However few blocks of the entry points of these names find room at once, their threads have
  /// the registers that they need. False: they did already.
  bool freeRegisters(llvm::ArrayRef<std::string> names);

  mlir::ModuleOp module() { return *module_; }
  const std::vector<Entry>& entries() const { return entries_; }

private:
  /// False: the entry points of these names have that value already.
  template <typename T> bool set(llvm::ArrayRef<std::string> names, T Entry::* member, T value);

  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::vector<Entry> entries_;
  unsigned sharedArrays_ = 0;
};

} // namespace titan::codegen::cuda
