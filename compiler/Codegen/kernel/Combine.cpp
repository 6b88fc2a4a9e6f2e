#include "compiler/Codegen/kernel/Combine.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace titan::codegen {

Value reductionIdentity(OpBuilder& builder, Location loc, kernel::ReduceKind kind, Type element,
                        int64_t length) {
  TypedAttr attribute;
  if (auto type = dyn_cast<FloatType>(element)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double value = kind == kernel::ReduceKind::Add   ? 0.0
                   : kind == kernel::ReduceKind::Mul ? 1.0
                   : kind == kernel::ReduceKind::Max ? -infinity
                                                     : infinity;
    attribute = builder.getFloatAttr(type, value);
  } else {
    unsigned bits = element.getIntOrFloatBitWidth();
    APInt value = kind == kernel::ReduceKind::Add   ? APInt::getZero(bits)
                  : kind == kernel::ReduceKind::Mul ? APInt(bits, 1)
                  : kind == kernel::ReduceKind::Max ? APInt::getSignedMinValue(bits)
                                                    : APInt::getSignedMaxValue(bits);
    attribute = builder.getIntegerAttr(element, value);
  }
  if (length > 0)
    attribute = DenseElementsAttr::get(VectorType::get({length}, element), attribute);
  return arith::ConstantOp::create(builder, loc, attribute);
}

Value combine(OpBuilder& builder, Location loc, kernel::ReduceKind kind, Value a, Value b) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType()));
  switch (kind) {
  case kernel::ReduceKind::Add:
    return isFloat ? arith::AddFOp::create(builder, loc, a, b).getResult()
                   : arith::AddIOp::create(builder, loc, a, b).getResult();
  case kernel::ReduceKind::Mul:
    return isFloat ? arith::MulFOp::create(builder, loc, a, b).getResult()
                   : arith::MulIOp::create(builder, loc, a, b).getResult();
  case kernel::ReduceKind::Max:
    return isFloat ? arith::MaximumFOp::create(builder, loc, a, b).getResult()
                   : arith::MaxSIOp::create(builder, loc, a, b).getResult();
  case kernel::ReduceKind::Min:
    return isFloat ? arith::MinimumFOp::create(builder, loc, a, b).getResult()
                   : arith::MinSIOp::create(builder, loc, a, b).getResult();
  }
  return {};
}

Value combineUpdate(OpBuilder& builder, Location loc, ir::ScatterKind kind, Value x, Value update,
                    bool isUnsigned) {
  switch (kind) {
  case ir::ScatterKind::None:
    return update;
  case ir::ScatterKind::Add:
    return combine(builder, loc, kernel::ReduceKind::Add, x, update);
  case ir::ScatterKind::Mul:
    return combine(builder, loc, kernel::ReduceKind::Mul, x, update);
  case ir::ScatterKind::Max:
    return isUnsigned ? arith::MaxUIOp::create(builder, loc, x, update).getResult()
                      : combine(builder, loc, kernel::ReduceKind::Max, x, update);
  case ir::ScatterKind::Min:
    return isUnsigned ? arith::MinUIOp::create(builder, loc, x, update).getResult()
                      : combine(builder, loc, kernel::ReduceKind::Min, x, update);
  }
  llvm_unreachable("all kinds are handled");
}

Value foldLanes(OpBuilder& builder, Location loc, kernel::ReduceKind kind, Value vector) {
  for (int64_t half = cast<VectorType>(vector.getType()).getDimSize(0) / 2; half >= 1; half /= 2) {
    auto part = [&](int64_t first) {
      return vector::ExtractStridedSliceOp::create(builder, loc, vector, ArrayRef<int64_t>{first},
                                                   ArrayRef<int64_t>{half}, ArrayRef<int64_t>{1});
    };
    Value low = part(0), high = part(half);
    vector = combine(builder, loc, kind, low, high);
  }
  return vector::ExtractOp::create(builder, loc, vector, ArrayRef<int64_t>{0});
}

} // namespace titan::codegen
