#include "frontend/onnx/name/Angles.h"

#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace titan::frontend {

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
  Result<HostTensor> host = toHost(firstOf(tensor, {1, width}));
  if (!host.ok() || !host->isFloat() || !std::ranges::all_of(host->reals, isTrivial))
    return std::nullopt;
  host = toHost(firstOf(tensor, {std::min(tensor.shape[lead], kLargestFolded / width), width}));
  if (!host.ok())
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

/// Are there columns of one distance that are pairs?
bool hasPairs(const Rows& rows) {
  for (size_t distance = 1; 2 * distance <= rows.width; ++distance)
    if (rows.width % (2 * distance) == 0 && pairsAt(rows, distance))
      return true;
  return false;
}

bool areCosinesAndSines(const Rows& a, const Rows& b) {
  return std::ranges::equal(a.values, b.values, [&](double x, double y) {
    return areOnCircle(x, y, std::max(a.tolerance, b.tolerance));
  });
}

} // namespace

bool isAngleTable(const Tensor& tensor) {
  std::optional<Rows> rows = angleRows(tensor);
  return rows && hasPairs(*rows);
}

bool areCosinesAndSines(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape)
    return false;
  std::optional<Rows> left = angleRows(a), right = left ? angleRows(b) : std::nullopt;
  return right && areCosinesAndSines(*left, *right);
}

bool holdsAngles(const Tensor& tensor, const Graph& graph) {
  std::optional<Rows> rows = angleRows(tensor);
  return rows &&
         (hasPairs(*rows) || std::ranges::any_of(graph.initializers, [&](const auto& entry) {
            std::optional<Rows> other =
                entry.second.shape == tensor.shape ? angleRows(entry.second) : std::nullopt;
            return other && areCosinesAndSines(*rows, *other);
          }));
}

} // namespace titan::frontend
