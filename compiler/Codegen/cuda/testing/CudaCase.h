// A kernel.fused with its data, and the checks that every kernel must pass on a card.
#pragma once

#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/KernelSpec.h"

namespace titan::codegen::cuda::testing {

using codegen::testing::Elements;
using codegen::testing::KernelData;
using codegen::testing::KernelSpec;
using codegen::testing::OperandSpec;

class CudaCase : public KernelData {
public:
  explicit CudaCase(const KernelSpec& spec);

  /// Runs the kernel with blocks and warps in three orders, which must give the same bits; compares
  /// with its definition, |error| <= tolerance * (1 + |value|).
  void checkValues(double tolerance);
  /// The same; assembles it too.
  void check(double tolerance);
  /// Runs the kernel with `out` in the place of `in`: every out must be what it is otherwise, bit
  /// for bit.
  void checkInPlace(size_t in, size_t out);
  /// Bytes of each out after a run; `places` says which out (second) lies on which in (first).
  std::vector<std::string> run(ptx::Order order = ptx::Order::Ascending,
                               std::vector<std::pair<size_t, size_t>> places = {});
  /// Of the newest run.
  const ptx::Counters& counters() const { return counters_; }
  const std::string& ptx() const { return runner_->ptx(); }
  kernel::FusedOp kernel() const { return mlir::cast<kernel::FusedOp>(runner_->kernels()[0]); }
  bool ok() const { return runner_ != nullptr; }

private:
  std::unique_ptr<CudaRunner> runner_;
  ptx::Counters counters_;
};

} // namespace titan::codegen::cuda::testing
