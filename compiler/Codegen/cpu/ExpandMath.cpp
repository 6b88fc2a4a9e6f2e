#include "compiler/Codegen/cpu/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace titan::codegen {

#define GEN_PASS_DEF_EXPANDMATH
#include "compiler/Codegen/cpu/Passes.h.inc"

namespace {

struct ExpandMath : impl::ExpandMathBase<ExpandMath> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    // The hyperbolic functions but tanh are written with exp, which is expanded next.
    math::populateExpansionPatterns(set, {"sinh", "cosh", "asinh", "acosh", "atanh", "exp2f"});
    populateMathPolynomialApproximationPatterns(set, [](StringRef name) {
      return llvm::is_contained({math::ExpOp::getOperationName(), math::ExpM1Op::getOperationName(),
                                 math::LogOp::getOperationName(), math::Log2Op::getOperationName(),
                                 math::Log1pOp::getOperationName(),
                                 math::TanhOp::getOperationName(), math::ErfOp::getOperationName(),
                                 math::ErfcOp::getOperationName(), math::SinOp::getOperationName(),
                                 math::CosOp::getOperationName(), math::AtanOp::getOperationName(),
                                 math::Atan2Op::getOperationName()},
                                name);
    });
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    GreedyRewriteConfig config;
    // Folding would be the same; erasing and merging blocks is not this pass's business.
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(getOperation(), patterns, config)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace titan::codegen
