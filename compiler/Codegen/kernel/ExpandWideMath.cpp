#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace titan::codegen {

#define GEN_PASS_DEF_EXPANDWIDEMATH
#include "compiler/Codegen/kernel/Passes.h.inc"

namespace {

/// f64 arithmetic on scalars or on vectors of one length.
class Doubles {
public:
  Doubles(OpBuilder& builder, Location loc, Type type) : builder(builder), loc(loc), type(type) {}

  Value constant(double value) { return constantOf(builder.getF64FloatAttr(value)); }
  Value whole(int64_t value) { return constantOf(builder.getI64IntegerAttr(value)); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value fma(Value a, Value b, Value c) { return math::FmaOp::create(builder, loc, a, b, c); }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  Value isNot(Value bits, int64_t value) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bits, whole(value));
  }
  Value mask(Value bits, int64_t value) {
    return arith::AndIOp::create(builder, loc, bits, whole(value));
  }
  /// c[0] + z c[1] + z^2 c[2] + ...
  Value polynomial(Value z, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, z, constant(coefficient));
    return sum;
  }
  Type wholeType() {
    Type i64 = builder.getI64Type();
    return isa<VectorType>(type) ? cast<VectorType>(type).clone(i64) : i64;
  }

  OpBuilder& builder;
  Location loc;
  Type type;

private:
  Value constantOf(TypedAttr attribute) {
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector.clone(attribute.getType()), attribute);
    return arith::ConstantOp::create(builder, loc, attribute);
  }
};

bool isF64(Operation* op) { return getElementTypeOrSelf(op->getResult(0).getType()).isF64(); }

/// A power by squaring: one multiplication rounds at a time, so the relative error is about the
/// exponent times 2^-53.
struct ExpandPower : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter& rewriter) const override {
    auto from = op.getRhs().getDefiningOp<arith::SIToFPOp>();
    if (!isF64(op) || !from)
      return rewriter.notifyMatchFailure(op, "no whole exponent in f64");
    Location loc = op.getLoc();
    Doubles f(rewriter, loc, op.getType());
    Value exponent = from.getIn();
    if (exponent.getType() != f.wholeType())
      exponent = arith::ExtSIOp::create(rewriter, loc, f.wholeType(), exponent);
    Value isNegative =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, exponent, f.whole(0));
    Value opposite = arith::SubIOp::create(rewriter, loc, f.whole(0), exponent);
    Value left = f.select(isNegative, opposite, exponent);
    auto index = [&](int64_t value) {
      return arith::ConstantIndexOp::create(rewriter, loc, value).getResult();
    };
    auto loop = scf::ForOp::create(
        rewriter, loc, index(0), index(64), index(1), ValueRange{f.constant(1), op.getLhs(), left},
        [&](OpBuilder& inner, Location, Value, ValueRange carried) {
          Doubles g(inner, loc, op.getType());
          Value power = carried[0], base = carried[1], bits = carried[2];
          power = g.select(g.isNot(g.mask(bits, 1), 0), g.mul(power, base), power);
          Value rest = arith::ShRUIOp::create(inner, loc, bits, g.whole(1));
          scf::YieldOp::create(inner, loc, ValueRange{power, g.mul(base, base), rest});
        });
    Value power = loop.getResult(0);
    Value inverse = arith::DivFOp::create(rewriter, loc, f.constant(1), power);
    rewriter.replaceOp(op, f.select(isNegative, inverse, power));
    return success();
  }
};

// Polynomials of fdlibm's __kernel_sin and __kernel_cos on |r| <= pi/4, errors below 2^-57.
constexpr double sinCoefficients[] = {1,
                                      -1.66666666666666324348e-01,
                                      8.33333333332248946124e-03,
                                      -1.98412698298579493134e-04,
                                      2.75573137070700676789e-06,
                                      -2.50507602534068634195e-08,
                                      1.58969099521155010221e-10};
constexpr double cosCoefficients[] = {1,
                                      -0.5,
                                      4.16666666666666019037e-02,
                                      -1.38888888888741095749e-03,
                                      2.48015872894767294178e-05,
                                      -2.75573143513906633035e-07,
                                      2.08757232129817482790e-09,
                                      -1.13596475577881948265e-11};
// pi/2 in three parts of 53 bits; with fma the remainder is exact to the last of them.
constexpr double halfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
/// Beyond it the quotient by pi/2 has too few bits; the result is NaN, not a wrong number.
constexpr double angleLimit = 0x1p30;

/// sin(x) where shift is 0, cos(x) where it is 1: of the angle's quadrant the one or the other.
Value emitSine(Doubles& f, Value x, int64_t shift) {
  Value quotient = f.mul(x, f.constant(0x1.45f306dc9c883p-1));
  quotient = math::RoundEvenOp::create(f.builder, f.loc, quotient);
  Value opposite = arith::NegFOp::create(f.builder, f.loc, quotient), rest = x;
  for (double part : halfPi)
    rest = f.fma(opposite, f.constant(part), rest);
  Value z = f.mul(rest, rest);
  Value sine = f.mul(rest, f.polynomial(z, sinCoefficients));
  Value cosine = f.polynomial(z, cosCoefficients);
  Value distance = math::AbsFOp::create(f.builder, f.loc, x);
  Value isKnown = arith::CmpFOp::create(f.builder, f.loc, arith::CmpFPredicate::OLE, distance,
                                        f.constant(angleLimit));
  Value small = f.select(isKnown, quotient, f.constant(0));
  Value quadrant = arith::FPToSIOp::create(f.builder, f.loc, f.wholeType(), small);
  quadrant = arith::AddIOp::create(f.builder, f.loc, quadrant, f.whole(shift));
  Value value = f.select(f.isNot(f.mask(quadrant, 1), 0), cosine, sine);
  Value negated = arith::NegFOp::create(f.builder, f.loc, value);
  value = f.select(f.isNot(f.mask(quadrant, 2), 0), negated, value);
  return f.select(isKnown, value, f.constant(std::numeric_limits<double>::quiet_NaN()));
}

template <typename Op, int64_t shift> struct ExpandSine : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!isF64(op))
      return rewriter.notifyMatchFailure(op, "not f64");
    Doubles f(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, emitSine(f, op.getOperand(), shift));
    return success();
  }
};

struct ExpandWideMath : impl::ExpandWideMathBase<ExpandWideMath> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    set.add<ExpandPower, ExpandSine<math::SinOp, 0>, ExpandSine<math::CosOp, 1>>(context);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(getOperation(), patterns, config)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace titan::codegen
