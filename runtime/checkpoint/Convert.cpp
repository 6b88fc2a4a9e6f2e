#include "runtime/checkpoint/Convert.h"

#include "runtime/program/Element.h"

#include <cmath>
#include <cstring>

namespace titan::checkpoint {
namespace {

/// The float next to `value` that is odd where it is not exact: rounding it again, to a type of at
/// most 22 bits, gives what rounding `value` does.
float roundedToOdd(double value) {
  float rounded = static_cast<float>(value);
  if (static_cast<double>(rounded) == value || std::isnan(value))
    return rounded;
  if (std::abs(static_cast<double>(rounded)) > std::abs(value))
    rounded = std::nextafter(rounded, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(rounded) | 1);
}

template <DType type> struct Element;
template <> struct Element<DType::F64> {
  using Bits = double;
  static double value(Bits bits) { return bits; }
  static Bits rounded(double value) { return value; }
};
template <> struct Element<DType::F32> {
  using Bits = float;
  static double value(Bits bits) { return static_cast<double>(bits); }
  static Bits rounded(double value) { return static_cast<float>(value); }
};
template <> struct Element<DType::F16> {
  using Bits = uint16_t;
  static double value(Bits bits) { return static_cast<double>(fromFloat16(bits)); }
  static Bits rounded(double value) { return toFloat16(roundedToOdd(value)); }
};
template <> struct Element<DType::BF16> {
  using Bits = uint16_t;
  static double value(Bits bits) { return static_cast<double>(fromBFloat16(bits)); }
  static Bits rounded(double value) { return toBFloat16(roundedToOdd(value)); }
};

template <DType from, DType to> Status convert(std::span<const char> elements, char* into) {
  using From = typename Element<from>::Bits;
  using To = typename Element<to>::Bits;
  const size_t count = elements.size() / sizeof(From);
  for (size_t i = 0; i < count; ++i) {
    From bits;
    std::memcpy(&bits, elements.data() + i * sizeof bits, sizeof bits);
    const double value = Element<from>::value(bits);
    const To result = Element<to>::rounded(value);
    if (!isExact(from, to) && std::isfinite(value) && !std::isfinite(Element<to>::value(result)))
      return Error::badInput("element {} is {:.6g}, which is too large for {}", i, value, name(to));
    std::memcpy(into + i * sizeof result, &result, sizeof result);
  }
  return {};
}

template <DType from> Status convertTo(std::span<const char> elements, DType to, char* into) {
  switch (to) {
  case DType::F64:
    return convert<from, DType::F64>(elements, into);
  case DType::F32:
    return convert<from, DType::F32>(elements, into);
  case DType::F16:
    return convert<from, DType::F16>(elements, into);
  case DType::BF16:
    return convert<from, DType::BF16>(elements, into);
  default:
    return Error::internal("{} is no floating-point type", name(to));
  }
}

} // namespace

bool isExact(DType from, DType to) {
  if (!isFloat(from) || !isFloat(to))
    return false;
  return from == to || to == DType::F64 ||
         (to == DType::F32 && (from == DType::F16 || from == DType::BF16));
}

Status convertElements(DType from, std::span<const char> elements, DType to, std::span<char> into) {
  switch (from) {
  case DType::F64:
    return convertTo<DType::F64>(elements, to, into.data());
  case DType::F32:
    return convertTo<DType::F32>(elements, to, into.data());
  case DType::F16:
    return convertTo<DType::F16>(elements, to, into.data());
  case DType::BF16:
    return convertTo<DType::BF16>(elements, to, into.data());
  default:
    return Error::internal("{} is no floating-point type", name(from));
  }
}

} // namespace titan::checkpoint
