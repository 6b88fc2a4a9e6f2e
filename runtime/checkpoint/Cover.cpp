#include "runtime/checkpoint/Cover.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace titan::checkpoint {
namespace {

/// Elements, or nothing on overflow.
std::optional<int64_t> volume(const Shape& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(elements, extent, &elements))
      return std::nullopt;
  return elements;
}

bool overlap(const Box& a, const Box& b) {
  for (size_t i = 0; i < a.at.size(); ++i)
    if (a.at[i] + a.extent[i] <= b.at[i] || b.at[i] + b.extent[i] <= a.at[i])
      return false;
  return true;
}

/// Two boxes that have an element both. They have as many elements as the whole together, and do
/// not cover it: so there are some.
std::pair<size_t, size_t> overlapping(const std::vector<Box>& boxes) {
  for (size_t i = 0; i < boxes.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (overlap(boxes[i], boxes[j]))
        return {j, i};
  return {0, 0};
}

/// The corners of a box along `dims`, each with 1, or with -1 where it has an odd number of far
/// sides. The sums at all points determine how often each element is covered: a box's
/// characteristic function is the sum over its corners of what lies beyond each.
using Corners = std::vector<std::pair<Shape, int64_t>>;

void addCorners(const Box& box, std::span<const size_t> dims, Corners& corners) {
  for (size_t far = 0; far < size_t{1} << dims.size(); ++far) {
    Shape point;
    int64_t sign = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool isFar = (far >> i & 1) != 0;
      point.push_back(box.at[dims[i]] + (isFar ? box.extent[dims[i]] : 0));
      sign = isFar ? -sign : sign;
    }
    corners.emplace_back(std::move(point), sign);
  }
}

/// One sum a point, without zeros, in the order of the points.
Corners summed(Corners corners) {
  std::sort(corners.begin(), corners.end());
  Corners sums;
  for (auto& [point, sign] : corners) {
    if (!sums.empty() && sums.back().first == point)
      sums.back().second += sign;
    else
      sums.emplace_back(std::move(point), sign);
  }
  std::erase_if(sums, [](const auto& corner) { return corner.second == 0; });
  return sums;
}

} // namespace

Status checkCoverOnce(std::span<const Box> all, const Shape& shape) {
  std::vector<Box> boxes;
  int64_t covered = 0;
  for (const Box& box : all)
    if (const int64_t elements = elementCount(box.extent); elements > 0) {
      covered += elements;
      boxes.push_back(box);
    }
  if (volume(shape) != covered)
    return Error::badInput("the pieces in the files hold {} elements", covered);

  const Box whole{Shape(shape.size(), 0), shape};
  std::vector<size_t> cut; // the dimensions that some box has a part of
  for (size_t d = 0; d < shape.size(); ++d)
    if (std::ranges::any_of(boxes, [&](const Box& box) { return box.extent[d] != shape[d]; }))
      cut.push_back(d);
  if (cut.size() > mostCutDimensions)
    return Error::badInput("the pieces cut {} dimensions, at most {} are allowed", cut.size(),
                           mostCutDimensions);
  Corners found, expected;
  for (const Box& box : boxes)
    addCorners(box, cut, found);
  if (covered > 0)
    addCorners(whole, cut, expected);
  if (summed(std::move(found)) == summed(std::move(expected)))
    return {};
  const auto [first, second] = overlapping(boxes);
  return Error::badInput("the pieces at {} and {} overlap", toString(boxes[first].at),
                         toString(boxes[second].at));
}

} // namespace titan::checkpoint
