// titan-lower-verify-kernels: what holds after the stage.
#include "compiler/Lower/Classify.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Support/Products.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYLOWERED
#include "compiler/Lower/Passes.h.inc"

namespace {

LogicalResult check(Operation* op) {
  if (isa<kernel::CommandLikeOpInterface>(op->getParentOp()))
    return success(); // a command's verifier knows its body
  // Bases of random ops are sums of loop counters and of this rank's coordinates, times constants.
  const bool isIndex =
      isa<dist::CoordinateOp>(op) || (isa<arith::ArithDialect>(op->getDialect()) &&
                                      llvm::all_of(op->getResultTypes(), llvm::IsaPred<IndexType>));
  if (!isa<func::FuncDialect, accum::AccumDialect, kernel::KernelDialect>(op->getDialect()) &&
      !isIndex && !isa<kernel::CommandLikeOpInterface>(op))
    return op->emitOpError("remains after lower: only func, accum and kernel ops may");
  auto fused = dyn_cast<kernel::FusedOp>(op);
  if (!fused)
    return success();
  std::string why;
  FailureOr<lower::Loops> loops = lower::classify(fused, &why);
  if (failed(loops))
    return op->emitOpError("fits no class of kernels: ") << why;
  if (loops->kernelClass != fused.getKernelClass())
    return op->emitOpError("is called ")
           << kernel::stringifyKernelClass(fused.getKernelClass()) << " but its body is "
           << kernel::stringifyKernelClass(loops->kernelClass);
  return success();
}

/// What *schedule* put between a start or wait and the next one is still there.
LogicalResult checkProducts(func::FuncOp function) {
  for (auto [half, flops] : productsBehindHalves(function)) {
    auto noted = half->getAttrOfType<IntegerAttr>(productsTag);
    if (noted && noted.getInt() != flops)
      return half->emitOpError("has products of ")
             << flops << " FLOP between it and the next start or wait, *schedule* put "
             << noted.getInt() << " there";
  }
  return success();
}

struct VerifyLowered : impl::VerifyLoweredBase<VerifyLowered> {
  void runOnOperation() override {
    auto result = getOperation().walk(
        [](Operation* op) -> WalkResult { return isa<func::FuncOp>(op) ? success() : check(op); });
    if (result.wasInterrupted() || failed(checkProducts(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace titan
