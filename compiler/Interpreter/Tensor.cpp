#include "compiler/Interpreter/Tensor.h"

#include <limits>

using namespace mlir;

namespace titan::interpreter {

Tensor::Tensor(ArrayRef<int64_t> shape, Type element) : shape_(shape), element_(element) {
  if (isFloat())
    floats_ = std::make_shared<std::vector<double>>(size());
  else
    integers_ = std::make_shared<std::vector<int64_t>>(size());
}

Tensor Tensor::splat(ShapedType type, double value) {
  Tensor tensor(type);
  if (tensor.isFloat())
    llvm::fill(tensor.mutableFloats(), value);
  else
    llvm::fill(tensor.mutableIntegers(), static_cast<int64_t>(value));
  return tensor;
}

Tensor Tensor::unspecified(ShapedType type) {
  Tensor tensor(type);
  if (tensor.isFloat())
    llvm::fill(tensor.mutableFloats(), std::numeric_limits<double>::quiet_NaN());
  else
    llvm::fill(tensor.mutableIntegers(), std::numeric_limits<int64_t>::min());
  return tensor;
}

Tensor Tensor::scalar(Type element, double value) {
  Tensor tensor({}, element);
  tensor.mutableFloats().front() = value;
  return tensor;
}

Tensor Tensor::scalar(Type element, int64_t value) {
  if (isa<FloatType>(element))
    return scalar(element, static_cast<double>(value));
  Tensor tensor({}, element);
  tensor.mutableIntegers().front() = value;
  return tensor;
}

Tensor Tensor::of(ShapedType type, ArrayRef<double> values) {
  assert(type.getNumElements() == static_cast<int64_t>(values.size()));
  Tensor tensor(type);
  llvm::copy(values, tensor.mutableFloats().begin());
  return tensor;
}

Tensor Tensor::of(ShapedType type, ArrayRef<int64_t> values) {
  assert(type.getNumElements() == static_cast<int64_t>(values.size()));
  Tensor tensor(type);
  llvm::copy(values, tensor.mutableIntegers().begin());
  return tensor;
}

int64_t Tensor::size() const {
  int64_t count = 1;
  for (int64_t extent : shape_)
    count *= extent;
  return count;
}

SmallVector<int64_t> Tensor::strides() const {
  SmallVector<int64_t> strides(rank(), 1);
  for (int64_t d = rank() - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * shape_[d + 1];
  return strides;
}

MutableArrayRef<double> Tensor::mutableFloats() {
  if (floats_.use_count() > 1)
    floats_ = std::make_shared<std::vector<double>>(*floats_);
  return *floats_;
}

MutableArrayRef<int64_t> Tensor::mutableIntegers() {
  if (integers_.use_count() > 1)
    integers_ = std::make_shared<std::vector<int64_t>>(*integers_);
  return *integers_;
}

Tensor Tensor::reshaped(ArrayRef<int64_t> shape) const {
  Tensor result = *this;
  result.shape_.assign(shape.begin(), shape.end());
  assert(result.size() == size());
  return result;
}

namespace {

template <typename T>
void copyDims(ArrayRef<int64_t> shape, const T* source, ArrayRef<int64_t> from, T* result,
              ArrayRef<int64_t> to) {
  if (shape.empty()) {
    *result = *source;
    return;
  }
  if (shape.size() == 1) {
    for (int64_t i = 0; i < shape[0]; ++i)
      result[i * to[0]] = source[i * from[0]];
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i)
    copyDims(shape.drop_front(), source + i * from[0], from.drop_front(), result + i * to[0],
             to.drop_front());
}

} // namespace

void copyElements(ArrayRef<int64_t> shape, const Tensor& source, const Walk& from, Tensor& result,
                  const Walk& to) {
  if (llvm::is_contained(shape, 0))
    return;
  if (source.isFloat())
    copyDims(shape, source.floats().data() + from.start, from.strides,
             result.mutableFloats().data() + to.start, to.strides);
  else
    copyDims(shape, source.integers().data() + from.start, from.strides,
             result.mutableIntegers().data() + to.start, to.strides);
}

Walk wholeWalk(const Tensor& tensor) { return {0, tensor.strides()}; }

} // namespace titan::interpreter
