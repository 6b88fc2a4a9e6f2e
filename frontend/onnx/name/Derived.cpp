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
template <typename Visit>
bool everyElement(const Shape& of, const Shape& shape, const std::vector<int64_t>& dims,
                  Visit visit) {
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

/// Is the matrix `right` [columns, rows] the transposition of `left` [rows, columns]?
template <typename Element>
bool isTransposed(const std::string& left, const std::string& right, int64_t rows,
                  int64_t columns) {
  // In blocks: a vocabulary's columns are far apart.
  constexpr int64_t kBlock = 64;
  auto at = [](const std::string& bytes, int64_t position) {
    Element element;
    std::memcpy(&element, bytes.data() + static_cast<size_t>(position) * sizeof(Element),
                sizeof(Element));
    return element;
  };
  for (int64_t top = 0; top < rows; top += kBlock)
    for (int64_t first = 0; first < columns; first += kBlock) {
      bool equal = true;
      for (int64_t r = top; r < std::min(rows, top + kBlock); ++r)
        for (int64_t c = first; c < std::min(columns, first + kBlock); ++c)
          equal &= at(left, r * columns + c) == at(right, c * rows + r);
      if (!equal)
        return false;
    }
  return true;
}

/// isMovedBy() of what the tensors hold.
template <typename Element>
bool isMovedBy(const std::string& left, const std::string& right, const Shape& of,
               const Shape& shape, const std::vector<int64_t>& dims) {
  std::vector<int64_t> from = extentsOf(of), to;
  for (int64_t d : from)
    to.push_back(dims[static_cast<size_t>(d)]);
  if (std::ranges::is_sorted(to))
    return left == right;
  if (from.size() == 2)
    return isTransposed<Element>(left, right, of[static_cast<size_t>(from[0])],
                                 of[static_cast<size_t>(from[1])]);
  return everyElement(of, shape, dims, [&](size_t x, size_t y) {
    return std::memcmp(left.data() + x * sizeof(Element), right.data() + y * sizeof(Element),
                       sizeof(Element)) == 0;
  });
}

/// Of two tensors of one type and size.
bool isMovedBy(const std::string& left, const std::string& right, DType dtype, const Shape& of,
               const Shape& shape, const std::vector<int64_t>& dims) {
  switch (byteSize(dtype)) {
  case 1:
    return isMovedBy<uint8_t>(left, right, of, shape, dims);
  case 2:
    return isMovedBy<uint16_t>(left, right, of, shape, dims);
  case 4:
    return isMovedBy<uint32_t>(left, right, of, shape, dims);
  default:
    return isMovedBy<uint64_t>(left, right, of, shape, dims);
  }
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

/// Do the points, which are sorted, lie on a line, but for roundings? It has two to spare: drawn
/// numbers are there by chance once in 2^30.
bool isLine(const std::vector<std::pair<double, double>>& points) {
  constexpr size_t kFewest = 4;
  if (points.size() < kFewest)
    return false;
  const auto [x0, y0] = points.front();
  const auto [x1, y1] = points.back();
  if (x0 == x1 || y0 == y1)
    return false;
  const double slope = (y1 - y0) / (x1 - x0),
               rounding = std::max(std::abs(y0), std::abs(y1)) * 0x1p-20;
  size_t different = 1;
  for (size_t i = 1; i < points.size(); ++i) {
    const auto [x, y] = points[i];
    if (!(std::abs(y0 + slope * (x - x0) - y) <= rounding))
      return false;
    different += x != points[i - 1].first;
  }
  return different >= kFewest;
}

/// Does `tensor` rise with `of`, or fall, in some order of its dimensions? Few elements tell where
/// it is a multiple and a constant.
bool isFunction(const HostTensor& of, const HostTensor& tensor) {
  return anyMovement(of.shape, tensor.shape, [&](const std::vector<int64_t>& dims) {
    std::vector<std::pair<double, double>> points;
    everyElement(of.shape, tensor.shape, dims, [&](size_t x, size_t y) {
      points.emplace_back(of.reals[x], tensor.reals[y]);
      return true;
    });
    std::sort(points.begin(), points.end());
    if (isLine(points))
      return true;
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

std::optional<std::string> movementKey(const Tensor& tensor) {
  if (!tensor.missing.empty())
    return std::nullopt;
  const Shape strides = rowMajorStrides(tensor.shape);
  std::vector<int64_t> extents;
  int64_t step = 0; // along the diagonal
  for (int64_t d : extentsOf(tensor.shape)) {
    extents.push_back(tensor.shape[static_cast<size_t>(d)]);
    step += strides[static_cast<size_t>(d)];
  }
  std::ranges::sort(extents);
  std::string key = fmt::format("{} {} ", name(tensor.dtype), toString(extents));
  const int64_t length = extents.empty() ? 1 : extents.front();
  constexpr int64_t kRead = 8;
  for (int64_t k = 0; k < std::min(length, kRead); ++k) {
    const int64_t i = length <= kRead ? k : k * (length - 1) / (kRead - 1);
    const int64_t width = byteSize(tensor.dtype);
    Result<std::string> element =
        tensor.readPart(static_cast<uint64_t>(i * step * width), static_cast<uint64_t>(width));
    if (!element.ok())
      return std::nullopt;
    key += *element;
  }
  return key;
}

bool isMovedBy(const Tensor& of, const Tensor& tensor, const std::vector<int64_t>& dims) {
  if (of.dtype != tensor.dtype || of.byteCount() != tensor.byteCount())
    return false;
  auto left = of.bytes(), right = tensor.bytes();
  return left.ok() && right.ok() &&
         isMovedBy(**left, **right, of.dtype, of.shape, tensor.shape, dims);
}

std::optional<std::vector<int64_t>> movementOf(const Tensor& of, const Tensor& tensor) {
  if (of.dtype != tensor.dtype || of.byteCount() != tensor.byteCount() || !tensor.missing.empty() ||
      !isDrawn(of))
    return std::nullopt;
  auto left = of.bytes(), right = tensor.bytes();
  if (!left.ok() || !right.ok())
    return std::nullopt;
  std::optional<std::vector<int64_t>> found;
  anyMovement(of.shape, tensor.shape, [&](const std::vector<int64_t>& dims) {
    bool equal = isMovedBy(**left, **right, of.dtype, of.shape, tensor.shape, dims);
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
