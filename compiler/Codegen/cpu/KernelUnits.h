// The kernels of a job as units of compilation: a function each, which code generation may do at
// once and a cache may keep.
#pragma once

#include "runtime/program/Error.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <string>
#include <vector>

namespace titan::codegen {

struct KernelUnit {
  /// In the module that was split: one function with declarations of what it calls. A kernel has
  /// the name kernelName, since its own is its number in the job; shared functions keep theirs.
  mlir::ModuleOp module;
  std::string symbol; ///< of the function, in the job
};

/// Keys of units: bytes that are equal, in any process, where all is that decides a unit's code but
/// the target. What many ops have in common is printed once.
class UnitKeys {
public:
  std::string of(const KernelUnit& unit);

private:
  llvm::DenseMap<const void*, std::string> printed_; ///< attributes, types and names
};

inline constexpr const char* kernelName = "titan_kernel";

/// Puts each function of `kernels` that has a body into a module of its own, which takes its place.
/// The private functions, which several share, become public.
std::vector<KernelUnit> splitIntoUnits(mlir::ModuleOp kernels);

/// The object of a unit, with kernelName renamed to `symbol`. Internal when LLVM refuses.
Result<std::string> nameKernel(const std::string& object, const std::string& symbol);

/// An archive of objects, one for each unit and under its symbol.
Result<std::string> makeArchive(const std::vector<KernelUnit>& units,
                                const std::vector<std::string>& objects);

} // namespace titan::codegen
