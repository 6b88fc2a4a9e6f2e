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

DenseElementsAttr denseFloats(RankedTensorType type, ArrayRef<double> values) {
  auto element = cast<FloatType>(type.getElementType());
  if (element.isF64())
    return DenseElementsAttr::get(type, values);
  if (element.isF32())
    return DenseElementsAttr::get(type, ArrayRef(SmallVector<float>(values)));
  SmallVector<APFloat> rounded;
  for (double value : values) {
    bool losesInfo = false;
    rounded.emplace_back(value);
    rounded.back().convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  }
  return DenseElementsAttr::get(type, rounded);
}

Value TensorBuilder::constant(RankedTensorType type, ArrayRef<double> values) const {
  return create<ConstantOp>(cast<TypedAttr>(denseFloats(type, values)));
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
