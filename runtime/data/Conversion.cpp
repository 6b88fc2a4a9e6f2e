#include "runtime/data/Conversion.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace titan {

namespace {

/// C++ types of the dtypes; the 16-bit floats are their bits and a tag.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <typename T> T load(const char* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}
template <typename T> void store(char* address, T value) {
  std::memcpy(address, &value, sizeof value);
}

double toDouble(double value) { return value; }
double toDouble(float value) { return value; }
double toDouble(Float16 value) { return fromFloat16(value.bits); }
double toDouble(BFloat16 value) { return fromBFloat16(value.bits); }

template <typename T> T fromDouble(double value) {
  if constexpr (std::is_same_v<T, Float16>)
    return {toFloat16(static_cast<float>(value))};
  else if constexpr (std::is_same_v<T, BFloat16>)
    return {toBFloat16(static_cast<float>(value))};
  else
    return static_cast<T>(value);
}

template <typename From, typename To, typename Range>
int64_t convertFloats(const char* source, char* destination, int64_t count, Range) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(destination, source, static_cast<size_t>(count) * sizeof(To));
  } else {
    for (int64_t i = 0; i < count; ++i)
      store(destination + i * int64_t{sizeof(To)},
            fromDouble<To>(toDouble(load<From>(source + i * int64_t{sizeof(From)}))));
  }
  return -1;
}

template <typename From, typename To, typename Range>
int64_t convertIntegers(const char* source, char* destination, int64_t count, Range range) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<int64_t>(load<From>(source + i * int64_t{sizeof(From)}));
    if ((value < range.low || value > range.high) && value != range.other)
      return i;
    store(destination + i * int64_t{sizeof(To)}, static_cast<To>(value));
  }
  return -1;
}

template <typename To, typename Range>
int64_t convertBytesToFloats(const char* source, char* destination, int64_t count, Range) {
  for (int64_t i = 0; i < count; ++i)
    store(destination + i * int64_t{sizeof(To)},
          fromDouble<To>(static_cast<unsigned char>(source[i])));
  return -1;
}

bool isFloat(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

/// Calls `function` with a value of the C++ type of `dtype`, which must be a float type.
template <typename F> auto withFloat(DType dtype, F&& function) {
  switch (dtype) {
  case DType::F64:
    return function(double{});
  case DType::F16:
    return function(Float16{});
  case DType::BF16:
    return function(BFloat16{});
  default:
    return function(float{});
  }
}

/// The same for integers and bools.
template <typename F> auto withInteger(DType dtype, F&& function) {
  switch (dtype) {
  case DType::I32:
    return function(int32_t{});
  case DType::I16:
    return function(int16_t{});
  case DType::I8:
    return function(int8_t{});
  case DType::U32:
    return function(uint32_t{});
  case DType::U16:
    return function(uint16_t{});
  case DType::U8:
  case DType::Bool:
    return function(uint8_t{});
  default:
    return function(int64_t{});
  }
}

std::pair<int64_t, int64_t> valueRange(DType dtype) {
  if (dtype == DType::Bool)
    return {0, 1};
  return withInteger(dtype, [](auto zero) -> std::pair<int64_t, int64_t> {
    using Limits = std::numeric_limits<decltype(zero)>;
    return {int64_t{Limits::min()}, static_cast<int64_t>(Limits::max())};
  });
}

/// How many elements of a sample of `shape` in sequence are of one channel; 0: it has no dimension
/// of `channels`.
int64_t runOfChannel(const Shape& shape, int64_t channels) {
  if (channels == 1 || (!shape.empty() && shape.front() == channels))
    return elementCount(shape) / channels;
  return !shape.empty() && shape.back() == channels ? 1 : 0;
}

/// values[c], or the one value for every channel, or `absent` when none was given.
double channelValue(const std::vector<double>& values, size_t channel, double absent) {
  return values.empty() ? absent : values[values.size() == 1 ? 0 : channel];
}

} // namespace

Result<Conversion> Conversion::create(DType from, const FieldSpec& field,
                                      const DataRecipe& recipe) {
  const DType to = field.dtype;
  Conversion conversion;
  conversion.from_ = from;
  conversion.count_ = elementCount(field.shape);

  if (isFloat(from) && isFloat(to)) {
    conversion.function_ = withFloat(from, [&](auto source) {
      return withFloat(to, [&](auto destination) -> Function {
        return &convertFloats<decltype(source), decltype(destination), Range>;
      });
    });
    return conversion;
  }

  if (!isFloat(from) && !isFloat(to)) {
    const auto [low, high] = valueRange(to);
    // A bool's byte may hold anything in a file.
    const auto [sourceLow, sourceHigh] = valueRange(from == DType::Bool ? DType::U8 : from);
    conversion.range_ = {low, high, low};
    if (field.classes > 0)
      conversion.range_ = {0, field.classes - 1, field.ignoreIndex};
    conversion.classes_ = field.classes;
    conversion.classesByElement_ = classesByElement(field);
    conversion.checks_ = conversion.range_.low > sourceLow || conversion.range_.high < sourceHigh ||
                         !conversion.classesByElement_.empty();
    conversion.function_ = withInteger(from, [&](auto source) {
      return withInteger(to, [&](auto destination) -> Function {
        return &convertIntegers<decltype(source), decltype(destination), Range>;
      });
    });
    return conversion;
  }

  if (isFloat(to) && (from == DType::Bool || (from == DType::U8 && field.target))) {
    conversion.function_ = withFloat(to, [](auto destination) -> Function {
      return &convertBytesToFloats<decltype(destination), Range>;
    });
    return conversion;
  }

  if (to != DType::F32 || from != DType::U8)
    return Error::badInput("field '{}' needs {}, the array has {}{}", field.name, name(to),
                           name(from),
                           !isFloat(to)       ? ""
                           : to == DType::F32 ? ": save it with .astype('float32'), or as uint8"
                                              : ": save it with .astype('float32')");

  const size_t channels = std::max({recipe.mean.size(), recipe.std.size(), size_t{1}});
  conversion.channels_ = static_cast<int64_t>(channels);
  conversion.run_ = runOfChannel(field.shape, conversion.channels_);
  if (conversion.run_ == 0)
    return Error::badInput(
        "data.mean and data.std have {} channels, field '{}' has sample shape {}", channels,
        field.name, toString(field.shape));
  for (size_t channel = 0; channel < channels; ++channel)
    for (int value = 0; value < 256; ++value)
      conversion.table_.push_back(
          static_cast<float>((value * recipe.scale - channelValue(recipe.mean, channel, 0)) /
                             channelValue(recipe.std, channel, 1)));
  return conversion;
}

std::string Conversion::scalingKeys(const DataRecipe& recipe) {
  std::vector<const char*> keys;
  if (recipe.scale != DataRecipe().scale)
    keys.push_back("data.scale");
  if (!recipe.mean.empty())
    keys.push_back("data.mean");
  if (!recipe.std.empty())
    keys.push_back("data.std");
  return fmt::format("{}", fmt::join(keys, ", "));
}

std::vector<int64_t> classesByElement(const FieldSpec& field) {
  std::vector<int64_t> classes;
  const size_t count = field.runs.empty() ? 0 : static_cast<size_t>(elementCount(field.shape));
  while (classes.size() < count)
    for (const ClassRun& run : field.runs)
      classes.insert(classes.end(), static_cast<size_t>(run.count),
                     run.classes > 0 ? run.classes : field.classes);
  return classes;
}

int64_t Conversion::apply(const char* source, char* destination) const {
  if (function_) {
    const int64_t bad = function_(source, destination, count_, range_);
    return bad < 0 ? outsideOfOwn(source) : bad;
  }
  int64_t channel = 0;
  for (int64_t first = 0; first < count_; first += run_) {
    const float* values = table_.data() + 256 * channel;
    for (int64_t i = first; i < first + run_; ++i)
      store(destination + i * 4, values[static_cast<unsigned char>(source[i])]);
    if (++channel == channels_)
      channel = 0;
  }
  return -1;
}

int64_t Conversion::outsideOfOwn(const char* source) const {
  for (size_t i = 0; i < classesByElement_.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const int64_t classes = classesByElement_[i], value = valueAt(source, index);
    if (classes > 0 && (value < 0 || value >= classes) && value != range_.other)
      return index;
  }
  return -1;
}

int64_t Conversion::classesAt(int64_t index) const {
  return classesByElement_.empty() ? classes_ : classesByElement_[static_cast<size_t>(index)];
}

int64_t Conversion::valueAt(const char* source, int64_t index) const {
  return withInteger(from_, [&](auto zero) {
    return static_cast<int64_t>(
        load<decltype(zero)>(source + index * static_cast<int64_t>(sizeof zero)));
  });
}

} // namespace titan
