// The file: `magic`, the body's bytes as u64, its digest as 32 hex digits, the body. Numbers are
// little-endian u64, texts and lists begin with their length.
#include "runtime/device/cuda/testing/cases/KernelCase.h"

#include "runtime/program/Element.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

namespace titan::cases {
namespace {

constexpr std::string_view magic = "titan kernel cases 1\n";
constexpr size_t digestSize = 32, headSize = magic.size() + sizeof(uint64_t) + digestSize;

class Writer {
public:
  template <typename T> void field(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      field(static_cast<uint64_t>(value.size()));
      bytes += value;
    } else {
      const auto word = std::bit_cast<uint64_t>(value);
      bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
    }
  }
  void field(const DType& value) { field(static_cast<uint64_t>(value)); }
  template <typename T> void field(const std::vector<T>& list) {
    field(static_cast<uint64_t>(list.size()));
    for (const T& element : list)
      item(*this, element);
  }

  std::string bytes;
};

/// Reads what Writer writes; `ok` is false from the first field on that is not there.
class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T> void field(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      value = take(count(1));
    } else {
      const std::string_view found = take(sizeof(uint64_t));
      uint64_t word = 0;
      std::memcpy(&word, found.data(), found.size());
      value = std::bit_cast<T>(word);
    }
  }
  void field(DType& value) {
    uint64_t word = 0;
    field(word);
    ok &= word <= static_cast<uint64_t>(DType::Bool);
    value = ok ? static_cast<DType>(word) : DType::U8;
  }
  template <typename T> void field(std::vector<T>& list) {
    list.resize(count(sizeof(uint64_t)));
    for (T& element : list)
      item(*this, element);
  }
  bool atEnd() const { return bytes_.empty(); }

  bool ok = true;

private:
  /// A length, of which each unit takes `least` bytes or more: no damaged one asks for memory.
  size_t count(size_t least) {
    uint64_t length = 0;
    field(length);
    ok &= length <= bytes_.size() / least;
    return ok ? length : 0;
  }
  std::string_view take(size_t size) {
    ok &= size <= bytes_.size();
    if (!ok)
      return {};
    const std::string_view found = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return found;
  }

  std::string_view bytes_;
};

/// One list of fields for both directions: `T` is const where they are written.
template <typename Archive, typename T> void item(Archive& archive, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, CaseModule>) {
    archive.field(value.ptx), archive.field(value.arch), archive.field(value.cubin);
  } else if constexpr (std::is_same_v<Plain, CaseLaunch>) {
    archive.field(value.entry), archive.field(value.blocks), archive.field(value.threads);
    archive.field(value.sharedBytes);
  } else if constexpr (std::is_same_v<Plain, CaseRegion>) {
    archive.field(value.before), archive.field(value.after);
  } else if constexpr (std::is_same_v<Plain, CaseOperand>) {
    archive.field(value.region), archive.field(value.offset), archive.field(value.bytes);
    archive.field(value.dtype);
  } else if constexpr (std::is_same_v<Plain, KernelCase>) {
    archive.field(value.name), archive.field(value.module), archive.field(value.bound);
    archive.field(value.launches), archive.field(value.operands), archive.field(value.scalars);
    archive.field(value.regions);
  } else {
    archive.field(value);
  }
}

bool isConsistent(const CaseFile& file, const KernelCase& kernel) {
  auto fits = [&](const CaseOperand& operand) {
    if (operand.region >= kernel.regions.size() || operand.offset < 0 || operand.bytes < 0)
      return false;
    const auto size = static_cast<int64_t>(kernel.regions[operand.region].before.size());
    return operand.offset <= size && operand.bytes <= size - operand.offset;
  };
  return kernel.module < file.modules.size() && kernel.bound >= 0 &&
         std::ranges::all_of(kernel.operands, fits) &&
         std::ranges::all_of(
             kernel.regions,
             [](const CaseRegion& region) { return region.before.size() == region.after.size(); });
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

template <typename T> T load(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

/// None where the type has no floats.
std::optional<double> floatOf(DType dtype, std::string_view element) {
  return isFloat(dtype) ? std::optional(readElement(dtype, element.data())) : std::nullopt;
}

std::string textOf(DType dtype, std::string_view element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element.data(), element.size());
  const std::string hex = fmt::format("0x{:0{}x}", bits, 2 * element.size());
  const std::optional<double> value = floatOf(dtype, element);
  return value ? fmt::format("{:.9g} ({})", *value, hex) : hex;
}

/// The elements of an operand, in a region.
struct Elements {
  const CaseOperand& operand;
  std::string_view region;
  int64_t size = byteSize(operand.dtype);

  int64_t count() const { return operand.bytes / size; }
  std::string_view operator[](int64_t i) const {
    return region.substr(static_cast<size_t>(operand.offset + i * size), static_cast<size_t>(size));
  }
};

double largestOf(const Elements& elements) {
  double largest = 0;
  for (int64_t i = 0; i < elements.count(); ++i) {
    const double value = std::abs(floatOf(elements.operand.dtype, elements[i]).value_or(0));
    largest = std::isfinite(value) ? std::max(largest, value) : largest;
  }
  return largest;
}

bool isWithin(double found, double expected, double bound, DType dtype) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found);
  constexpr double ulpOfBf16 = 0x1p-7;
  const double ulp = dtype == DType::BF16 ? ulpOfBf16 * std::abs(expected) : 0;
  return found == expected || std::abs(found - expected) <= bound + ulp;
}

std::optional<std::string> compareOperand(const KernelCase& kernel, size_t operand,
                                          std::string_view after, std::string_view found) {
  const Elements wanted{kernel.operands[operand], after}, got{kernel.operands[operand], found};
  const DType dtype = wanted.operand.dtype;
  const double bound = kernel.bound > 0 ? kernel.bound * largestOf(wanted) : 0;
  int64_t first = -1, differing = 0;
  for (int64_t i = 0; i < wanted.count(); ++i) {
    if (got[i] == wanted[i])
      continue;
    const std::optional<double> value = floatOf(dtype, got[i]);
    if (kernel.bound > 0 && value && isWithin(*value, *floatOf(dtype, wanted[i]), bound, dtype))
      continue;
    first = differing++ == 0 ? i : first;
  }
  if (differing == 0)
    return std::nullopt;
  return fmt::format("operand {} ({}), element {}: {}, expected {}; {} of {} elements differ",
                     operand, name(dtype), first, textOf(dtype, got[first]),
                     textOf(dtype, wanted[first]), differing, wanted.count());
}

} // namespace

uint64_t CaseFile::add(CaseModule module) {
  const auto found = std::ranges::find(modules, module);
  if (found == modules.end())
    modules.push_back(std::move(module));
  else
    return static_cast<uint64_t>(found - modules.begin());
  return modules.size() - 1;
}

std::string serialize(const CaseFile& file) {
  Writer body, head;
  body.field(file.modules);
  body.field(file.cases);
  head.bytes = magic;
  head.field(static_cast<uint64_t>(body.bytes.size()));
  return head.bytes + digest128(body.bytes) + body.bytes;
}

Result<CaseFile> parseCases(std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic.substr(0, bytes.size()))
    return Error::badInput("no file of kernel cases: it does not begin with '{}'",
                           magic.substr(0, magic.size() - 1));
  const uint64_t size = bytes.size() >= headSize ? load<uint64_t>(bytes.substr(magic.size())) : 0;
  const std::string_view body = bytes.substr(std::min(bytes.size(), headSize));
  if (bytes.size() < headSize || body.size() < size)
    return Error::badInput("the file ends after {} bytes, and {} were written: record it again",
                           bytes.size(), headSize + size);
  const std::string_view digest = bytes.substr(headSize - digestSize, digestSize);
  if (const std::string found = digest128(body); found != digest)
    return Error::badInput("the file is damaged: its digest is {}, and was {}: record it again",
                           found, digest);
  Reader reader(body);
  CaseFile file;
  reader.field(file.modules);
  reader.field(file.cases);
  if (!reader.ok || !reader.atEnd())
    return Error::badInput("the file has other fields than this version: record it again");
  for (const KernelCase& kernel : file.cases)
    if (!isConsistent(file, kernel))
      return Error::badInput("case '{}' has operands beyond its memory: record it again",
                             kernel.name);
  return file;
}

std::vector<std::string> compareRegion(const KernelCase& kernel, uint64_t region,
                                       std::string_view found) {
  const std::string_view after = kernel.regions[region].after;
  if (found == after)
    return {};
  std::vector<std::string> differences;
  std::vector<bool> isOperand(after.size());
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const CaseOperand& operand = kernel.operands[i];
    if (operand.region != region)
      continue;
    std::fill_n(isOperand.begin() + operand.offset, operand.bytes, true);
    if (std::optional<std::string> line = compareOperand(kernel, i, after, found))
      differences.push_back(std::move(*line));
  }
  for (size_t i = 0; i < after.size(); ++i)
    if (!isOperand[i] && found[i] != after[i]) {
      differences.push_back(
          fmt::format("byte {} of region {}, outside of all operands, was written", i, region));
      break;
    }
  return differences;
}

Result<std::string> spoil(KernelCase& kernel) {
  if (kernel.bound > 0)
    return Error::badInput("case '{}' allows differences: spoil another one", kernel.name);
  for (size_t i = kernel.operands.size(); i-- > 0;) {
    const CaseOperand& operand = kernel.operands[i];
    const int64_t size = byteSize(operand.dtype);
    if (operand.bytes < size)
      continue;
    const int64_t last = operand.bytes / size - 1;
    kernel.regions[operand.region].after[operand.offset + last * size] ^= 1;
    return fmt::format("operand {} ({}), element {}", i, name(operand.dtype), last);
  }
  return Error::badInput("case '{}' is of no values: spoil another one", kernel.name);
}

} // namespace titan::cases
