// Meaning of the arith ops that kernel bodies and index arithmetic are made of: on arrays over the
// space of the kernel around them, on scalars elsewhere.
#include "compiler/Interpreter/Models.h"

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;

namespace titan::interpreter {

namespace {

LogicalResult constant(arith::ConstantOp op, Frame& frame) {
  SmallVector<int64_t> shape;
  if (auto fused = dyn_cast<kernel::FusedOp>(op->getParentOp()))
    shape.assign(fused.getSpace().begin(), fused.getSpace().end());
  Tensor result(shape, op.getType());
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    llvm::fill(result.mutableFloats(), number.getValueAsDouble());
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    llvm::fill(result.mutableIntegers(), integer.getType().isInteger(1)
                                             ? integer.getValue().getZExtValue()
                                             : integer.getValue().getSExtValue());
  else
    return op.emitOpError("is no scalar");
  frame.setExact(op, std::move(result));
  return success();
}

uint64_t zeroExtended(int64_t value, Type type) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return width >= 64 ? value : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

/// Ops that read their integer operands as unsigned: zero-extended to 64 bits first.
template <typename OpTy, auto function> void attachUnsigned(MLIRContext* context) {
  attach<OpTy, [](OpTy op, Frame& frame) -> LogicalResult {
    Tensor result = frame.get(op->getOperand(0));
    Type type = op->getOperand(0).getType();
    for (auto [x, y] :
         llvm::zip_equal(result.mutableIntegers(), frame.get(op->getOperand(1)).integers()))
      x = static_cast<int64_t>(function(zeroExtended(x, type), zeroExtended(y, type)));
    frame.set(op->getResult(0), std::move(result));
    return success();
  }>(context);
}

/// Casts: `function(tensor, i, source type)` gives element i of the result.
template <typename OpTy, auto function> void attachCast(MLIRContext* context) {
  attach<OpTy, [](OpTy op, Frame& frame) -> LogicalResult {
    const Tensor& operand = frame.get(op->getOperand(0));
    Tensor result(operand.shape(), op->getResult(0).getType());
    for (int64_t i = 0, n = operand.size(); i < n; ++i) {
      auto value = function(operand, i, op->getOperand(0).getType());
      if constexpr (std::is_same_v<decltype(value), double>)
        result.mutableFloats()[i] = value;
      else
        result.mutableIntegers()[i] = static_cast<int64_t>(value);
    }
    frame.set(op->getResult(0), std::move(result));
    return success();
  }>(context);
}

bool holds(arith::CmpFPredicate predicate, double x, double y) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return x == y;
  case P::OGT:
    return x > y;
  case P::OGE:
    return x >= y;
  case P::OLT:
    return x < y;
  case P::OLE:
    return x <= y;
  case P::ONE:
    return !unordered && x != y;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || x == y;
  case P::UGT:
    return unordered || x > y;
  case P::UGE:
    return unordered || x >= y;
  case P::ULT:
    return unordered || x < y;
  case P::ULE:
    return unordered || x <= y;
  case P::UNE:
    return unordered || x != y;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  return false;
}

LogicalResult compareFloats(arith::CmpFOp op, Frame& frame) {
  const Tensor &lhs = frame.get(op.getLhs()), &rhs = frame.get(op.getRhs());
  Tensor result(lhs.shape(), op.getType());
  for (auto [x, y, z] : llvm::zip_equal(lhs.floats(), rhs.floats(), result.mutableIntegers()))
    z = holds(op.getPredicate(), x, y);
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult compareIntegers(arith::CmpIOp op, Frame& frame) {
  const Tensor &lhs = frame.get(op.getLhs()), &rhs = frame.get(op.getRhs());
  Type type = op.getLhs().getType();
  bool i1 = type.isInteger(1); // held as 0 or 1, but 1 is -1 where it counts as signed
  Tensor result(lhs.shape(), op.getType());
  for (auto [x, y, z] : llvm::zip_equal(lhs.integers(), rhs.integers(), result.mutableIntegers()))
    z = arith::applyCmpPredicate(op.getPredicate(), APInt(64, i1 ? -x : x, true),
                                 APInt(64, i1 ? -y : y, true));
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult select(arith::SelectOp op, Frame& frame) {
  ArrayRef<int64_t> condition = frame.get(op.getCondition()).integers();
  const Tensor& onFalse = frame.get(op.getFalseValue());
  Tensor result = frame.get(op.getTrueValue());
  for (auto [i, holds] : llvm::enumerate(condition)) {
    if (holds)
      continue;
    if (result.isFloat())
      result.mutableFloats()[i] = onFalse.floats()[i];
    else
      result.mutableIntegers()[i] = onFalse.integers()[i];
  }
  frame.setExact(op, std::move(result));
  return success();
}

/// Integer division and remainder: an error where C++ has no answer.
template <typename OpTy, auto function> void attachDivision(MLIRContext* context) {
  attach<OpTy, [](OpTy op, Frame& frame) -> LogicalResult {
    Tensor result = frame.get(op.getLhs());
    Type type = op.getType();
    for (auto [x, y] :
         llvm::zip_equal(result.mutableIntegers(), frame.get(op.getRhs()).integers())) {
      if (y == 0)
        return op.emitOpError("divides the integer ") << x << " by zero";
      x = function(x, y, type);
    }
    frame.set(op, std::move(result));
    return success();
  }>(context);
}

} // namespace

void attachArith(MLIRContext* context) {
  using namespace arith;
  attach<arith::ConstantOp, constant>(context);
  attach<CmpFOp, compareFloats>(context);
  attach<CmpIOp, compareIntegers>(context);
  attach<arith::SelectOp, select>(context);

  attachUnary<NegFOp, [](double x) { return -x; }>(context);
  attachBinary<AddFOp, [](double x, double y) { return x + y; }>(context);
  attachBinary<SubFOp, [](double x, double y) { return x - y; }>(context);
  attachBinary<MulFOp, [](double x, double y) { return x * y; }>(context);
  attachBinary<DivFOp, [](double x, double y) { return x / y; }>(context);
  attachBinary<RemFOp, [](double x, double y) { return std::fmod(x, y); }>(context);
  attachBinary<MaximumFOp, [](double x, double y) { return x > y || x != x ? x : y; }>(context);
  attachBinary<MinimumFOp, [](double x, double y) { return x < y || x != x ? x : y; }>(context);
  attachBinary<MaxNumFOp, [](double x, double y) { return std::fmax(x, y); }>(context);
  attachBinary<MinNumFOp, [](double x, double y) { return std::fmin(x, y); }>(context);

  // Sums and products wrap: they are computed without sign.
  attachUnsigned<AddIOp, [](uint64_t x, uint64_t y) { return x + y; }>(context);
  attachUnsigned<SubIOp, [](uint64_t x, uint64_t y) { return x - y; }>(context);
  attachUnsigned<MulIOp, [](uint64_t x, uint64_t y) { return x * y; }>(context);
  attachUnsigned<AndIOp, [](uint64_t x, uint64_t y) { return x & y; }>(context);
  attachUnsigned<OrIOp, [](uint64_t x, uint64_t y) { return x | y; }>(context);
  attachUnsigned<XOrIOp, [](uint64_t x, uint64_t y) { return x ^ y; }>(context);
  attachUnsigned<ShLIOp, [](uint64_t x, uint64_t y) { return y < 64 ? x << y : 0; }>(context);
  attachUnsigned<ShRUIOp, [](uint64_t x, uint64_t y) { return y < 64 ? x >> y : 0; }>(context);
  attachUnsigned<MaxUIOp, [](uint64_t x, uint64_t y) { return std::max(x, y); }>(context);
  attachUnsigned<MinUIOp, [](uint64_t x, uint64_t y) { return std::min(x, y); }>(context);
  attachBinary<ShRSIOp, [](int64_t x, int64_t y) { return x >> std::min<int64_t>(y, 63); }>(
      context);
  attachBinary<MaxSIOp, [](int64_t x, int64_t y) { return std::max(x, y); }>(context);
  attachBinary<MinSIOp, [](int64_t x, int64_t y) { return std::min(x, y); }>(context);
  attachDivision<DivSIOp, [](int64_t x, int64_t y, Type) {
    return y == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x / y;
  }>(context);
  attachDivision<RemSIOp, [](int64_t x, int64_t y, Type) { return y == -1 ? 0 : x % y; }>(context);
  attachDivision<DivUIOp, [](int64_t x, int64_t y, Type type) {
    return static_cast<int64_t>(zeroExtended(x, type) / zeroExtended(y, type));
  }>(context);
  attachDivision<RemUIOp, [](int64_t x, int64_t y, Type type) {
    return static_cast<int64_t>(zeroExtended(x, type) % zeroExtended(y, type));
  }>(context);

  constexpr auto number = [](const Tensor& x, int64_t i, Type) { return x.floats()[i]; };
  constexpr auto same = [](const Tensor& x, int64_t i, Type) { return x.integers()[i]; };
  constexpr auto zeroExtend = [](const Tensor& x, int64_t i, Type type) {
    return zeroExtended(x.integers()[i], type);
  };
  // i1 holds 0 and 1: as a signed value 1 is -1.
  constexpr auto signExtend = [](const Tensor& x, int64_t i, Type type) {
    return type.isInteger(1) ? -x.integers()[i] : x.integers()[i];
  };
  attachCast<ExtFOp, number>(context);
  attachCast<TruncFOp, number>(context);
  attachCast<TruncIOp, same>(context);
  attachCast<ExtSIOp, signExtend>(context);
  attachCast<ExtUIOp, zeroExtend>(context);
  attachCast<IndexCastOp, signExtend>(context);
  attachCast<IndexCastUIOp, zeroExtend>(context);
  attachCast<SIToFPOp, [](const Tensor& x, int64_t i, Type type) {
    return static_cast<double>(type.isInteger(1) ? -x.integers()[i] : x.integers()[i]);
  }>(context);
  attachCast<UIToFPOp, [](const Tensor& x, int64_t i, Type type) {
    return static_cast<double>(zeroExtended(x.integers()[i], type));
  }>(context);
  // Out of range these have no defined value; the interpreter gives the nearest bound, and 0 for
  // NaN.
  constexpr auto toInteger = [](const Tensor& x, int64_t i, Type) {
    double value = x.floats()[i];
    if (std::isnan(value))
      return int64_t(0);
    if (std::abs(value) >= 0x1p63)
      return value < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(value);
  };
  attachCast<FPToSIOp, toInteger>(context);
  attachCast<FPToUIOp, toInteger>(context);
}

} // namespace titan::interpreter
