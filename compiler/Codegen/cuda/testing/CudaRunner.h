// Compiles the kernels of a module text to PTX and runs them on the interpreter.
#pragma once

#include "compiler/Codegen/cuda/Assembler.h"
#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"
#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include "mlir/IR/MLIRContext.h"

namespace titan::codegen::cuda::testing {

class CudaRunner {
public:
  /// The kernels (kernel.fused and kernel.call) of `text`, in order.
  static Result<std::unique_ptr<CudaRunner>> compile(std::string_view text);

  const std::vector<mlir::Operation*>& kernels() const { return kernels_; }
  const std::string& ptx() const { return ptx_; }
  /// All launches of all kernels.
  size_t launchCount() const;

  /// Runs kernel number `kernel`: the counters of each of its launches. Its operands lie in
  /// `memory`. With `ends`, only that many blocks at each end of a grid run.
  Result<std::vector<ptx::Counters>> run(size_t kernel, std::span<const uint64_t> operands,
                                         std::span<const int64_t> scalars, ptx::Order order,
                                         ptx::Memory& memory, int64_t ends = 0) const;

private:
  CudaRunner();
  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::vector<mlir::Operation*> kernels_;
  std::vector<std::vector<Entry>> entries_; ///< of each kernel
  std::string ptx_;
  std::shared_ptr<const ptx::Module> code_;
};

/// What kernel number `kernel` makes of its operands' bytes, of which the first `ins` were written
/// before. Fails the test, and returns none, where it does not run; fails where it leaves bytes
/// unwritten.
std::vector<std::string> runOnBytes(const CudaRunner& runner, std::vector<std::string> bytes,
                                    size_t ins, ptx::Order order, ptx::Counters* counters = nullptr,
                                    size_t kernel = 0);

/// Fails the test unless they are the same in three orders of blocks and warps.
std::vector<std::string> runInAllOrders(const CudaRunner& runner,
                                        const std::vector<std::string>& bytes, size_t ins);

/// Fails the test unless `ptx` assembles for every architecture without spills and stack. Without
/// an assembler it prints so and does nothing.
void expectAssembles(const std::string& ptx);

} // namespace titan::codegen::cuda::testing
