#include "runtime/executor/FirstWeights.h"

#include "runtime/collective/testing/RankThreads.h"
#include "runtime/device/testing/NullDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/Poisoner.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

namespace titan {
namespace {

using testing::NullDevice;
using testing::onRanks;

/// States that rules and a payload start, cut in all ways on the axes of `mesh`.
struct Rig {
  explicit Rig(std::vector<MeshAxis> mesh = {{"replicate", 2}, {"shard", 3}},
               bool hasWindow = false) {
    program.mesh = std::move(mesh);
    add("normal", Init::Kind::Normal, DType::F32, {10, 3}, {{1, 0}});
    add("uniform", Init::Kind::Uniform, DType::BF16, {3, 5}, {{1, 1}});
    add("both", Init::Kind::Normal, DType::F64, {7, 2}, {{0, 0}, {1, 0}});
    add("alone", Init::Kind::Constant, DType::I64, {1}, {{1, 0}});
    add("kept", Init::Kind::Uniform, DType::F32, {4}, {});
    add("stored", Init::Kind::Payload, DType::F32, {5, 300}, {{1, 1}, {0, 0}});
    add("turned", Init::Kind::Payload, DType::F32, {40, 6}, {{1, 0}});
    program.states.back().sources = {{"w", {.at = {}, .from = {}, .extent = {}, .dims = {1, 0}}}};
    program.states.back().init.stored.front().shape = {6, 40};
    add("large", Init::Kind::Payload, DType::F32, {700000}, {{1, 0}});
    add("whole", Init::Kind::Payload, DType::I64, {9}, {});
    device.emplace(program.arenaBytes, hasWindow);
  }

  void add(const std::string& name, Init::Kind kind, DType dtype, Shape shape,
           Placement placement) {
    State state;
    state.name = name, state.dtype = dtype, state.shape = shape, state.placement = placement;
    state.local = *localShape(shape, placement, program.mesh);
    state.bytes = elementCount(state.local) * byteSize(dtype);
    state.offset = program.arenaBytes;
    program.arenaBytes += (state.bytes + 63) / 64 * 64;
    state.init.kind = kind, state.init.a = 0.5, state.init.b = 2;
    if (kind == Init::Kind::Payload) {
      std::string bytes(static_cast<size_t>(elementCount(shape) * byteSize(dtype)), '\0');
      std::iota(bytes.begin(), bytes.end(), static_cast<char>(program.states.size()));
      state.init.stored = {{"", static_cast<int64_t>(payload.size()),
                            static_cast<int64_t>(bytes.size()),
                            XXH3_64bits(bytes.data(), bytes.size()), shape}};
      payload += bytes;
    }
    program.states.push_back(std::move(state));
  }

  Program program;
  std::string payload;
  std::optional<NullDevice> device;
};

/// What a rank's arena holds of each state, without padding; padding has to be zeros.
std::vector<std::string> partsOf(const Rig& rig, StateAccess& access) {
  std::vector<std::string> parts;
  for (const State& state : rig.program.states) {
    std::string memory(static_cast<size_t>(state.bytes), '\0'), part;
    EXPECT_TRUE(access.read(placeOf(state), 0, memory).ok());
    EXPECT_TRUE(access.valid(state)
                    .forEachPiece([&](std::span<const char> piece) -> Status {
                      part.append(piece.data(), piece.size());
                      return {};
                    })
                    .ok());
    const auto zeros = [](const std::string& s) { return std::count(s.begin(), s.end(), '\0'); };
    EXPECT_EQ(zeros(memory) - zeros(part), static_cast<std::ptrdiff_t>(memory.size() - part.size()))
        << state.name;
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string wholeOf(const State& state, const std::string& payload, ThreadPool& pool) {
  std::string whole(static_cast<size_t>(elementCount(state.shape) * byteSize(state.dtype)), '\0');
  EXPECT_TRUE(
      writeInitialState(state, {.payload = payload, .seed = 7}, pool, std::span<char>(whole)).ok());
  return whole;
}

TEST(FirstWeights, AreThoseOfOneRankOnEveryRank) {
  for (const auto& parts : onRanks(6, [](Peers& peers) {
         Rig rig;
         auto pool = ThreadPool::create(1).take();
         Executor executor(rig.program, *rig.device, peers.rank());
         EXPECT_TRUE(executor.prepare(rig.payload).ok());
         const Status written = writeFirstWeights(
             executor.access(), {.payload = rig.payload, .seed = 7}, *pool, peers);
         EXPECT_TRUE(written.ok()) << written.error().message();
         EXPECT_EQ(peers.traffic(firstWeightsName), firstWeightsTraffic(rig.program, peers.rank()));
         EXPECT_GT(peers.traffic(firstWeightsName).moved, 0);
         return std::tuple(peers.rank(), partsOf(rig, executor.access()));
       })) {
    const auto& [rank, found] = parts;
    Rig rig;
    auto pool = ThreadPool::create(1).take();
    for (size_t i = 0; i < found.size(); ++i) {
      const State& state = rig.program.states[i];
      const std::string whole = wholeOf(state, rig.payload, *pool);
      const Part part = partOf(state, rig.program.mesh, coordinatesOf(rank, rig.program.mesh));
      std::string expected;
      const auto bytes = static_cast<size_t>(byteSize(state.dtype));
      Overlap(Part::whole(state.shape), part)
          .forEachRun(0, elementCount(state.shape), [&](int64_t at, int64_t, int64_t count) {
            expected +=
                whole.substr(static_cast<size_t>(at) * bytes, static_cast<size_t>(count) * bytes);
          });
      EXPECT_EQ(found[i], expected) << state.name << " on rank " << rank;
    }
  }
}

TEST(FirstWeights, OfOneRankAreReadByAnyNumberOfThreads) {
  for (const bool hasWindow : {false, true})
    for (const int threads : {1, 3}) {
      Rig rig({{"replicate", 1}, {"shard", 1}}, hasWindow);
      auto pool = ThreadPool::create(threads).take();
      StateAccess access(rig.program, *rig.device);
      Peers alone;
      const auto write = [&](const std::string& payload) {
        return writeFirstWeights(access, {.payload = payload, .seed = 7}, *pool, alone);
      };
      ASSERT_TRUE(write(rig.payload).ok());
      const std::vector<std::string> found = partsOf(rig, access);
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(found[i], wholeOf(rig.program.states[i], rig.payload, *pool))
            << rig.program.states[i].name << ", " << threads << " threads, window: " << hasWindow;
      std::string damaged = rig.payload;
      damaged.back() ^= 1;
      EXPECT_EQ(write(damaged).error().message(),
                "the weights of 'whole' in the job's file are damaged: compile the job again");
    }
}

TEST(FirstWeights, AFailureOfAnOwnerEndsAllWithItsNumber) {
  // The second tensor that is stored is rank 1's; the third is large, and its owner knows nothing.
  for (size_t damaged : {size_t{5}, size_t{6}, size_t{7}, size_t{8}}) {
    const auto errors = onRanks(6, [&](Peers& peers) {
      Rig rig;
      const StoredRange& range = rig.program.states[damaged].init.stored.front();
      rig.payload[static_cast<size_t>(range.offset + range.bytes - 1)] ^= 1;
      auto pool = ThreadPool::create(1).take();
      StateAccess access(rig.program, *rig.device, peers.rank());
      return writeFirstWeights(access, {.payload = rig.payload, .seed = 7}, *pool, peers)
          .error()
          .message();
    });
    Rig rig;
    for (const std::string& error : errors)
      EXPECT_EQ(error, fmt::format("rank {}: the weights of '{}' in the job's file are damaged: "
                                   "compile the job again",
                                   damaged - 5, rig.program.states[damaged].name));
  }
}

TEST(FirstWeights, AreReadByOneRankEach) {
  // A payload that stops short of the last tensor: only its owner can see it.
  const auto errors = onRanks(6, [](Peers& peers) {
    Rig rig;
    const std::string payload =
        peers.rank() == 3 ? rig.payload.substr(0, rig.payload.size() - 1) : rig.payload;
    auto pool = ThreadPool::create(1).take();
    StateAccess access(rig.program, *rig.device, peers.rank());
    Status written = writeFirstWeights(access, {.payload = payload, .seed = 7}, *pool, peers);
    return written.ok() ? std::string() : written.error().message();
  });
  for (const std::string& error : errors)
    EXPECT_TRUE(error.starts_with("rank 3: the weights of 'whole', 72 bytes at ")) << error;
}

TEST(Poisoner, FillsThePaddingOfStates) {
  Rig rig;
  StateAccess access(rig.program, *rig.device, 5);
  for (const State& state : rig.program.states)
    ASSERT_TRUE(access.fill(placeOf(state), 0).ok());
  const auto poisoner = Poisoner::create(rig.program, *rig.device, 5).take();
  poisoner->beforeFunction(Function());
  for (const State& state : rig.program.states) {
    std::string memory(static_cast<size_t>(state.bytes), '\0');
    ASSERT_TRUE(access.read(placeOf(state), 0, memory).ok());
    const int64_t padding =
        (elementCount(state.local) - access.part(state).elements()) * byteSize(state.dtype);
    EXPECT_EQ(std::count(memory.begin(), memory.end(), '\xff'), padding) << state.name;
    EXPECT_EQ(std::count(memory.begin(), memory.end(), '\0'), state.bytes - padding);
  }
}

} // namespace
} // namespace titan
