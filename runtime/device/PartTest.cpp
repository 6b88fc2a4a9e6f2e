#include "runtime/device/Part.h"

#include "runtime/device/StateAccess.h"
#include "runtime/device/testing/NullDevice.h"
#include "runtime/program/Random.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

namespace titan {
namespace {

using testing::NullDevice;

/// Where each element of the tensor lies in the memory of a part, by its index: the definition.
std::map<Shape, int64_t> placesOf(const Part& part) {
  std::map<Shape, int64_t> places;
  for (int64_t at = 0; at < elementCount(part.local); ++at) {
    Shape index(part.local.size());
    int64_t rest = at;
    bool inside = true;
    for (size_t d = index.size(); d-- > 0; rest /= part.local[d]) {
      index[d] = rest % part.local[d];
      inside = inside && index[d] < part.box.extent[d];
      index[d] += part.box.at[d];
    }
    if (inside)
      places[index] = at;
  }
  return places;
}

struct Draw {
  uint64_t key, count = 0;
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(uniformDraw(key, 0, count++) * static_cast<float>(bound));
  }
};

Part drawPart(Draw& draw, const Shape& shape) {
  Part part{{shape, shape}, shape};
  for (size_t d = 0; d < shape.size(); ++d) {
    part.box.at[d] = draw.below(shape[d] + 1);
    part.box.extent[d] = draw.below(shape[d] - part.box.at[d] + 1);
    part.local[d] = part.box.extent[d] + (draw.below(3) == 0 ? draw.below(3) : 0);
  }
  return part;
}

TEST(Part, OverlapsAreTheElementsThatBothHave) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Draw draw{seed};
    Shape shape(static_cast<size_t>(draw.below(4)));
    for (int64_t& extent : shape)
      extent = 1 + draw.below(5);
    const Part from = drawPart(draw, shape), to = drawPart(draw, shape);
    const int64_t first = draw.below(elementCount(from.local) + 1);
    const int64_t last = first + draw.below(elementCount(from.local) + 1);

    std::map<int64_t, int64_t> expected, found;
    const std::map<Shape, int64_t> places = placesOf(to);
    for (const auto& [index, at] : placesOf(from))
      if (places.contains(index) && at >= first && at < last)
        expected[at] = places.at(index);
    const Overlap overlap(from, to);
    int64_t end = first;
    overlap.forEachRun(first, last, [&](int64_t at, int64_t other, int64_t count) {
      EXPECT_GE(at, end) << "not in order";
      EXPECT_TRUE(at >= overlap.begin() && at + count <= overlap.end());
      end = at + count;
      for (int64_t i = 0; i < count; ++i)
        found[at + i] = other + i;
    });
    ASSERT_EQ(found, expected);
  }
}

TEST(Part, WholeRowsAreOneRun) {
  const Part whole = Part::whole({100, 7, 3});
  const Part rows = Part::dense({{20, 0, 0}, {30, 7, 3}});
  std::vector<int64_t> runs;
  Overlap(whole, rows).forEachRun(0, 2100, [&](int64_t from, int64_t to, int64_t count) {
    runs.insert(runs.end(), {from, to, count});
  });
  EXPECT_EQ(runs, (std::vector<int64_t>{420, 0, 630}));
}

/// Five rows on two axes of two ranks: 2, 1, 2 and 0 of them.
TEST(Part, OfAStateHasTheBoxOfItsRank) {
  State state;
  state.shape = {5, 3}, state.placement = {{0, 0}, {1, 0}};
  const std::vector<MeshAxis> mesh = {{"replicate", 2}, {"shard", 2}};
  state.local = *localShape(state.shape, state.placement, mesh);
  std::vector<int64_t> rows;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const Part part = partOf(state, mesh, coordinatesOf(rank, mesh));
    EXPECT_EQ(part.local, (Shape{2, 3}));
    rows.push_back(part.box.extent[0]);
    EXPECT_EQ(part.isPadded(), rows.back() < 2);
  }
  EXPECT_EQ(rows, (std::vector<int64_t>{2, 1, 2, 0}));
}

class Padded : public ::testing::TestWithParam<bool> {
protected:
  Padded() : device_(4096, GetParam()) {
    program_.mesh = {{"shard", 2}};
    State state;
    state.name = "weight", state.dtype = DType::I32, state.shape = {2, 5};
    state.placement = {{0, 1}};
    state.local = *localShape(state.shape, state.placement, program_.mesh);
    state.bytes = elementCount(state.local) * 4;
    program_.states = {state};
  }

  static std::span<const char> bytesOf(const std::vector<int32_t>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
  }

  Program program_;
  NullDevice device_;
};

TEST_P(Padded, StatesAreReadWithoutTheirPadding) {
  StateAccess access(program_, device_, 1);
  const State& state = program_.states[0];
  ASSERT_TRUE(access.write(placeOf(state), 0, bytesOf({3, 4, -1, 8, 9, -1})).ok());
  std::vector<int32_t> values;
  const ByteSource valid = access.valid(state);
  EXPECT_EQ(valid.bytes(), 16);
  ASSERT_TRUE(valid
                  .forEachPiece([&](std::span<const char> piece) -> Status {
                    const size_t count = values.size();
                    values.resize(count + piece.size() / 4);
                    std::memcpy(values.data() + count, piece.data(), piece.size());
                    return {};
                  })
                  .ok());
  EXPECT_EQ(values, (std::vector<int32_t>{3, 4, 8, 9}));
  std::vector<int32_t> two(2);
  ASSERT_TRUE(valid.read(4, {reinterpret_cast<char*>(two.data()), 8}).ok());
  EXPECT_EQ(two, (std::vector<int32_t>{4, 8}));
}

TEST_P(Padded, CopiesLeaveWhatIsNotInBoth) {
  StateAccess access(program_, device_, 1);
  const State& state = program_.states[0];
  ASSERT_TRUE(access.write(placeOf(state), 0, bytesOf({-1, -1, -1, -1, -1, -1})).ok());
  const Overlap overlap(Part::whole(state.shape), access.part(state));
  // Elements 4 to 8 of the whole: the last of row 0, all but the last of row 1.
  ASSERT_TRUE(copyInto(overlap, 4, 4, bytesOf({4, 5, 6, 7, 8}), access.sink(placeOf(state))).ok());
  std::vector<int32_t> values(6);
  ASSERT_TRUE(access.read(placeOf(state), 0, {reinterpret_cast<char*>(values.data()), 24}).ok());
  EXPECT_EQ(values, (std::vector<int32_t>{-1, 4, -1, 8, -1, -1}));
}

INSTANTIATE_TEST_SUITE_P(Device, Padded, ::testing::Bool());

TEST(Bytes, MadeAndTakenGoInPieces) {
  constexpr int64_t bytes = 2 * StateAccess::pieceBytes + 100;
  std::string from(bytes, '\0'), to(bytes, '\0');
  std::iota(from.begin(), from.end(), '\0');
  const ByteSource source = ByteSource::made(bytes, [&](int64_t first, std::span<char> into) {
    std::memcpy(into.data(), from.data() + first, into.size());
    return Status();
  });
  const ByteSink sink = ByteSink::taken(bytes, [&](int64_t first, std::span<const char> piece) {
    EXPECT_LE(static_cast<int64_t>(piece.size()), StateAccess::pieceBytes);
    std::memcpy(to.data() + first, piece.data(), piece.size());
    return Status();
  });
  EXPECT_TRUE(source.direct().empty() && sink.direct().empty());
  ASSERT_TRUE(sink.fillPieces([&](int64_t first, std::span<char> piece) {
                    return source.read(first, piece);
                  })
                  .ok());
  EXPECT_EQ(from, to);
  std::string middle;
  ASSERT_TRUE(source.part(1000, 50)
                  .forEachPiece([&](std::span<const char> piece) -> Status {
                    middle.append(piece.data(), piece.size());
                    return {};
                  })
                  .ok());
  EXPECT_EQ(middle, from.substr(1000, 50));
}

} // namespace
} // namespace titan
