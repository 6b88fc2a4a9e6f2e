#include "runtime/program/Element.h"

#include <cstring>

namespace titan {
namespace {

template <typename T> T readAs(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

} // namespace

bool isFloat(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

double readElement(DType dtype, const char* address) {
  switch (dtype) {
  case DType::F64:
    return readAs<double>(address);
  case DType::F32:
    return readAs<float>(address);
  case DType::F16:
    return fromFloat16(readAs<uint16_t>(address));
  case DType::BF16:
    return fromBFloat16(readAs<uint16_t>(address));
  case DType::I64:
    return static_cast<double>(readAs<int64_t>(address));
  case DType::I32:
    return readAs<int32_t>(address);
  case DType::I16:
    return readAs<int16_t>(address);
  case DType::I8:
    return readAs<int8_t>(address);
  case DType::U32:
    return readAs<uint32_t>(address);
  case DType::U16:
    return readAs<uint16_t>(address);
  case DType::U8:
  case DType::Bool:
    return readAs<uint8_t>(address);
  }
  return 0;
}

} // namespace titan
