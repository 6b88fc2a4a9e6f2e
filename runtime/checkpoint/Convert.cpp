#include "runtime/checkpoint/Convert.h"

#include "runtime/program/Element.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

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

template <DType from, DType to>
Status convert(std::span<const char> elements, char* into, int64_t first) {
  using From = typename Element<from>::Bits;
  using To = typename Element<to>::Bits;
  const size_t count = elements.size() / sizeof(From);
  for (size_t i = 0; i < count; ++i) {
    From bits;
    std::memcpy(&bits, elements.data() + i * sizeof bits, sizeof bits);
    const double value = Element<from>::value(bits);
    const To result = Element<to>::rounded(value);
    if (!isExact(from, to) && std::isfinite(value) && !std::isfinite(Element<to>::value(result)))
      return Error::badInput("element {} is {:.6g}, which is too large for {}",
                             first + static_cast<int64_t>(i), value, name(to));
    std::memcpy(into + i * sizeof result, &result, sizeof result);
  }
  return {};
}

template <DType from>
Status convertTo(std::span<const char> elements, DType to, char* into, int64_t first) {
  switch (to) {
  case DType::F64:
    return convert<from, DType::F64>(elements, into, first);
  case DType::F32:
    return convert<from, DType::F32>(elements, into, first);
  case DType::F16:
    return convert<from, DType::F16>(elements, into, first);
  case DType::BF16:
    return convert<from, DType::BF16>(elements, into, first);
  default:
    return Error::internal("{} is no floating-point type", name(to));
  }
}

/// Elements on their way from one type to another.
class Conversion {
public:
  Conversion(DType from, DType to, const ByteSink& sink)
      : from_(from), to_(to), width_(byteSize(from)), sink_(sink) {}

  Status take(int64_t at, std::span<const char> bytes) {
    while (!bytes.empty()) {
      const int64_t inside = at % width_;
      const auto size = static_cast<int64_t>(bytes.size());
      const bool isWhole = inside == 0 && size >= width_;
      const int64_t count = isWhole ? size / width_ * width_ : std::min(size, width_ - inside);
      const auto part = bytes.first(static_cast<size_t>(count));
      TITAN_TRY(isWhole ? convert(at / width_, part) : collect(at / width_, inside, part));
      at += count;
      bytes = bytes.subspan(part.size());
    }
    return {};
  }

private:
  /// An element of which some bytes are there.
  struct Partial {
    std::array<char, 8> bytes{};
    int64_t count = 0;
  };

  Status collect(int64_t element, int64_t inside, std::span<const char> bytes) {
    Partial& partial = partial_[element];
    std::ranges::copy(bytes, partial.bytes.begin() + inside);
    partial.count += static_cast<int64_t>(bytes.size());
    if (partial.count < width_)
      return {};
    TITAN_TRY(convert(element, std::span(partial.bytes).first(static_cast<size_t>(width_))));
    partial_.erase(element);
    return {};
  }

  Status convert(int64_t element, std::span<const char> bytes) {
    const int64_t elements = static_cast<int64_t>(bytes.size()) / width_;
    converted_.resize(static_cast<size_t>(elements * byteSize(to_)));
    TITAN_TRY(convertElements(from_, bytes, to_, converted_, element));
    return sink_.write(element * byteSize(to_), converted_);
  }

  DType from_, to_;
  int64_t width_; ///< of an element that comes
  ByteSink sink_;
  std::string converted_;
  std::map<int64_t, Partial> partial_;
};

} // namespace

ByteSink convertingSink(DType from, DType to, const ByteSink& sink) {
  const int64_t bytes = sink.bytes() / byteSize(to) * byteSize(from);
  return ByteSink::taken(
      bytes, [conversion = std::make_shared<Conversion>(from, to, sink)](
                 int64_t at, std::span<const char> piece) { return conversion->take(at, piece); });
}

bool isExact(DType from, DType to) {
  if (!isFloat(from) || !isFloat(to))
    return false;
  return from == to || to == DType::F64 ||
         (to == DType::F32 && (from == DType::F16 || from == DType::BF16));
}

Status convertElements(DType from, std::span<const char> elements, DType to, std::span<char> into,
                       int64_t first) {
  switch (from) {
  case DType::F64:
    return convertTo<DType::F64>(elements, to, into.data(), first);
  case DType::F32:
    return convertTo<DType::F32>(elements, to, into.data(), first);
  case DType::F16:
    return convertTo<DType::F16>(elements, to, into.data(), first);
  case DType::BF16:
    return convertTo<DType::BF16>(elements, to, into.data(), first);
  default:
    return Error::internal("{} is no floating-point type", name(from));
  }
}

} // namespace titan::checkpoint
