#include "runtime/program/Piece.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>

namespace titan {
namespace {

/// Calls `see` with every index of a box of that shape, in row-major order.
void forEachIndex(const Shape& shape, const std::function<void(const Shape&)>& see) {
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < elementCount(shape); ++i) {
    see(index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

std::string errorOf(const Status& status) { return status.ok() ? "" : status.error().message(); }

/// A piece of which nothing is left out.
Piece piece(Shape at, Shape from, Shape extent, std::vector<int64_t> dims) {
  return {std::move(at), std::move(from), std::move(extent), std::move(dims)};
}

TEST(Piece, WhatIsLeftOutIsTheWholeInOrder) {
  const Shape state = {4, 3};
  const Piece all = writtenOut({}, state);
  EXPECT_EQ(all, piece({0, 0}, {0, 0}, {4, 3}, {0, 1}));
  EXPECT_TRUE(shortened(all, state).isInPlace());
  EXPECT_EQ(shortened(piece({0, 0}, {0, 0}, {4, 3}, {1, 0}), state), piece({}, {}, {}, {1, 0}));
  // A leading 1 is dropped: the initializer has a dimension more.
  EXPECT_EQ(shortened(piece({0, 0}, {0, 0, 0}, {4, 3}, {1, 2}), state),
            piece({}, {0, 0, 0}, {}, {1, 2}));
  EXPECT_TRUE(shortened({}, Shape{}).isInPlace());
}

TEST(Piece, MapsElementsToThoseOfTheInitializer) {
  // Rows 4 and 5 of an LSTM's [8, 3], the gate f, are rows 4 and 5 of its second direction.
  const Piece gate = piece({2, 0}, {1, 4, 0}, {2, 3}, {1, 2});
  EXPECT_EQ(elementOf(gate, Shape{3, 1}), (Shape{1, 5, 1}));
  EXPECT_EQ(boxInState(gate), (Box{{2, 0}, {2, 3}}));
  EXPECT_EQ(boxInInitializer(gate), (Box{{1, 4, 0}, {1, 2, 3}}));
  const Piece turned = wholeOf(Shape{5, 7}, {1, 0});
  EXPECT_EQ(turned, piece({0, 0}, {0, 0}, {7, 5}, {1, 0}));
  EXPECT_EQ(elementOf(turned, Shape{6, 2}), (Shape{2, 6}));
}

TEST(Piece, ChecksItsEnds) {
  const Shape state = {4, 3}, initializer = {1, 8, 3};
  EXPECT_EQ(errorOf(checkInState(piece({2, 0}, {0, 4, 0}, {2, 3}, {1, 2}), state)), "");
  EXPECT_EQ(errorOf(checkInState(piece({3, 0}, {0, 4, 0}, {2, 3}, {1, 2}), state)),
            "at [3, 0] of extent [2, 3] leaves the state [4, 3]");
  EXPECT_EQ(errorOf(checkInState(piece({INT64_MAX, 0}, {0, 4, 0}, {2, 3}, {1, 2}), state)),
            "at [9223372036854775807, 0] of extent [2, 3] leaves the state [4, 3]");
  EXPECT_NE(errorOf(checkInState(piece({0, 0}, {0, 4, 0}, {0, 3}, {1, 2}), state)), "");
  EXPECT_EQ(errorOf(checkInState(piece({0}, {0}, {2}, {0}), state)),
            "has at [0], extent [2] and dims [0], but the state [4, 3] has 2 dimensions");
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1, 1}, {1, 3}, {-1, 0}})
    EXPECT_EQ(errorOf(checkInState(piece({0, 0}, {0, 4, 0}, {2, 3}, dims), state)),
              "has dims " + toString(dims) +
                  ", but needs different dimensions of an initializer of 3");
  EXPECT_EQ(errorOf(checkInInitializer(piece({2, 0}, {0, 6, 0}, {2, 3}, {1, 2}), initializer)), "");
  EXPECT_EQ(errorOf(checkInInitializer(piece({2, 0}, {0, 7, 0}, {2, 3}, {1, 2}), initializer)),
            "from [0, 7, 0] of extent [1, 2, 3] leaves the initializer [1, 8, 3]");
  EXPECT_EQ(errorOf(checkInInitializer(piece({2, 0}, {7, 0}, {2, 3}, {0, 1}), initializer)),
            "has from [7, 0], but the initializer [1, 8, 3] has 3 dimensions");
}

TEST(Piece, SourcesCoverTheirStateOnce) {
  const Shape state = {4, 3};
  const std::vector<Shape> initializers = {{3, 2}, {2, 3}};
  std::vector<TensorSource> sources = {{"a", piece({}, {}, {2, 3}, {1, 0})},
                                       {"b", piece({2, 0}, {}, {2, 3}, {})}};
  EXPECT_EQ(initializersOf(sources), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(errorOf(checkSources(sources, state, initializers)), "");
  EXPECT_EQ(errorOf(checkSources(sources, state, {})), "");
  EXPECT_EQ(errorOf(checkSources(sources, state, std::span(initializers).first(1))),
            "are of 2 initializers, 1 are there");
  sources[1].piece.at = {1, 0};
  EXPECT_EQ(errorOf(checkSources(sources, state, initializers)), "overlap at [1, 0]");
  sources.pop_back();
  EXPECT_EQ(errorOf(checkSources(sources, state, {})), "leave 6 of 12 elements out");
  sources[0].piece.from = {0, 1};
  EXPECT_EQ(errorOf(checkSources(sources, state, std::span(initializers).first(1))),
            "a piece of 'a' from [0, 1] of extent [3, 2] leaves the initializer [3, 2]");
  EXPECT_EQ(errorOf(checkSources(std::vector<TensorSource>(1025), state, {})),
            "are 1025 pieces, at most 1024 are allowed");
  EXPECT_EQ(errorOf(checkSources(std::vector<TensorSource>(1), Shape{INT64_MAX, 4}, {})),
            "are of [9223372036854775807, 4], which has too many elements");
}

/// A box cut again and again by planes, at random.
std::vector<Box> cutAtRandom(const Shape& shape, std::mt19937& random, int cuts) {
  std::vector<Box> boxes = {{Shape(shape.size(), 0), shape}};
  for (int i = 0; i < cuts; ++i) {
    Box& box = boxes[random() % boxes.size()];
    const size_t d = random() % shape.size();
    if (box.extent[d] < 2)
      continue;
    Box rest = box;
    const int64_t length = 1 + static_cast<int64_t>(random() % (box.extent[d] - 1));
    rest.at[d] += length;
    rest.extent[d] -= length;
    box.extent[d] = length;
    boxes.push_back(rest);
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  return boxes;
}

/// Do cuts take the boxes apart one by one, each group covering a box?
bool fallsApart(const std::vector<Box>& boxes) {
  if (boxes.size() == 1)
    return true;
  const auto cut = cutBetween(boxes);
  if (!cut)
    return false;
  int64_t end = INT64_MIN;
  for (const std::vector<size_t>& group : cut->groups) {
    std::vector<Box> part;
    for (size_t i : group) {
      EXPECT_GE(boxes[i].at[cut->dim], end);
      part.push_back(boxes[i]);
    }
    for (const Box& box : part)
      end = std::max(end, box.at[cut->dim] + box.extent[cut->dim]);
    if (!fallsApart(part))
      return false;
  }
  return true;
}

TEST(Piece, CoversOfRandomCutsAreFoundAndTakenApart) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    Shape shape(1 + random() % 3);
    for (int64_t& extent : shape)
      extent = 1 + static_cast<int64_t>(random() % 6);
    std::vector<Box> boxes = cutAtRandom(shape, random, 8);
    EXPECT_EQ(errorOf(checkCover(boxes, shape)), "");
    EXPECT_TRUE(fallsApart(boxes));
    // Whatever is moved or left out is found by counting elements.
    Box& box = boxes[random() % boxes.size()];
    const size_t d = random() % shape.size();
    if (box.at[d] > 0)
      --box.at[d];
    else
      boxes.pop_back();
    std::multiset<Shape> seen;
    for (const Box& b : boxes)
      forEachIndex(b.extent, [&](const Shape& x) {
        Shape element = x;
        for (size_t i = 0; i < element.size(); ++i)
          element[i] += b.at[i];
        seen.insert(element);
      });
    const bool once = seen.size() == static_cast<size_t>(elementCount(shape)) &&
                      std::set<Shape>(seen.begin(), seen.end()).size() == seen.size();
    EXPECT_EQ(checkCover(boxes, shape).ok(), once);
  }
}

TEST(Piece, APinwheelDoesNotFallApart) {
  const std::vector<Box> boxes = {
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}};
  EXPECT_EQ(errorOf(checkCover(boxes, Shape{3, 3})), "");
  EXPECT_FALSE(cutBetween(boxes));
}

/// A state cut into boxes that lie anywhere in initializers with turned and additional dimensions:
/// each element of a state has one element of one initializer, and the other way round.
TEST(Piece, RandomPiecesAreOneToOne) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 100; ++trial) {
    const Shape state = {1 + static_cast<int64_t>(random() % 5),
                         1 + static_cast<int64_t>(random() % 5)};
    std::vector<TensorSource> sources;
    std::vector<Shape> initializers;
    for (const Box& box : cutAtRandom(state, random, 5)) {
      Piece part{box.at, Shape(3, 0), box.extent, {0, 1, 2}};
      std::shuffle(part.dims.begin(), part.dims.end(), random);
      part.dims.pop_back();
      Shape initializer = boxInInitializer(part).extent;
      for (size_t d = 0; d < 3; ++d) {
        part.from[d] = static_cast<int64_t>(random() % 3);
        initializer[d] += part.from[d] + static_cast<int64_t>(random() % 2);
      }
      initializers.push_back(initializer);
      sources.push_back({std::to_string(sources.size()), shortened(part, state)});
      EXPECT_EQ(writtenOut(sources.back().piece, state), part);
    }
    ASSERT_EQ(errorOf(checkSources(sources, state, initializers)), "");
    std::set<Shape> states;
    std::set<std::pair<std::string, Shape>> elements;
    for (const auto& [initializer, shortPiece] : sources) {
      const Piece part = writtenOut(shortPiece, state);
      forEachIndex(part.extent, [&](const Shape& x) {
        const Shape index = {part.at[0] + x[0], part.at[1] + x[1]};
        Shape expected = part.from; // the definition, written again
        expected[part.dims[0]] = part.from[part.dims[0]] + x[0];
        expected[part.dims[1]] = part.from[part.dims[1]] + x[1];
        EXPECT_EQ(elementOf(part, index), expected);
        states.insert(index);
        elements.emplace(initializer, expected);
      });
    }
    EXPECT_EQ(static_cast<int64_t>(states.size()), elementCount(state));
    EXPECT_EQ(elements.size(), states.size());
  }
}

} // namespace
} // namespace titan
