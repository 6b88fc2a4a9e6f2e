#include "compiler/Eager/TensorBytes.h"

#include <cstring>

namespace titan::eager {

namespace {

template <typename T> T load(const char* bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T> void store(char* bytes, int64_t i, T value) {
  std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
}

double floatAt(DType dtype, const char* bytes, int64_t i) {
  switch (dtype) {
  case DType::F64:
    return load<double>(bytes, i);
  case DType::BF16:
    return fromBFloat16(load<uint16_t>(bytes, i));
  case DType::F16:
    return fromFloat16(load<uint16_t>(bytes, i));
  default:
    return load<float>(bytes, i);
  }
}

int64_t integerAt(DType dtype, const char* bytes, int64_t i) {
  switch (dtype) {
  case DType::I32:
    return load<int32_t>(bytes, i);
  case DType::I16:
    return load<int16_t>(bytes, i);
  case DType::I8:
    return load<int8_t>(bytes, i);
  case DType::U32:
    return load<uint32_t>(bytes, i);
  case DType::U16:
    return load<uint16_t>(bytes, i);
  case DType::U8:
  case DType::Bool:
    return load<uint8_t>(bytes, i);
  default:
    return load<int64_t>(bytes, i);
  }
}

void storeFloat(DType dtype, char* bytes, int64_t i, double value) {
  switch (dtype) {
  case DType::F64:
    return store(bytes, i, value);
  case DType::BF16:
    return store(bytes, i, toBFloat16(static_cast<float>(value)));
  case DType::F16:
    return store(bytes, i, toFloat16(static_cast<float>(value)));
  default:
    return store(bytes, i, static_cast<float>(value));
  }
}

void storeInteger(DType dtype, char* bytes, int64_t i, int64_t value) {
  switch (byteSize(dtype)) {
  case 1:
    return store(bytes, i, static_cast<uint8_t>(value));
  case 2:
    return store(bytes, i, static_cast<uint16_t>(value));
  case 4:
    return store(bytes, i, static_cast<uint32_t>(value));
  default:
    return store(bytes, i, value);
  }
}

} // namespace

interpreter::Tensor decode(mlir::RankedTensorType type, DType dtype, const char* bytes) {
  interpreter::Tensor tensor(type);
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    if (tensor.isFloat())
      tensor.mutableFloats()[i] = floatAt(dtype, bytes, i);
    else
      tensor.mutableIntegers()[i] = integerAt(dtype, bytes, i);
  }
  return tensor;
}

void encode(const interpreter::Tensor& tensor, DType dtype, char* bytes) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.isFloat())
      storeFloat(dtype, bytes, i, tensor.floats()[i]);
    else
      storeInteger(dtype, bytes, i, tensor.integers()[i]);
  }
}

} // namespace titan::eager
