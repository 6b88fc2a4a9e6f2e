#include "frontend/onnx/Values.h"

#include "frontend/onnx/HostTensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

bool isAngleTable(const Tensor& tensor) {
  size_t lead = 0;
  while (lead < tensor.shape.size() && tensor.shape[lead] == 1)
    ++lead;
  if (tensor.shape.size() < lead + 2)
    return false;
  std::optional<HostTensor> host = valuesOf(tensor);
  if (!host || !host->isFloat())
    return false;
  int64_t row = host->size() / tensor.shape[lead];
  bool varies = false;
  for (int64_t i = 0; i < host->size(); ++i) {
    double value = host->reals[i];
    bool trivial = value == 0 || value == 1;
    if ((i < row && !trivial) || !(std::abs(value) <= 1 + 1e-6))
      return false;
    varies |= !trivial;
  }
  return varies;
}

bool areEqualValues(const Tensor& a, const Tensor& b, bool transposed) {
  if (!a.missing.empty() || !b.missing.empty() || a.dtype != b.dtype || a.shape.size() != 2 ||
      a.byteCount() != b.byteCount() || isUniform(a))
    return false;
  Result<std::string> left = a.read(), right = b.read();
  if (!left.ok() || !right.ok())
    return false;
  if (!transposed)
    return *left == *right;
  size_t width = static_cast<size_t>(byteSize(a.dtype));
  int64_t rows = a.shape[0], columns = a.shape[1];
  // In blocks: a vocabulary's columns are far apart.
  constexpr int64_t kBlock = 64;
  auto at = [&](const std::string& bytes, int64_t position) {
    return bytes.data() + static_cast<size_t>(position) * width;
  };
  for (int64_t top = 0; top < rows; top += kBlock)
    for (int64_t first = 0; first < columns; first += kBlock)
      for (int64_t r = top; r < std::min(rows, top + kBlock); ++r)
        for (int64_t c = first; c < std::min(columns, first + kBlock); ++c)
          if (std::memcmp(at(*left, r * columns + c), at(*right, c * rows + r), width) != 0)
            return false;
  return true;
}

} // namespace titan::frontend
