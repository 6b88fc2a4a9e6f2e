#include "frontend/onnx/fold/HostTensor.h"

#include <cmath>
#include <cstring>

namespace titan::frontend {

int64_t HostTensor::integer(int64_t i) const {
  if (!isFloat())
    return integers[i];
  // As titan.convert: toward zero, saturating, NaN to 0.
  double value = reals[i];
  if (std::isnan(value))
    return 0;
  if (value >= 9223372036854775808.0)
    return INT64_MAX;
  if (value < -9223372036854775808.0)
    return INT64_MIN;
  return static_cast<int64_t>(value);
}

void HostTensor::push(double value) {
  switch (dtype) {
  case DType::F64:
    reals.push_back(value);
    break;
  case DType::F32:
    reals.push_back(static_cast<float>(value));
    break;
  case DType::F16:
    reals.push_back(fromFloat16(toFloat16(static_cast<float>(value))));
    break;
  case DType::BF16:
    reals.push_back(fromBFloat16(toBFloat16(static_cast<float>(value))));
    break;
  case DType::Bool:
    integers.push_back(value != 0);
    break;
  default: {
    HostTensor wide{DType::F64, {}, {}, {value}};
    push(wide.integer(0));
  }
  }
}

void HostTensor::push(int64_t value) {
  switch (dtype) {
  case DType::I64:
    integers.push_back(value);
    break;
  case DType::I32:
    integers.push_back(static_cast<int32_t>(value));
    break;
  case DType::I16:
    integers.push_back(static_cast<int16_t>(value));
    break;
  case DType::I8:
    integers.push_back(static_cast<int8_t>(value));
    break;
  case DType::U32:
    integers.push_back(static_cast<uint32_t>(value));
    break;
  case DType::U16:
    integers.push_back(static_cast<uint16_t>(value));
    break;
  case DType::U8:
    integers.push_back(static_cast<uint8_t>(value));
    break;
  case DType::Bool:
    integers.push_back(value != 0);
    break;
  default:
    push(static_cast<double>(value));
  }
}

void HostTensor::pushFrom(const HostTensor& other, int64_t position) {
  if (isFloat())
    reals.push_back(other.reals[position]);
  else
    integers.push_back(other.integers[position]);
}

HostTensor HostTensor::empty(DType dtype, Shape shape) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  return tensor;
}

HostTensor HostTensor::vector(const std::vector<int64_t>& values) {
  return {DType::I64, {static_cast<int64_t>(values.size())}, values, {}};
}

HostTensor HostTensor::scalar(int64_t value) { return {DType::I64, {}, {value}, {}}; }

template <typename T> static T load(const std::string& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

Result<HostTensor> toHost(const Tensor& tensor) {
  HostTensor host = HostTensor::empty(tensor.dtype, tensor.shape);
  int64_t count = host.size();
  if (count > kLargestFolded)
    return Error::internal("tensor '{}' of {} elements is too large to fold",
                           printable(tensor.name), count);
  std::string bytes = TITAN_TRY(tensor.read());
  for (int64_t i = 0; i < count; ++i)
    switch (tensor.dtype) {
    case DType::F64:
      host.reals.push_back(load<double>(bytes, i));
      break;
    case DType::F32:
      host.reals.push_back(load<float>(bytes, i));
      break;
    case DType::F16:
      host.reals.push_back(fromFloat16(load<uint16_t>(bytes, i)));
      break;
    case DType::BF16:
      host.reals.push_back(fromBFloat16(load<uint16_t>(bytes, i)));
      break;
    case DType::I64:
      host.integers.push_back(load<int64_t>(bytes, i));
      break;
    case DType::I32:
      host.integers.push_back(load<int32_t>(bytes, i));
      break;
    case DType::I16:
      host.integers.push_back(load<int16_t>(bytes, i));
      break;
    case DType::I8:
      host.integers.push_back(load<int8_t>(bytes, i));
      break;
    case DType::U32:
      host.integers.push_back(load<uint32_t>(bytes, i));
      break;
    case DType::U16:
      host.integers.push_back(load<uint16_t>(bytes, i));
      break;
    case DType::U8:
      host.integers.push_back(load<uint8_t>(bytes, i));
      break;
    case DType::Bool:
      host.integers.push_back(load<uint8_t>(bytes, i) != 0);
      break;
    }
  return host;
}

template <typename T> static void store(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string toBytes(const HostTensor& tensor) {
  std::string bytes;
  for (int64_t i = 0, count = tensor.size(); i < count; ++i)
    switch (tensor.dtype) {
    case DType::F64:
      store(bytes, tensor.reals[i]);
      break;
    case DType::F32:
      store(bytes, static_cast<float>(tensor.reals[i]));
      break;
    case DType::F16:
      store(bytes, toFloat16(static_cast<float>(tensor.reals[i])));
      break;
    case DType::BF16:
      store(bytes, toBFloat16(static_cast<float>(tensor.reals[i])));
      break;
    case DType::I64:
      store(bytes, tensor.integers[i]);
      break;
    case DType::I32:
    case DType::U32:
      store(bytes, static_cast<uint32_t>(tensor.integers[i]));
      break;
    case DType::I16:
    case DType::U16:
      store(bytes, static_cast<uint16_t>(tensor.integers[i]));
      break;
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      store(bytes, static_cast<uint8_t>(tensor.integers[i]));
      break;
    }
  return bytes;
}

std::optional<Shape> broadcastShape(std::span<const int64_t> a, std::span<const int64_t> b) {
  Shape shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    // Aligned at the last dimension; a missing dimension counts as 1.
    size_t fromEnd = shape.size() - i;
    int64_t x = fromEnd <= a.size() ? a[a.size() - fromEnd] : 1;
    int64_t y = fromEnd <= b.size() ? b[b.size() - fromEnd] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    shape[i] = x == 1 ? y : x;
  }
  return shape;
}

} // namespace titan::frontend
