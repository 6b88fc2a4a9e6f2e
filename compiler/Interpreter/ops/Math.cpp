// Meaning of the math ops of kernel bodies.
#include "compiler/Interpreter/Models.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace titan::interpreter {

namespace {

LogicalResult fusedMultiplyAdd(math::FmaOp op, Frame& frame) {
  Tensor result = frame.get(op.getA());
  bool single = frame.engine() == Engine::F32 && !op.getType().isF64();
  // One rounding, to the type: fma in f64 and a second rounding to f32 would be another value.
  for (auto [x, y, z] : llvm::zip_equal(result.mutableFloats(), frame.get(op.getB()).floats(),
                                        frame.get(op.getC()).floats()))
    x = single ? std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z))
               : std::fma(x, y, z);
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachMath(MLIRContext* context) {
  using namespace math;
  attach<FmaOp, fusedMultiplyAdd>(context);
  attachUnary<AbsFOp, [](double x) { return std::abs(x); }>(context);
  attachUnary<AbsIOp, [](int64_t x) { return x < 0 ? -x : x; }>(context);
  attachUnary<CeilOp, [](double x) { return std::ceil(x); }>(context);
  attachUnary<FloorOp, [](double x) { return std::floor(x); }>(context);
  attachUnary<RoundEvenOp, [](double x) { return std::nearbyint(x); }>(context);
  attachUnary<TruncOp, [](double x) { return std::trunc(x); }>(context);
  attachUnary<ExpOp, [](double x) { return std::exp(x); }>(context);
  attachUnary<Exp2Op, [](double x) { return std::exp2(x); }>(context);
  attachUnary<ExpM1Op, [](double x) { return std::expm1(x); }>(context);
  attachUnary<LogOp, [](double x) { return std::log(x); }>(context);
  attachUnary<Log2Op, [](double x) { return std::log2(x); }>(context);
  attachUnary<Log1pOp, [](double x) { return std::log1p(x); }>(context);
  attachUnary<SqrtOp, [](double x) { return std::sqrt(x); }>(context);
  attachUnary<RsqrtOp, [](double x) { return 1 / std::sqrt(x); }>(context);
  attachUnary<SinOp, [](double x) { return std::sin(x); }>(context);
  attachUnary<CosOp, [](double x) { return std::cos(x); }>(context);
  attachUnary<AtanOp, [](double x) { return std::atan(x); }>(context);
  attachUnary<TanhOp, [](double x) { return std::tanh(x); }>(context);
  attachUnary<ErfOp, [](double x) { return std::erf(x); }>(context);
  attachBinary<PowFOp, [](double x, double y) { return std::pow(x, y); }>(context);
  attachBinary<CopySignOp, [](double x, double y) { return std::copysign(x, y); }>(context);
}

} // namespace titan::interpreter
