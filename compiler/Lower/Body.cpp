#include "compiler/Lower/Body.h"

using namespace mlir;

namespace titan::lower {

Type Body::computeType(Type element) {
  if (isa<FloatType>(element) && !element.isF64())
    return Float32Type::get(element.getContext());
  return element;
}

Value Body::widen(Value value) {
  Type type = computeType(value.getType());
  return type == value.getType() ? value : create<arith::ExtFOp>(type, value);
}

Value Body::narrow(Value value, Type element) {
  auto from = dyn_cast<FloatType>(value.getType()), to = dyn_cast<FloatType>(element);
  if (!from || !to || from == to)
    return value;
  // A value that was only moved stays as it was.
  if (auto widened = value.getDefiningOp<arith::ExtFOp>();
      widened && widened.getIn().getType() == element)
    return widened.getIn();
  return from.getWidth() < to.getWidth() ? create<arith::ExtFOp>(to, value)
                                         : create<arith::TruncFOp>(to, value);
}

Value Body::constant(TypedAttr value) {
  for (Operation& op : llvm::make_range(builder.getBlock()->begin(), builder.getInsertionPoint()))
    if (auto known = dyn_cast<arith::ConstantOp>(op); known && known.getValue() == value)
      return known;
  return create<arith::ConstantOp>(value);
}

Value Body::constant(Type type, double value) {
  return constant(builder.getFloatAttr(type, value));
}

Value Body::add(Value a, Value b) { return create<arith::AddFOp>(a, b); }
Value Body::sub(Value a, Value b) { return create<arith::SubFOp>(a, b); }
Value Body::mul(Value a, Value b) { return create<arith::MulFOp>(a, b); }
Value Body::div(Value a, Value b) { return create<arith::DivFOp>(a, b); }
Value Body::reciprocal(Value a) { return div(constantLike(a, 1), a); }
Value Body::neg(Value a) { return create<arith::NegFOp>(a); }
Value Body::abs(Value a) { return create<math::AbsFOp>(a); }
Value Body::exp(Value a) { return create<math::ExpOp>(a); }
Value Body::log1p(Value a) { return create<math::Log1pOp>(a); }
Value Body::sqrt(Value a) { return create<math::SqrtOp>(a); }
Value Body::maximum(Value a, Value b) { return create<arith::MaximumFOp>(a, b); }
Value Body::minimum(Value a, Value b) { return create<arith::MinimumFOp>(a, b); }
Value Body::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  return create<arith::CmpFOp>(predicate, a, b);
}
Value Body::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return create<arith::CmpIOp>(predicate, a, b);
}
Value Body::select(Value condition, Value a, Value b) {
  return create<arith::SelectOp>(condition, a, b);
}

Value Body::integer(Type type, int64_t value) {
  return constant(builder.getIntegerAttr(type, value));
}

Value Body::resize(Value value, Type type, bool isUnsigned) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (from > to)
    return create<arith::TruncIOp>(type, value);
  return isUnsigned ? create<arith::ExtUIOp>(type, value) : create<arith::ExtSIOp>(type, value);
}

Value Body::reduce(kernel::ReduceKind kind, Value value, ArrayRef<int64_t> dims) {
  return create<kernel::ReduceOp>(value.getType(), kind, value, dims);
}

Value Body::index(int64_t dim) { return create<kernel::IndexOp>(dim); }

Value reduceElements(Body& body, ir::ReduceKind kind, Value value, ArrayRef<int64_t> dims,
                     bool isUnsigned) {
  if (dims.empty())
    return value;
  kernel::ReduceKind combine;
  switch (kind) {
  case ir::ReduceKind::Sum:
    combine = kernel::ReduceKind::Add;
    break;
  case ir::ReduceKind::Prod:
    combine = kernel::ReduceKind::Mul;
    break;
  case ir::ReduceKind::Max:
    combine = kernel::ReduceKind::Max;
    break;
  case ir::ReduceKind::Min:
    combine = kernel::ReduceKind::Min;
    break;
  }
  Type element = value.getType();
  if (isa<FloatType>(element))
    return body.narrow(body.reduce(combine, body.widen(value), dims), element);
  // kernel.reduce compares signed i32 and i64: an unsigned value goes to the next wider type.
  unsigned width = element.getIntOrFloatBitWidth() + (isUnsigned ? 1 : 0);
  Type wide = body.builder.getIntegerType(width <= 32 ? 32 : 64);
  return body.resize(body.reduce(combine, body.resize(value, wide, isUnsigned), dims), element,
                     isUnsigned);
}

} // namespace titan::lower
