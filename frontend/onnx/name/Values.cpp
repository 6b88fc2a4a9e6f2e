#include "frontend/onnx/name/Values.h"

#include "frontend/onnx/fold/HostTensor.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

Tensor firstOf(const Tensor& tensor, Shape shape) {
  Tensor first = tensor;
  first.shape = std::move(shape);
  if (first.inlineBytes)
    first.inlineBytes =
        std::make_shared<const std::string>(tensor.inlineBytes->substr(0, first.byteCount()));
  if (first.span)
    first.span->bytes = first.byteCount();
  return first;
}

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

/// Are all values zero, one, or what people write for minus infinity?
static bool areOfAMask(const HostTensor& host) {
  constexpr double kMasked = -1e4, kMaskedInShiftedWindows = -100; // of Swin transformers
  for (int64_t i = 0; i < host.size(); ++i)
    if (double value = host.real(i);
        value != 0 && value != 1 && value != kMaskedInShiftedWindows && !(value <= kMasked))
      return false;
  return true;
}

bool isMask(const Tensor& tensor) {
  if (tensor.dtype == DType::Bool)
    return true;
  const int64_t count = elementCount(tensor.shape);
  if (!tensor.missing.empty() || count < 2 || count > kLargestFolded)
    return false;
  // Of most tensors the first elements say enough.
  constexpr int64_t kFirst = 64;
  std::optional<HostTensor> host = valuesOf(firstOf(tensor, {std::min(count, kFirst)}));
  if (host && areOfAMask(*host) && count > kFirst)
    host = valuesOf(tensor);
  return host && areOfAMask(*host);
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

} // namespace titan::frontend
