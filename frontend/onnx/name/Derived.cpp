#include "frontend/onnx/name/Derived.h"

#include "frontend/Strides.h"
#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

namespace titan::frontend {

namespace {

/// onnxscript folds what has at most 8192 elements, and movements of larger tensors.
constexpr int64_t kLargestOperand = 1 << 13, kLargestResult = 1 << 18;
/// So many different values that they rise or fall together by chance once in a thousand times.
constexpr size_t kFewestOfFunction = 7;

std::vector<int64_t> extentsOf(const Shape& shape) {
  std::vector<int64_t> dims;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1)
      dims.push_back(static_cast<int64_t>(d));
  return dims;
}

/// Calls `test` with each way in which the dimensions of `of` may be those of `shape`, until it
/// says yes.
bool anyMovement(const Shape& of, const Shape& shape,
                 const std::function<bool(const std::vector<int64_t>&)>& test) {
  std::vector<int64_t> from = extentsOf(of), to = extentsOf(shape);
  constexpr size_t kMostMoved = 4;
  if (from.size() != to.size() || from.size() > kMostMoved || of.size() > shape.size())
    return false;
  do {
    bool fits = true;
    for (size_t i = 0; i < from.size(); ++i)
      fits &= of[static_cast<size_t>(from[i])] == shape[static_cast<size_t>(to[i])];
    if (!fits)
      continue;
    std::vector<int64_t> dims(of.size(), -1);
    for (size_t i = 0; i < from.size(); ++i)
      dims[static_cast<size_t>(from[i])] = to[i];
    int64_t unit = 0; // of `shape`, for those of `of`
    for (int64_t& dim : dims) {
      if (dim >= 0)
        continue;
      while (shape[static_cast<size_t>(unit)] != 1)
        ++unit;
      dim = unit++;
    }
    if (test(dims))
      return true;
  } while (std::next_permutation(to.begin(), to.end()));
  return false;
}

/// Calls `visit` with the positions of one element in both, in the order of `of`, until it says no.
bool everyElement(const Shape& of, const Shape& shape, const std::vector<int64_t>& dims,
                  const std::function<bool(size_t, size_t)>& visit) {
  Shape strides = rowMajorStrides(shape), index(of.size(), 0);
  const auto count = static_cast<size_t>(elementCount(of));
  int64_t at = 0;
  for (size_t position = 0; position < count; ++position) {
    if (!visit(position, static_cast<size_t>(at)))
      return false;
    for (size_t d = of.size(); d-- > 0;) {
      int64_t stride = strides[static_cast<size_t>(dims[d])];
      at += stride;
      if (++index[d] < of[d])
        break;
      at -= stride * of[d];
      index[d] = 0;
    }
  }
  return true;
}

/// A number that nobody writes: more than twelve bits of fraction.
bool isDrawnNumber(double value) {
  return std::isfinite(value) && value * 4096 != std::floor(value * 4096);
}

/// Are the elements of `tensor`, zeros left out, elements of `of`? `sorted` are those of `of`.
bool areElementsOf(const std::vector<double>& sorted, const HostTensor& tensor) {
  bool drawn = false;
  for (double value : tensor.reals) {
    if (value == 0)
      continue;
    if (!std::binary_search(sorted.begin(), sorted.end(), value))
      return false;
    drawn |= isDrawnNumber(value);
  }
  return drawn;
}

/// Does `tensor` rise with `of`, or fall, in some order of its dimensions?
bool isFunction(const HostTensor& of, const HostTensor& tensor) {
  return anyMovement(of.shape, tensor.shape, [&](const std::vector<int64_t>& dims) {
    std::vector<std::pair<double, double>> points;
    everyElement(of.shape, tensor.shape, dims, [&](size_t x, size_t y) {
      points.emplace_back(of.reals[x], tensor.reals[y]);
      return true;
    });
    std::sort(points.begin(), points.end());
    size_t different = 0;
    bool rises = true, falls = true;
    for (size_t i = 1; i < points.size(); ++i) {
      auto [x, y] = points[i - 1];
      bool same = points[i].first == x;
      different += points[i].second != y;
      rises &= same ? points[i].second == y : points[i].second >= y;
      falls &= same ? points[i].second == y : points[i].second <= y;
    }
    return (rises || falls) && different + 1 >= kFewestOfFunction;
  });
}

} // namespace

bool isDrawn(const Tensor& tensor) {
  return tensor.missing.empty() && !tensor.restored && !isUniform(tensor) && !isMask(tensor);
}

std::optional<std::vector<int64_t>> movementOf(const Tensor& of, const Tensor& tensor) {
  if (of.dtype != tensor.dtype || of.byteCount() != tensor.byteCount() || !tensor.missing.empty() ||
      !isDrawn(of))
    return std::nullopt;
  Result<std::string> left = of.read(), right = tensor.read();
  if (!left.ok() || !right.ok())
    return std::nullopt;
  const auto width = static_cast<size_t>(byteSize(of.dtype));
  std::optional<std::vector<int64_t>> found;
  anyMovement(of.shape, tensor.shape, [&](const std::vector<int64_t>& dims) {
    bool equal = everyElement(of.shape, tensor.shape, dims, [&](size_t x, size_t y) {
      return std::memcmp(left->data() + x * width, right->data() + y * width, width) == 0;
    });
    if (equal)
      found = dims;
    return equal;
  });
  return found;
}

bool isComputedOf(const Tensor& of, const Tensor& tensor) {
  if (of.dtype != tensor.dtype || elementCount(of.shape) > kLargestOperand ||
      elementCount(tensor.shape) > kLargestResult || !tensor.missing.empty() || !isDrawn(of))
    return false;
  Result<HostTensor> source = toHost(of), result = toHost(tensor);
  auto isFinite = [](double value) { return std::isfinite(value); };
  if (!source.ok() || !result.ok() || !std::ranges::all_of(source->reals, isFinite) ||
      !std::ranges::all_of(result->reals, isFinite))
    return false;
  std::vector<double> sorted = source->reals;
  std::sort(sorted.begin(), sorted.end());
  return areElementsOf(sorted, *result) || isFunction(*source, *result);
}

} // namespace titan::frontend
