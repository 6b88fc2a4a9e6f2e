#include "compiler/Codegen/kernel/ApplyPatterns.h"
#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

#include <array>
#include <limits>

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
  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
  Value neg(Value a) { return arith::NegFOp::create(builder, loc, a); }
  Value abs(Value a) { return math::AbsFOp::create(builder, loc, a); }
  Value round(Value a) { return math::RoundEvenOp::create(builder, loc, a); }
  Value both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value bitsOf(Value a) { return arith::BitcastOp::create(builder, loc, wholeType(), a); }
  Value ofBits(Value bits) { return arith::BitcastOp::create(builder, loc, type, bits); }
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

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// log2 of a number above zero within 2^-50. Its mantissa m is in [sqrt(1/2), sqrt(2)), and ln m is
/// 2 atanh(t), t = (m - 1) / (m + 1): the series of atanh in t^2 <= 0.0295.
Value emitLog2(Doubles& f, Value x) {
  constexpr int64_t bitsOfRootHalf = 0x3fe6a09e667f3bcd;
  constexpr double twiceLog2E = 2.885390081777927;
  std::array<double, 11> coefficients;
  for (size_t i = 0; i < coefficients.size(); ++i)
    coefficients[i] = twiceLog2E / static_cast<double>(2 * i + 1);
  Value bits = f.bitsOf(x);
  Value above = arith::SubIOp::create(f.builder, f.loc, bits, f.whole(bitsOfRootHalf));
  Value exponent = arith::ShRSIOp::create(f.builder, f.loc, above, f.whole(52));
  Value shifted = arith::ShLIOp::create(f.builder, f.loc, exponent, f.whole(52));
  Value m = f.ofBits(arith::SubIOp::create(f.builder, f.loc, bits, shifted));
  Value t =
      arith::DivFOp::create(f.builder, f.loc, f.sub(m, f.constant(1)), f.add(m, f.constant(1)));
  Value whole = arith::SIToFPOp::create(f.builder, f.loc, f.type, exponent);
  return f.fma(t, f.polynomial(f.mul(t, t), coefficients), whole);
}

/// 2^x within 2^-50, for x in [-1000, 1000]: Taylor's series of the part behind the nearest
/// integer.
Value emitExp2(Doubles& f, Value x) {
  constexpr double ln2 = 0.6931471805599453;
  std::array<double, 14> coefficients = {1};
  for (size_t i = 1; i < coefficients.size(); ++i)
    coefficients[i] = coefficients[i - 1] * ln2 / static_cast<double>(i);
  Value whole = f.round(x);
  Value n = arith::FPToSIOp::create(f.builder, f.loc, f.wholeType(), whole);
  Value biased = arith::AddIOp::create(f.builder, f.loc, n, f.whole(1023));
  Value scale = f.ofBits(arith::ShLIOp::create(f.builder, f.loc, biased, f.whole(52)));
  return f.mul(f.polynomial(f.sub(x, whole), coefficients), scale);
}

/// x^y of numbers that are f32: in f64, whose 2^-40 the rounding to f32 does not see; with the
/// special values of C's pow.
Value emitPower(Doubles& f, Value x, Value y) {
  constexpr double beyond = 200; // 2^200 and 2^-200 are none of f32
  using arith::CmpFPredicate;
  Value one = f.constant(1), zero = f.constant(0), distance = f.abs(x);
  Value log = emitLog2(f, distance);
  log = f.select(f.compare(CmpFPredicate::OEQ, distance, zero), f.constant(-infinity), log);
  log = f.select(f.compare(CmpFPredicate::OEQ, distance, f.constant(infinity)),
                 f.constant(infinity), log);
  Value exponent = f.mul(y, log);
  exponent = f.select(f.compare(CmpFPredicate::OEQ, distance, one), zero, exponent);
  Value isNumber = f.compare(CmpFPredicate::ORD, exponent, exponent);
  Value within = f.select(f.compare(CmpFPredicate::OGT, exponent, f.constant(beyond)),
                          f.constant(beyond), exponent);
  within = f.select(f.compare(CmpFPredicate::OGT, within, f.constant(-beyond)), within,
                    f.constant(-beyond)); // of NaN too
  Value power = f.select(isNumber, emitExp2(f, within), f.constant(nan));

  // The sign, and what is no number.
  Value isWhole = f.compare(CmpFPredicate::OEQ, f.round(y), y);
  Value half = f.mul(y, f.constant(0.5));
  Value isOdd = f.both(isWhole, f.compare(CmpFPredicate::ONE, f.round(half), half));
  Value isBelow =
      f.compare(CmpFPredicate::OLT, math::CopySignOp::create(f.builder, f.loc, one, x), zero);
  power = f.select(f.both(isOdd, isBelow), f.neg(power), power);
  Value isFiniteBelow = f.both(f.compare(CmpFPredicate::OLT, x, zero),
                               f.compare(CmpFPredicate::OGT, x, f.constant(-infinity)));
  Value isFraction = f.compare(CmpFPredicate::UNE, f.round(y), y);
  power = f.select(f.both(isFiniteBelow, isFraction), f.constant(nan), power);
  power = f.select(f.compare(CmpFPredicate::UNO, x, x), x, power);
  power = f.select(f.compare(CmpFPredicate::OEQ, x, one), one, power);
  return f.select(f.compare(CmpFPredicate::OEQ, y, zero), one, power);
}

struct ExpandNarrowPower : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter& rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Type wide = rewriter.getF64Type();
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      wide = vector.clone(wide);
    Doubles f(rewriter, op.getLoc(), wide);
    auto widened = [&](Value value) {
      return arith::ExtFOp::create(rewriter, op.getLoc(), wide, value);
    };
    Value power = emitPower(f, widened(op.getLhs()), widened(op.getRhs()));
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), power);
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
  return f.select(isKnown, value, f.constant(nan));
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
    set.add<ExpandPower, ExpandNarrowPower, ExpandSine<math::SinOp, 0>, ExpandSine<math::CosOp, 1>>(
        context);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    if (failed(applyPatterns(getOperation(), patterns)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace titan::codegen
