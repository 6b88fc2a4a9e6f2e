#include "frontend/onnx/name/Values.h"

#include "frontend/onnx/fold/HostTensor.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

namespace titan::frontend {

static std::optional<HostTensor> valuesOf(const Tensor& tensor) {
  if (!tensor.missing.empty() || elementCount(tensor.shape) > kLargestFolded)
    return std::nullopt;
  Result<HostTensor> host = toHost(tensor);
  return host.ok() ? std::optional(std::move(*host)) : std::nullopt;
}

bool isUniform(const Tensor& tensor) {
  if (!tensor.missing.empty() || tensor.byteCount() > (1 << 20))
    return false;
  Result<std::string> bytes = tensor.read();
  size_t width = static_cast<size_t>(byteSize(tensor.dtype));
  if (!bytes.ok() || bytes->size() < width)
    return false;
  return std::equal(bytes->begin() + static_cast<long>(width), bytes->end(), bytes->begin());
}

bool isZeros(const Tensor& tensor) {
  if (!tensor.missing.empty())
    return false;
  Result<std::string> bytes = tensor.read();
  return bytes.ok() && bytes->find_first_not_of('\0') == std::string::npos;
}

bool hasEqualSlices(const Tensor& tensor) {
  if (!tensor.missing.empty() || tensor.shape.empty() || tensor.shape[0] < 1)
    return false;
  Result<std::string> bytes = tensor.read();
  if (!bytes.ok())
    return false;
  // All slices equal the first where the bytes equal themselves, moved by one slice.
  size_t slice = bytes->size() / static_cast<size_t>(tensor.shape[0]);
  return std::equal(bytes->begin() + static_cast<long>(slice), bytes->end(), bytes->begin());
}

bool isMask(const Tensor& tensor) {
  if (tensor.dtype == DType::Bool)
    return true;
  std::optional<HostTensor> host = valuesOf(tensor);
  if (!host || host->size() < 2)
    return false;
  // What people write for minus infinity.
  constexpr double kMasked = -1e4;
  for (int64_t i = 0; i < host->size(); ++i)
    if (double value = host->real(i); value != 0 && value != 1 && !(value <= kMasked))
      return false;
  return true;
}

bool isPattern(const Tensor& tensor) {
  std::optional<HostTensor> host = valuesOf(tensor);
  if (!host || !isMask(tensor))
    return false;
  bool forbids = false, zeros = false, ones = false;
  for (int64_t i = 0; i < host->size(); ++i) {
    double value = host->real(i);
    forbids |= value < 0;
    zeros |= value == 0;
    ones |= value == 1;
  }
  auto extents = std::count_if(tensor.shape.begin(), tensor.shape.end(),
                               [](int64_t extent) { return extent > 1; });
  return forbids ? zeros || ones : zeros && ones && extents > 1;
}

bool hasThreeValues(const Tensor& tensor) {
  const auto width = static_cast<size_t>(byteSize(tensor.dtype));
  constexpr size_t kPiece = 1 << 16; // three of the first elements differ, most often
  std::set<std::string> different;
  std::string last;
  for (uint64_t from = 0; tensor.missing.empty() && from < tensor.byteCount(); from += kPiece) {
    Result<std::string> read =
        tensor.readPart(from, std::min<uint64_t>(kPiece, tensor.byteCount() - from));
    if (!read.ok())
      return false;
    for (size_t i = 0; i < read->size(); i += width) {
      if (read->compare(i, width, last) == 0)
        continue;
      last = read->substr(i, width);
      if (different.insert(last).second && different.size() == 3)
        return true;
    }
  }
  return false;
}

namespace {

/// The rows of a table that has one for each position, as many as are folded: enough to tell.
struct Rows {
  std::vector<double> values;
  size_t width = 0;
  double tolerance = 0; ///< of a sum of two squares

  size_t count() const { return values.size() / width; }
  std::span<const double> row(size_t i) const {
    return std::span(values).subspan(i * width, width);
  }
};

/// The values of the first `count` rows of `width`; no more than these are read.
std::optional<HostTensor> firstRows(const Tensor& tensor, int64_t count, int64_t width) {
  Tensor part = tensor;
  part.shape = {count, width};
  if (part.inlineBytes)
    part.inlineBytes =
        std::make_shared<const std::string>(tensor.inlineBytes->substr(0, part.byteCount()));
  if (part.span)
    part.span->bytes = part.byteCount();
  return valuesOf(part);
}

/// Nothing where the first row has more than zeros and ones, or the others have not.
std::optional<Rows> angleRows(const Tensor& tensor) {
  size_t lead = 0;
  while (lead < tensor.shape.size() && tensor.shape[lead] == 1)
    ++lead;
  constexpr uint64_t kLargestRead = uint64_t(1) << 26;
  if (tensor.shape.size() < lead + 2 || !tensor.missing.empty() ||
      tensor.byteCount() > kLargestRead)
    return std::nullopt;
  int64_t width = elementCount(tensor.shape) / std::max<int64_t>(1, tensor.shape[lead]);
  if (width == 0 || 2 * width > kLargestFolded)
    return std::nullopt;
  auto isTrivial = [](double value) { return value == 0 || value == 1; };
  // Of most tensors the first row says enough.
  std::optional<HostTensor> host = firstRows(tensor, 1, width);
  if (!host || !host->isFloat() || !std::ranges::all_of(host->reals, isTrivial))
    return std::nullopt;
  host = firstRows(tensor, std::min(tensor.shape[lead], kLargestFolded / width), width);
  if (!host)
    return std::nullopt;
  double tolerance = tensor.dtype == DType::BF16 ? 3e-2 : tensor.dtype == DType::F16 ? 4e-3 : 1e-5;
  Rows rows{std::move(host->reals), static_cast<size_t>(width), tolerance};
  if (std::ranges::all_of(rows.values, isTrivial))
    return std::nullopt;
  return rows;
}

bool areOnCircle(double x, double y, double tolerance) {
  return std::abs(x * x + y * y - 1) <= tolerance;
}

/// Is column j the other half of column j + distance, for each j of every second run of `distance`
/// columns? So sines and cosines stand side by side, in halves, or in halves for each of two
/// coordinates.
bool pairsAt(const Rows& rows, size_t distance) {
  for (size_t i = 0; i < rows.count(); ++i) {
    std::span<const double> row = rows.row(i);
    if (i > 0 && std::ranges::all_of(row, [](double value) { return value == 0; }))
      continue;
    for (size_t j = 0; j < row.size(); ++j)
      if (j / distance % 2 == 0 && !areOnCircle(row[j], row[j + distance], rows.tolerance))
        return false;
  }
  return true;
}

} // namespace

bool isAngleTable(const Tensor& tensor) {
  std::optional<Rows> rows = angleRows(tensor);
  for (size_t distance = 1; rows && 2 * distance <= rows->width; ++distance)
    if (rows->width % (2 * distance) == 0 && pairsAt(*rows, distance))
      return true;
  return false;
}

bool areCosinesAndSines(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape)
    return false;
  std::optional<Rows> left = angleRows(a), right = left ? angleRows(b) : std::nullopt;
  return right && std::ranges::equal(left->values, right->values, [&](double x, double y) {
           return areOnCircle(x, y, std::max(left->tolerance, right->tolerance));
         });
}

} // namespace titan::frontend
