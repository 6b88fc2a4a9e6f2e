#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace titan::codegen {

#define GEN_PASS_DEF_EXPANDMATH
#include "compiler/Codegen/kernel/Passes.h.inc"

namespace {

/// erf(x) = x P(x^2) / Q(x^2) on |x| <= erfLimit, beyond which the nearest f32 is 1: a rational fit
/// in relative error (1.9e-8), its coefficients then moved among neighbouring f32 for the smallest
/// error with rounding: 4.2 ulp. Upstream's polynomials by intervals are as accurate, with twice
/// the instructions.
constexpr double erfLimit = 3.9192059;
constexpr double erfNumerator[] = {1.1283791065216064,    0.19037280976772308,
                                   0.052744943648576736,  0.0037643478717654943,
                                   0.0002848850272130221, 2.050760258498485e-06};
constexpr double erfDenominator[] = {1.0,
                                     0.5020462870597839,
                                     0.1140957921743393,
                                     0.014966662973165512,
                                     0.0011622844031080604,
                                     3.809878398897126e-05};

struct ExpandErf : OpRewritePattern<math::ErfOp> {
  // Before upstream's pattern.
  explicit ExpandErf(MLIRContext* context) : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::ErfOp op, PatternRewriter& rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Location loc = op.getLoc();
    auto constant = [&](double value) -> Value {
      TypedAttr attribute = rewriter.getF32FloatAttr(static_cast<float>(value));
      if (auto type = dyn_cast<ShapedType>(op.getType()))
        attribute = DenseElementsAttr::get(type, attribute);
      return arith::ConstantOp::create(rewriter, loc, attribute);
    };
    // Where `test` is beyond +-limit, +-1. Comparisons with a NaN fail, so that it stays.
    auto saturate = [&](Value value, Value test, double limit) {
      for (auto [predicate, sign] : {std::pair(arith::CmpFPredicate::OGT, 1.0),
                                     std::pair(arith::CmpFPredicate::OLT, -1.0)}) {
        Value outside =
            arith::CmpFOp::create(rewriter, loc, predicate, test, constant(sign * limit));
        value = arith::SelectOp::create(rewriter, loc, outside, constant(sign), value);
      }
      return value;
    };
    auto polynomial = [&](Value z, ArrayRef<double> coefficients) {
      Value sum = constant(coefficients.back());
      for (double coefficient : llvm::reverse(coefficients.drop_back()))
        sum = math::FmaOp::create(rewriter, loc, sum, z, constant(coefficient));
      return sum;
    };
    Value x = op.getOperand();
    Value z = arith::MulFOp::create(rewriter, loc, x, x);
    Value numerator = arith::MulFOp::create(rewriter, loc, x, polynomial(z, erfNumerator));
    Value quotient = arith::DivFOp::create(rewriter, loc, numerator, polynomial(z, erfDenominator));
    quotient = saturate(quotient, quotient, 1);
    rewriter.replaceOp(op, saturate(quotient, x, erfLimit));
    return success();
  }
};

struct ExpandMath : impl::ExpandMathBase<ExpandMath> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    set.add<ExpandErf>(context);
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
