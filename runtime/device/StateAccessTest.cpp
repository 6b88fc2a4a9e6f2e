#include "runtime/device/StateAccess.h"

#include "runtime/device/testing/LateDevice.h"
#include "runtime/device/testing/NullDevice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace titan {
namespace {

using testing::LateDevice;
using testing::NullDevice;
using Calls = std::vector<std::string>;

constexpr int64_t large = 2 * StateAccess::pieceBytes + 1000; // larger than what is staged at once

/// A large parameter, a counter, and a step with a control and a metric.
Program makeProgram() {
  Program program;
  auto place = [&](int64_t bytes) {
    const int64_t offset = program.arenaBytes;
    program.arenaBytes += (bytes + 63) / 64 * 64;
    return offset;
  };
  auto state = [&](std::string name, StateKind kind, DType dtype, Shape shape,
                   std::string profile = {}) {
    State state;
    state.name = std::move(name), state.kind = kind, state.profile = std::move(profile);
    state.dtype = dtype, state.shape = state.local = std::move(shape);
    state.bytes = elementCount(state.shape) * byteSize(dtype), state.offset = place(state.bytes);
    program.states.push_back(std::move(state));
  };
  state("weight", StateKind::Param, DType::U8, {large});
  state("weight", StateKind::Ema, DType::F32, {2}, "slow");
  state("weight", StateKind::Ema, DType::F32, {2}, "fast");
  state("step", StateKind::Counter, DType::I64, {});
  Function step;
  step.name = "step";
  step.bindings = {{Binding::Role::Control, "lr", DType::F32, {}, {}, place(4), 4, 0},
                   {Binding::Role::Metric, "loss", DType::F32, {}, {}, place(4), 4, 0},
                   {Binding::Role::Input, "x", DType::F32, {2, 3}, {2, 3}, place(24), 24, 0}};
  program.functions = {step};
  return program;
}

/// A null device, with the program and the access to it.
struct Rig {
  explicit Rig(bool hasWindow) : null(std::make_unique<NullDevice>(program.arenaBytes, hasWindow)) {
    device = null.get();
    access.emplace(program, *null);
  }

  Program program = makeProgram();
  std::unique_ptr<NullDevice> null;
  NullDevice* device = nullptr;
  std::optional<StateAccess> access;

  Place weight() { return *access->state(StateKind::Param, {}, "weight"); }
};

std::string pattern(int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST(StateAccess, FindsPlacesByName) {
  Rig rig(true);
  StateAccess& access = *rig.access;
  EXPECT_EQ(access.state(StateKind::Ema, "fast", "weight")->offset, rig.program.states[2].offset);
  EXPECT_EQ(access.state(StateKind::Param, {}, "weight")->bytes, large);
  EXPECT_FALSE(access.state(StateKind::Slot, {}, "weight"));
  EXPECT_FALSE(access.state(StateKind::Ema, {}, "weight"));
  const Place x = *access.binding("step", "x");
  EXPECT_EQ(x.shape, (Shape{2, 3}));
  EXPECT_EQ(x.dtype, DType::F32);
  EXPECT_FALSE(access.binding("step", "y"));
  EXPECT_FALSE(access.binding("eval", "x"));
}

TEST(StateAccess, ReadsAndWritesParts) {
  for (bool hasWindow : {true, false}) {
    Rig rig(hasWindow);
    const Place weight = rig.weight();
    ASSERT_TRUE(rig.access->fill(weight, 7).ok());
    ASSERT_TRUE(rig.access->write(weight, 100, pattern(50)).ok());
    std::string read(70, '\0');
    ASSERT_TRUE(rig.access->read(weight, 90, read).ok());
    EXPECT_EQ(read, std::string(10, 7) + pattern(50) + std::string(10, 7));
    ASSERT_TRUE(rig.access->read(weight, large, std::span<char>()).ok());
    for (auto [first, bytes] : {std::pair{large - 1, 2}, {int64_t{-1}, 1}, {large + 1, 0}}) {
      const Status left =
          rig.access->read(weight, first, std::span<char>(read).first(static_cast<size_t>(bytes)));
      ASSERT_FALSE(left.ok());
      EXPECT_EQ(left.error().message(), fmt::format("bytes [{}, {}) leave a place of {} bytes",
                                                    first, first + bytes, large));
      EXPECT_FALSE(
          rig.access->write(weight, first, read.substr(0, static_cast<size_t>(bytes))).ok());
    }
  }
}

TEST(StateAccess, ReadsAndWritesAreCompleteOnReturn) {
  Rig rig(false);
  LateDevice late(std::move(rig.null));
  StateAccess access(rig.program, late);
  std::string source = pattern(64), read(64, '\0');
  ASSERT_TRUE(access.write(rig.weight(), 0, source).ok());
  source.assign(64, 'x');
  ASSERT_TRUE(access.read(rig.weight(), 0, read).ok());
  EXPECT_EQ(read, pattern(64));
}

TEST(StateAccess, ATransferGoesOnBehindTheCall) {
  {
    Rig rig(false);
    LateDevice late(std::move(rig.null));
    StateAccess access(rig.program, late);
    std::string source = pattern(64), read(64, '\0');
    const ByteSink sink = access.sink(rig.weight());
    const Transfer transfer = sink.begin(0, source).take();
    EXPECT_FALSE(transfer.isDone()); // LateDevice has no window
    source[0] = 'x';                 // too early
    ASSERT_TRUE(transfer.wait().ok());
    source[1] = 'x';
    ASSERT_TRUE(access.read(rig.weight(), 0, read).ok());
    EXPECT_EQ(read, "x" + pattern(64).substr(1));
  }
  Rig rig(true);
  std::string source = pattern(64), read(64, '\0');
  EXPECT_TRUE(rig.access->sink(rig.weight()).begin(0, source).take().isDone());
  EXPECT_FALSE(rig.access->runsBehind());
}

TEST(StateAccess, AWindowIsReadAndWrittenAtOnceWithoutACall) {
  Rig rig(true);
  const ByteSink sink = rig.access->sink(rig.weight());
  int pieces = 0;
  ASSERT_TRUE(sink.fillPieces([&](int64_t first, std::span<char> piece) -> Status {
                    ++pieces;
                    EXPECT_EQ(first, 0);
                    EXPECT_EQ(static_cast<int64_t>(piece.size()), large);
                    std::ranges::copy(pattern(large), piece.begin());
                    return {};
                  })
                  .ok());
  const ByteSource source = rig.access->source(rig.weight());
  EXPECT_EQ(source.direct().data(), rig.device->window(0, large).data());
  ASSERT_TRUE(source
                  .forEachPiece([&](std::span<const char> piece) -> Status {
                    ++pieces;
                    EXPECT_EQ(std::string(piece.begin(), piece.end()), pattern(large));
                    return {};
                  })
                  .ok());
  EXPECT_EQ(pieces, 2);
  EXPECT_EQ(rig.device->calls, Calls{});
}

TEST(StateAccess, ALargePlaceGoesInPieces) {
  Rig rig(false);
  const ByteSink sink = rig.access->sink(rig.weight());
  EXPECT_TRUE(sink.direct().empty());
  const std::string whole = pattern(large);
  ASSERT_TRUE(sink.fillPieces([&](int64_t first, std::span<char> piece) -> Status {
                    std::ranges::copy(std::string_view(whole).substr(first, piece.size()),
                                      piece.begin());
                    return {};
                  })
                  .ok());
  const std::string mib = std::to_string(StateAccess::pieceBytes);
  EXPECT_EQ(rig.device->calls, (Calls{"hostBuffer " + mib, "upload 0 " + mib, "record 1", "wait 1",
                                      "upload " + mib + " " + mib, "record 2", "wait 2",
                                      fmt::format("upload {} 1000", 2 * StateAccess::pieceBytes),
                                      "record 3", "wait 3"}));
  rig.device->calls.clear();
  std::string read;
  const ByteSource source = rig.access->source(rig.weight()).part(5, large - 10);
  ASSERT_TRUE(source
                  .forEachPiece([&](std::span<const char> piece) -> Status {
                    read.append(piece.data(), piece.size());
                    return {};
                  })
                  .ok());
  EXPECT_EQ(read, whole.substr(5, large - 10));
  EXPECT_EQ(rig.device->calls.front(), "download 5 " + mib); // the staging memory is there
  EXPECT_EQ(rig.device->calls.size(), 9u);
}

TEST(StateAccess, PiecesTravelAhead) {
  Rig rig(false);
  rig.program.stateBytes = 2 * StateAccess::pieceBytes - 1; // a ring of two
  const std::string mib = std::to_string(StateAccess::pieceBytes),
                    second = fmt::format("{} {}", mib, mib),
                    third = fmt::format("{} 1000", 2 * StateAccess::pieceBytes);
  const auto nothing = [](int64_t, std::span<char>) { return Status(); };
  ASSERT_TRUE(rig.access->sink(rig.weight()).fillPieces(nothing).ok());
  EXPECT_EQ(rig.device->calls, (Calls{fmt::format("hostBuffer {}", 2 * StateAccess::pieceBytes),
                                      "upload 0 " + mib, "record 1", "upload " + second, "record 2",
                                      "wait 1", "upload " + third, "record 3", "wait 3"}));
  rig.device->calls.clear();
  const auto see = [](std::span<const char>) { return Status(); };
  ASSERT_TRUE(rig.access->source(rig.weight()).forEachPiece(see).ok());
  EXPECT_EQ(rig.device->calls,
            (Calls{"download 0 " + mib, "record 4", "download " + second, "record 5", "wait 4",
                   "download " + third, "record 6", "wait 5", "wait 6"}));
}

TEST(StateAccess, PiecesAreWholeOnALateDevice) {
  for (int64_t pieces : {1, 2, 3, 9}) {
    Rig rig(false);
    rig.program.stateBytes = pieces * StateAccess::pieceBytes;
    LateDevice late(std::move(rig.null));
    StateAccess access(rig.program, late);
    const std::string whole = pattern(large);
    ASSERT_TRUE(access.sink(rig.weight())
                    .fillPieces([&](int64_t first, std::span<char> piece) -> Status {
                      std::ranges::copy(
                          std::string_view(whole).substr(static_cast<size_t>(first), piece.size()),
                          piece.begin());
                      return {};
                    })
                    .ok());
    const auto enough = [](std::span<const char>) { return Status(Error::badInput("enough")); };
    EXPECT_FALSE(access.source(rig.weight()).forEachPiece(enough).ok());
    std::string read;
    ASSERT_TRUE(access.source(rig.weight())
                    .forEachPiece([&](std::span<const char> piece) -> Status {
                      read.append(piece.data(), piece.size());
                      return {};
                    })
                    .ok());
    EXPECT_EQ(read, whole) << pieces;
  }
}

TEST(StateAccess, TheFirstErrorEndsAWalkOverPieces) {
  const auto refuse = [] { return Status(Error::badInput("enough")); };
  for (bool hasWindow : {true, false}) {
    Rig rig(hasWindow);
    int pieces = 0;
    EXPECT_EQ(rig.access->source(rig.weight())
                  .forEachPiece([&](std::span<const char>) { return ++pieces, refuse(); })
                  .error()
                  .message(),
              "enough");
    EXPECT_EQ(rig.access->sink(rig.weight())
                  .fillPieces([&](int64_t, std::span<char>) { return ++pieces, refuse(); })
                  .error()
                  .message(),
              "enough");
    EXPECT_EQ(pieces, 2);
  }
}

TEST(StateAccess, EveryCallOfTheDeviceMayFail) {
  const auto everything = [](Rig& rig) -> Status {
    const Scalar lr = TITAN_TRY(rig.access->scalar(*rig.access->binding("step", "lr")));
    TITAN_TRY(rig.access->scalar(*rig.access->binding("step", "loss")));
    lr.write(0.5);
    TITAN_TRY(rig.access->run(0, nullptr));
    TITAN_TRY(rig.access->fill(rig.weight(), 0));
    TITAN_TRY(rig.access->write(rig.weight(), 0, pattern(8)));
    std::string read(8, '\0');
    TITAN_TRY(rig.access->read(rig.weight(), 0, read));
    TITAN_TRY(rig.access->source(rig.weight()).forEachPiece([](std::span<const char>) {
      return Status();
    }));
    return rig.access->sink(rig.weight()).fillPieces([](int64_t, std::span<char>) {
      return Status();
    });
  };
  Rig sound(false);
  ASSERT_TRUE(everything(sound).ok());
  const size_t calls = sound.device->calls.size();
  EXPECT_GT(calls, 20u);
  for (size_t i = 0; i < calls; ++i) {
    Rig rig(false);
    rig.device->failAt = i;
    const Status failed = everything(rig);
    ASSERT_FALSE(failed.ok()) << sound.device->calls[i];
    EXPECT_EQ(failed.error().message(), "'a command' of step failed");
    // At most a record() later, which cannot fail: nothing is done behind an error.
    EXPECT_LE(rig.device->calls.size(), i + 2) << sound.device->calls[i];
  }
}

TEST(Scalars, AreAddressesInAWindow) {
  Rig rig(true);
  const Scalar lr = rig.access->scalar(*rig.access->binding("step", "lr")).take();
  const Scalar loss = rig.access->scalar(*rig.access->binding("step", "loss")).take();
  lr.write(0.25);
  rig.device->body = [&](uint32_t, char* arena) {
    std::memcpy(arena + rig.program.functions[0].bindings[1].offset,
                arena + rig.program.functions[0].bindings[0].offset, 4);
  };
  ASSERT_TRUE(rig.access->run(0, nullptr).ok());
  EXPECT_EQ(loss.read(), 0.25);
  EXPECT_EQ(rig.device->calls, (Calls{"run 0", "record 1", "wait 1"}));
}

TEST(Scalars, FollowEachRunWithoutAWindow) {
  Rig rig(false);
  StateAccess& access = *rig.access;
  const auto& bindings = rig.program.functions[0].bindings;
  const int64_t lrAt = bindings[0].offset, lossAt = bindings[1].offset;
  rig.device->body = [=](uint32_t, char* arena) { // loss += lr
    float lr, loss;
    std::memcpy(&lr, arena + lrAt, 4);
    std::memcpy(&loss, arena + lossAt, 4);
    loss += lr;
    std::memcpy(arena + lossAt, &loss, 4);
  };
  const Scalar lr = access.scalar(*access.binding("step", "lr")).take();
  const Scalar loss = access.scalar(*access.binding("step", "loss")).take();
  const Scalar same = access.scalar(*access.binding("step", "loss")).take();
  rig.device->calls.clear();
  ASSERT_TRUE(lr.write(0.5));
  EXPECT_EQ(rig.device->calls, Calls{}); // goes with the next run
  ASSERT_TRUE(access.run(0, nullptr).ok());
  EXPECT_EQ(loss.read(), 0.5);
  EXPECT_EQ(same.read(), 0.5);
  EXPECT_EQ(rig.device->calls, (Calls{fmt::format("upload {} 4", lrAt), "run 0",
                                      fmt::format("download {} 4", lossAt), "record 3", "wait 3"}));
  rig.device->calls.clear();
  ASSERT_TRUE(lr.write(0.5)); // the device has it
  ASSERT_TRUE(access.run(0, nullptr).ok());
  EXPECT_EQ(rig.device->calls.front(), "run 0");
  EXPECT_EQ(loss.read(), 1);
  ASSERT_TRUE(lr.write(2.0));
  ASSERT_TRUE(access.run(0, nullptr).ok());
  EXPECT_EQ(loss.read(), 3);
}

TEST(Scalars, OfRunsThatGoOnAtOnce) {
  Rig rig(false);
  const auto& bindings = rig.program.functions[0].bindings;
  rig.device->body = [lrAt = bindings[0].offset, lossAt = bindings[1].offset](
                         uint32_t, char* arena) { std::memcpy(arena + lossAt, arena + lrAt, 4); };
  LateDevice late(std::move(rig.null));
  StateAccess access(rig.program, late);
  EXPECT_TRUE(access.runsBehind());
  const Scalar lr = access.scalar(*access.binding("step", "lr")).take();
  const Scalar loss = access.scalar(*access.binding("step", "loss")).take();
  uint64_t begun = 0, finished = 0;
  const auto begin = [&] {
    lr.write(static_cast<double>(++begun));
    return access.begin(0, nullptr);
  };
  for (uint64_t ahead : {0, 1, 2, 3}) // each run sees its lr, whatever came behind it
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(begin().ok());
      while (begun - finished > ahead) {
        ASSERT_TRUE(access.finish().ok());
        ASSERT_EQ(loss.read(), static_cast<double>(++finished));
      }
    }
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(begin().error().message(), "4 runs are begun and none of them is finished");
  for (uint64_t i = 0; i < ScalarPage::mostRuns; ++i)
    ASSERT_TRUE(access.finish().ok());
  EXPECT_EQ(loss.read(), static_cast<double>(finished + ScalarPage::mostRuns));
  EXPECT_EQ(access.finish().error().message(), "no run is begun");
}

TEST(Scalars, SeeWhatIsWrittenAround) {
  for (bool hasWindow : {true, false}) {
    Rig rig(hasWindow);
    const Place place = *rig.access->state(StateKind::Counter, {}, "step");
    const Scalar step = rig.access->scalar(place).take();
    EXPECT_EQ(step.count(), 0);
    const int64_t loaded = 41;
    ASSERT_TRUE(rig.access->sink(place)
                    .write(0, {reinterpret_cast<const char*>(&loaded), sizeof loaded})
                    .ok());
    EXPECT_EQ(step.count(), 41);
    ASSERT_TRUE(rig.access->fill(place, 0).ok());
    EXPECT_EQ(step.count(), 0);
  }
}

TEST(Scalars, RefuseWhatIsNone) {
  Rig rig(false);
  EXPECT_EQ(rig.access->scalar(*rig.access->binding("step", "x")).error().message(),
            "a place of 24 bytes is no scalar of F32");
  EXPECT_EQ(rig.access->scalar(Place{0, 1, DType::U8, {}}).take().write(int64_t{1}), false);
  for (int64_t i = 1; i < ScalarPage::pageBytes / ScalarPage::slotBytes; ++i)
    ASSERT_TRUE(rig.access->scalar(Place{8 * i, 8, DType::I64, {}}).ok());
  EXPECT_EQ(rig.access->scalar(Place{8 * 1000, 8, DType::I64, {}}).error().message(),
            "the program has more than 512 scalars");
  const Scalar nothing;
  EXPECT_FALSE(nothing.exists());
  EXPECT_EQ(nothing.read(0.5), 0.5);
}

TEST(Bytes, OfMemoryAreDirect) {
  std::string memory = pattern(100);
  const ByteSource source{std::span<const char>(memory)};
  EXPECT_EQ(source.direct().data(), memory.data());
  std::string read(10, '\0');
  ASSERT_TRUE(source.part(20, 30).read(5, read).ok());
  EXPECT_EQ(read, memory.substr(25, 10));
  const ByteSink sink = ByteSink(std::span<char>(memory)).part(50, 4);
  EXPECT_EQ(sink.bytes(), 4);
  ASSERT_TRUE(sink.write(1, std::string_view("ab")).ok());
  EXPECT_EQ(memory.substr(51, 2), "ab");
  bool called = false;
  ASSERT_TRUE(ByteSource()
                  .forEachPiece([&](std::span<const char>) {
                    called = true;
                    return Status();
                  })
                  .ok());
  EXPECT_FALSE(called);
}

} // namespace
} // namespace titan
