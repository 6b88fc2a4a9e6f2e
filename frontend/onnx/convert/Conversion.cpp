#include "frontend/onnx/convert/Conversion.h"

#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Scopes.h"

#include "frontend/Decimal.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace titan::frontend {

DenseElementsAttr denseFromBytes(MLIRContext* context, DType dtype, const Shape& shape,
                                 const std::string& bytes) {
  auto type = RankedTensorType::get(shape, elementTypeOf(context, dtype));
  if (dtype == DType::Bool) {
    SmallVector<bool> values(bytes.begin(), bytes.end());
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  size_t width = static_cast<size_t>(byteSize(dtype));
  bool splat = bytes.size() > width &&
               std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0;
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(bytes.data(), splat ? width : bytes.size()));
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Result<Value> Conversion::operand(size_t i) {
  if (!has(i))
    return error("operand {} is missing", i);
  Known& known = inputs_[i];
  if (known.value)
    return known.value;
  if (!known.host && !known.file)
    return error("operand '{}' could not be imported", printable(node.inputs[i]));
  DType dtype = known.host ? known.host->dtype : known.file->dtype;
  const Shape& shape = known.host ? known.host->shape : known.file->shape;
  if (elementCount(shape) == 0)
    return error("operand '{}' of shape {} is empty", printable(node.inputs[i]), toString(shape));
  std::string bytes = known.host ? toBytes(*known.host) : TITAN_TRY(known.file->read());
  known.value = create<ir::ConstantOp>(
      cast<TypedAttr>(denseFromBytes(builder.getContext(), dtype, shape, bytes)));
  return known.value;
}

Result<std::vector<Value>> Conversion::sequence(size_t i) const {
  if (!has(i) || !inputs_[i].sequence)
    return error("operand {} is not a sequence", i);
  return *inputs_[i].sequence;
}

const HostTensor* Conversion::constant(size_t i) const {
  return has(i) && inputs_[i].host ? &*inputs_[i].host : nullptr;
}

Result<std::vector<int64_t>> Conversion::list(size_t i, const char* what) const {
  const HostTensor* host = constant(i);
  if (!host)
    return error("{} must be known at compile time", what);
  return listOf(*host);
}

Result<double> Conversion::scalar(size_t i, const char* what) const {
  const HostTensor* host = constant(i);
  if (!host || host->size() != 1)
    return error("{} must be a scalar that is known at compile time", what);
  return host->dtype == DType::F32 ? asWritten(static_cast<float>(host->real(0))) : host->real(0);
}

Result<int64_t> Conversion::integerScalar(size_t i, const char* what) const {
  const HostTensor* host = constant(i);
  if (!host || host->size() != 1 || host->isFloat())
    return error("{} must be an integer that is known at compile time", what);
  return host->integers[0];
}

Result<std::optional<std::vector<int64_t>>> Conversion::axes(size_t i,
                                                             const char* attribute) const {
  if (has(i))
    return std::optional(TITAN_TRY(list(i, attribute)));
  return node.integers(attribute);
}

Result<Value> Conversion::floatOperand(size_t i) {
  Value value = TITAN_TRY(operand(i));
  if (!isFloat(value))
    return error("operand {} is not floating", i);
  return value;
}

Result<Value> Conversion::integerOperand(size_t i) {
  Value value = TITAN_TRY(operand(i));
  if (isFloat(value) || ir::tensorType(value).getElementType().isInteger(1))
    return error("operand {} has no integers", i);
  return value;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Value Conversion::broadcastTo(Value value, ArrayRef<int64_t> shape) const {
  ArrayRef<int64_t> from = ir::tensorType(value).getShape();
  if (from == shape)
    return value;
  if (auto constant = value.getDefiningOp<ir::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return create<ir::ConstantOp>(
          cast<TypedAttr>(splat.resizeSplat(ir::tensorType(value).clone(shape))));
  // Dimensions that repeat are dropped first: titan.broadcast maps equal extents only.
  SmallVector<int64_t> kept, dims;
  size_t lead = shape.size() - from.size();
  for (auto [d, extent] : llvm::enumerate(from))
    if (extent == shape[lead + d]) {
      kept.push_back(extent);
      dims.push_back(static_cast<int64_t>(lead + d));
    }
  if (kept.size() != from.size())
    value = reshape(value, kept);
  return broadcast(value, shape, dims);
}

Value Conversion::slice(Value value, ArrayRef<int64_t> shape, ArrayRef<int64_t> offsets,
                        ArrayRef<int64_t> strides) const {
  if (ir::tensorType(value).getShape() == shape)
    return value;
  return create<ir::SliceOp>(ir::tensorType(value).clone(shape), value, offsets, strides);
}

Value Conversion::isIndex(Value indices, int64_t dim, int64_t extent) const {
  Shape shape = shapeOf(indices);
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    dims.push_back(d < dim ? d : d + 1);
  shape.insert(shape.begin() + dim, extent);
  auto type = RankedTensorType::get(shape, ir::tensorType(indices).getElementType());
  Value count = create<ir::IotaOp>(type, builder.getI64IntegerAttr(dim));
  return compare(ir::ComparePredicate::EQ, broadcast(indices, shape, dims), count);
}

Value Conversion::run(Value value, int64_t axis, int64_t begin, int64_t count) const {
  Shape shape = shapeOf(value);
  SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1);
  shape[axis] = count;
  offsets[axis] = begin;
  return slice(value, shape, offsets, strides);
}

Value Conversion::reshaped(Value value, ArrayRef<int64_t> shape) const {
  if (auto inner = value.getDefiningOp<ir::ReshapeOp>())
    value = inner.getOperand();
  return ir::tensorType(value).getShape() == shape ? value : reshape(value, shape);
}

Value Conversion::transposed(Value value, ArrayRef<int64_t> permutation) const {
  SmallVector<int64_t> total(permutation);
  if (auto inner = value.getDefiningOp<ir::TransposeOp>()) {
    for (int64_t& d : total)
      d = inner.getPermutation()[d];
    value = inner.getOperand();
  }
  return llvm::is_sorted(total) ? value : transpose(value, total);
}

Result<Value> Conversion::joined(ArrayRef<Value> values, int64_t axis) const {
  Shape first = shapeOf(values.front());
  for (Value value : values) {
    Shape shape = shapeOf(value);
    bool fits = shape.size() == first.size() && ir::tensorType(value).getElementType() ==
                                                    ir::tensorType(values.front()).getElementType();
    if (fits) {
      shape[axis] = first[axis];
      fits = shape == first;
    }
    if (!fits)
      return error("operands of {} and {} cannot be joined along {}", toString(first),
                   toString(shapeOf(value)), axis);
  }
  return values.size() == 1 ? values.front()
                            : Value(create<ir::ConcatOp>(ValueRange(values), axis));
}

Value Conversion::pickLoss(Value scores, Value targets, int64_t ignored, double smoothing) const {
  Type element = ir::accumulationType(ir::tensorType(scores).getElementType());
  return create<ir::CrossEntropyOp>(
      RankedTensorType::get(ir::tensorType(targets).getShape(), element), scores, targets,
      builder.getI64IntegerAttr(ignored), builder.getF64FloatAttr(smoothing));
}

Result<std::vector<Value>> Conversion::broadcastOperands(ArrayRef<size_t> operands) {
  std::vector<Value> values;
  std::optional<Shape> shape;
  for (size_t i : operands) {
    Value value = TITAN_TRY(operand(i));
    Shape own = shapeOf(value);
    shape = shape ? broadcastShape(*shape, own) : std::optional(own);
    if (!shape)
      return error("operands of shapes {} and {} do not broadcast",
                   toString(shapeOf(values.front())), toString(own));
    TITAN_TRY(checkedElementCount(*shape, node.shown()));
    values.push_back(value);
  }
  for (Value& value : values)
    value = broadcastTo(value, *shape);
  return values;
}

/// If `value` is a transposition whose free dimensions keep their order under it, its operand; the
/// dimension lists are rewritten.
static Value absorbTranspose(Value value, SmallVector<int64_t>& batch, int64_t& contracting) {
  auto transpose = value.getDefiningOp<ir::TransposeOp>();
  if (!transpose)
    return value;
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  int64_t last = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(permutation.size()); ++d) {
    if (d == contracting || llvm::is_contained(batch, d))
      continue;
    if (permutation[d] < last)
      return value;
    last = permutation[d];
  }
  for (int64_t& d : batch)
    d = permutation[d];
  contracting = permutation[contracting];
  return transpose.getOperand();
}

std::optional<DType> Conversion::namedType(const char* attribute,
                                           std::optional<DType> otherwise) const {
  const int64_t number = node.integer(attribute, 0);
  return number == 0 ? otherwise : elementType(number);
}

Result<Value> Conversion::contract(Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch,
                                   ArrayRef<int64_t> rhsBatch, int64_t lhsContracting,
                                   int64_t rhsContracting) const {
  Type element = ir::tensorType(lhs).getElementType();
  if (!isFloat(lhs) || element != ir::tensorType(rhs).getElementType())
    return error("operands must be floating and of one type");
  int64_t k = shapeOf(lhs)[lhsContracting];
  if (k != shapeOf(rhs)[rhsContracting])
    return error("operands {} and {} do not match: {} against {}", toString(shapeOf(lhs)),
                 toString(shapeOf(rhs)), k, shapeOf(rhs)[rhsContracting]);
  SmallVector<int64_t> leftBatch(lhsBatch), rightBatch(rhsBatch);
  lhs = absorbTranspose(lhs, leftBatch, lhsContracting);
  rhs = absorbTranspose(rhs, rightBatch, rhsContracting);
  Value product = create<ir::ContractOp>(
      lhs, rhs, Value(), ArrayRef<int64_t>(leftBatch), ArrayRef<int64_t>(rightBatch),
      ArrayRef<int64_t>(lhsContracting), ArrayRef<int64_t>(rhsContracting));
  return convert(product, element);
}

} // namespace titan::frontend
