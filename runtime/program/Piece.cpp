#include "runtime/program/Piece.h"

#include <algorithm>
#include <numeric>

namespace titan {

namespace {

std::vector<int64_t> inOrder(size_t rank) {
  std::vector<int64_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

bool isInside(const Box& box, std::span<const int64_t> shape) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (box.at[d] < 0 || box.extent[d] < 1 || box.extent[d] > shape[d] ||
        box.at[d] > shape[d] - box.extent[d])
      return false;
  return true;
}

bool overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.at.size(); ++d)
    if (a.at[d] + a.extent[d] <= b.at[d] || b.at[d] + b.extent[d] <= a.at[d])
      return false;
  return true;
}

bool areZeros(const Shape& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 0; });
}

} // namespace

Piece writtenOut(const Piece& piece, std::span<const int64_t> state) {
  Piece all = piece;
  if (all.at.empty())
    all.at.assign(state.size(), 0);
  if (all.from.empty())
    all.from.assign(state.size(), 0);
  if (all.extent.empty())
    all.extent.assign(state.begin(), state.end());
  if (all.dims.empty())
    all.dims = inOrder(state.size());
  return all;
}

Piece shortened(const Piece& piece, std::span<const int64_t> state) {
  Piece rest = writtenOut(piece, state);
  if (areZeros(rest.at))
    rest.at.clear();
  if (rest.from.size() == state.size() && areZeros(rest.from))
    rest.from.clear();
  if (std::equal(rest.extent.begin(), rest.extent.end(), state.begin(), state.end()))
    rest.extent.clear();
  if (rest.dims == inOrder(state.size()))
    rest.dims.clear();
  return rest;
}

Piece wholeOf(std::span<const int64_t> initializer, std::vector<int64_t> dims) {
  Piece piece;
  piece.at.assign(dims.size(), 0);
  piece.from.assign(initializer.size(), 0);
  for (int64_t d : dims)
    piece.extent.push_back(initializer[static_cast<size_t>(d)]);
  piece.dims = std::move(dims);
  return piece;
}

Box boxInState(const Piece& piece) { return {piece.at, piece.extent}; }

Box boxInInitializer(const Piece& piece) {
  Box box{piece.from, Shape(piece.from.size(), 1)};
  for (size_t i = 0; i < piece.dims.size(); ++i)
    box.extent[static_cast<size_t>(piece.dims[i])] = piece.extent[i];
  return box;
}

Shape elementOf(const Piece& piece, std::span<const int64_t> index) {
  Shape element = piece.from;
  for (size_t i = 0; i < piece.dims.size(); ++i)
    element[static_cast<size_t>(piece.dims[i])] += index[i] - piece.at[i];
  return element;
}

Status checkInState(const Piece& piece, std::span<const int64_t> state) {
  if (piece.at.size() != state.size() || piece.extent.size() != state.size() ||
      piece.dims.size() != state.size())
    return Error::badInput("has at {}, extent {} and dims {}, but the state {} has {} dimensions",
                           toString(piece.at), toString(piece.extent), toString(piece.dims),
                           toString(state), state.size());
  if (!isInside(boxInState(piece), state))
    return Error::badInput("at {} of extent {} leaves the state {}", toString(piece.at),
                           toString(piece.extent), toString(state));
  std::vector<int64_t> sorted = piece.dims;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
      (!sorted.empty() &&
       (sorted.front() < 0 || sorted.back() >= static_cast<int64_t>(piece.from.size()))))
    return Error::badInput("has dims {}, but needs different dimensions of an initializer of {}",
                           toString(piece.dims), piece.from.size());
  return {};
}

Status checkInInitializer(const Piece& piece, std::span<const int64_t> initializer) {
  if (piece.from.size() != initializer.size())
    return Error::badInput("has from {}, but the initializer {} has {} dimensions",
                           toString(piece.from), toString(initializer), initializer.size());
  if (!isInside(boxInInitializer(piece), initializer))
    return Error::badInput("from {} of extent {} leaves the initializer {}", toString(piece.from),
                           toString(boxInInitializer(piece).extent), toString(initializer));
  return {};
}

Status checkCover(std::span<const Box> boxes, std::span<const int64_t> shape) {
  // Overlapping boxes cannot hide a gap: they are refused first.
  for (size_t i = 0; i < boxes.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (overlap(boxes[i], boxes[j])) {
        Shape first(shape.size());
        for (size_t d = 0; d < shape.size(); ++d)
          first[d] = std::max(boxes[i].at[d], boxes[j].at[d]);
        return Error::badInput("overlap at {}", toString(first));
      }
  int64_t elements = 1, covered = 0;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(elements, extent, &elements))
      return Error::badInput("are of {}, which has too many elements", toString(shape));
  for (const Box& box : boxes) // apart from each other and inside: no sum is larger
    covered += elementCount(box.extent);
  if (covered != elements)
    return Error::badInput("leave {} of {} elements out", elements - covered, elements);
  return {};
}

std::optional<Separation> cutBetween(std::span<const Box> boxes) {
  const size_t rank = boxes.empty() ? 0 : boxes.front().at.size();
  for (size_t dim = 0; dim < rank; ++dim) {
    std::vector<size_t> order(boxes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(boxes[a].at[dim], a) < std::pair(boxes[b].at[dim], b);
    });
    Separation cut{dim, {}};
    int64_t end = INT64_MIN; // of the boxes so far
    for (size_t i : order) {
      if (boxes[i].at[dim] >= end)
        cut.groups.emplace_back();
      cut.groups.back().push_back(i);
      end = std::max(end, boxes[i].at[dim] + boxes[i].extent[dim]);
    }
    if (cut.groups.size() > 1)
      return cut;
  }
  return std::nullopt;
}

std::vector<std::string> initializersOf(std::span<const TensorSource> sources) {
  std::vector<std::string> names;
  for (const TensorSource& source : sources)
    if (std::find(names.begin(), names.end(), source.initializer) == names.end())
      names.push_back(source.initializer);
  return names;
}

Status checkSources(std::span<const TensorSource> sources, std::span<const int64_t> state,
                    std::span<const Shape> initializers) {
  if (sources.size() > mostPieces)
    return Error::badInput("are {} pieces, at most {} are allowed", sources.size(), mostPieces);
  const std::vector<std::string> names = initializersOf(sources);
  if (!initializers.empty() && initializers.size() != names.size())
    return Error::badInput("are of {} initializers, {} are there", names.size(),
                           initializers.size());
  std::vector<Box> boxes;
  for (const TensorSource& source : sources) {
    const Piece piece = writtenOut(source.piece, state);
    Status status = checkInState(piece, state);
    if (status.ok() && !initializers.empty()) {
      const auto name = std::find(names.begin(), names.end(), source.initializer);
      status = checkInInitializer(piece, initializers[static_cast<size_t>(name - names.begin())]);
    }
    if (!status.ok())
      return Error::badInput("a piece of '{}' {}", source.initializer, status.error().message());
    boxes.push_back(boxInState(piece));
  }
  return sources.empty() ? Status() : checkCover(boxes, state);
}

} // namespace titan
