#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan::ir {

TensorBuilder::TensorBuilder(OpBuilder& builder, Operation* op, std::optional<Phase> wanted)
    : builder(builder), loc(op->getLoc()), path(op->getAttrOfType<ArrayAttr>("path")) {
  Phase value = wanted.value_or(getPhase(op));
  if (value != Phase::Forward)
    phase = PhaseAttr::get(op->getContext(), value);
}

Value TensorBuilder::splat(Type type, double value) const {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  TypedAttr scalar;
  if (isa<FloatType>(element))
    scalar = builder.getFloatAttr(element, value);
  else if (element.isInteger(1))
    scalar = builder.getBoolAttr(value != 0);
  else
    scalar = builder.getIntegerAttr(element, static_cast<int64_t>(value));
  return create<ConstantOp>(cast<TypedAttr>(DenseElementsAttr::get(tensor, scalar)));
}

Value TensorBuilder::convert(Value a, Type element) const {
  RankedTensorType type = tensorType(a);
  if (type.getElementType() == element)
    return a;
  return create<ConvertOp>(type.clone(element), a);
}

Value TensorBuilder::reduce(ReduceKind kind, Value a, ArrayRef<int64_t> dims) const {
  return create<ReduceOp>(kind, a, dims);
}

Value TensorBuilder::reduceAll(ReduceKind kind, Value a) const {
  return reduce(kind, a, llvm::to_vector(llvm::seq<int64_t>(0, tensorType(a).getRank())));
}

Value TensorBuilder::broadcast(Value a, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) const {
  return create<BroadcastOp>(tensorType(a).clone(shape), a, dims);
}

Value TensorBuilder::unreduce(Value a, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) const {
  SmallVector<int64_t> kept;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    if (!llvm::is_contained(dims, d))
      kept.push_back(d);
  return broadcast(a, shape, kept);
}

Value TensorBuilder::reshape(Value a, ArrayRef<int64_t> shape) const {
  return create<ReshapeOp>(tensorType(a).clone(shape), a);
}

Value TensorBuilder::transpose(Value a, ArrayRef<int64_t> permutation) const {
  return create<TransposeOp>(a, permutation);
}

} // namespace titan::ir
