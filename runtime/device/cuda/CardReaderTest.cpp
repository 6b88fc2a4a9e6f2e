// States that are copied to the host while the card runs the next step.
#include "runtime/device/cuda/testing/CudaRun.h"

#include <thread>

namespace titan {
namespace {

using testing::CudaRun;
using testing::FakeVariable;
using testing::Record;

/// The linear program, whose states are copied.
struct CopiedRun : CudaRun {
  /// Begins copies of all states, one behind the other, as a save does between two steps.
  void copy() {
    ASSERT_TRUE(access->settle().ok());
    reader = device->reader().take();
    int64_t bytes = 0;
    for (const State& state : program.states)
      bytes += state.bytes;
    copies = device->hostBuffer(bytes).take();
    size_t at = 0;
    for (const State& state : program.states) {
      const auto size = static_cast<size_t>(state.bytes);
      ASSERT_TRUE(reader->download(state.offset, copies.subspan(at, size)).ok());
      at += size;
    }
  }
  void holdAtGate() {
    device->setGate([this] { EXPECT_TRUE(reader->hold().ok()); });
  }
  /// A step that nobody waits for.
  void begin() {
    fill(2);
    ASSERT_TRUE(device->run(0, nullptr).ok());
  }
  std::string waitForCopies() {
    std::thread([&] { EXPECT_TRUE(reader->wait().ok()); }).join();
    return {copies.data(), copies.size()};
  }

  std::span<char> copies;
  std::unique_ptr<StateReader> reader; ///< ends before the device
};

TEST(CardReader, CopiesWhatTheStepFoundAndTheStepChanges) {
  CudaRun plain;
  plain.train(3);
  for (const char* seed : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
    const FakeVariable variable("SEED", seed);
    CopiedRun run;
    run.train(2);
    const std::string before = run.stateBytes();
    run.copy();
    run.holdAtGate();
    run.begin();
    EXPECT_FALSE(run.device->hasGate());
    EXPECT_EQ(run.stateBytes(), plain.stateBytes()) << seed;
    EXPECT_EQ(run.waitForCopies(), before) << seed;
  }
}

TEST(CardReader, WithoutAHoldTheStepWouldBeFaster) {
  CopiedRun run;
  run.train(2);
  const std::string before = run.stateBytes();
  run.copy();
  run.begin();
  EXPECT_EQ(run.stateBytes(), [] {
    CudaRun plain;
    plain.train(3);
    return plain.stateBytes();
  }());
  EXPECT_NE(run.waitForCopies(), before);
}

TEST(CardReader, WaitsAreNotTheHosts) {
  const Record record;
  CopiedRun run;
  run.train(2);
  run.copy();
  run.holdAtGate();
  const auto waits = [&] {
    return record.count("cuStreamSynchronize") + record.count("cuEventSynchronize");
  };
  ASSERT_TRUE(run.access->settle().ok());
  const int64_t waited = waits(), held = record.count("cuStreamWaitEvent");
  ASSERT_TRUE(run.device->run(0, nullptr).ok());
  EXPECT_EQ(waits(), waited);
  EXPECT_EQ(record.count("cuStreamWaitEvent"), held + 1);
}

TEST(CardReader, OnlyAStepThatHoldsIsNoGraph) {
  const Record record;
  CopiedRun run;
  run.train(3);
  EXPECT_EQ(record.count("cuGraphLaunch"), 2);
  run.copy();
  run.holdAtGate();
  for (const char* input : {"x", "targets"})
    ASSERT_TRUE(run.access->fill(*run.access->binding("eval", input), 0).ok());
  run.scalar("eval", "valid_rows").write(3);
  ASSERT_TRUE(run.run("eval").ok());
  ASSERT_TRUE(run.run("eval").ok());
  EXPECT_TRUE(run.device->hasGate());
  EXPECT_EQ(record.count("cuGraphLaunch"), 3) << "nothing of an evaluation changes a state";
  run.train(1);
  EXPECT_EQ(record.count("cuGraphLaunch"), 3);
  run.train(1);
  EXPECT_EQ(record.count("cuGraphLaunch"), 4);
}

TEST(CardReader, ACardThatCannotHoldFails) {
  for (const bool observed : {false, true}) {
    const FakeVariable fail("FAIL", "cuStreamWaitEvent:5:400"); // four are of batches
    CopiedRun run;
    CommandObserver nobody;
    run.train(1);
    run.copy();
    run.device->setGate([&] { EXPECT_FALSE(run.reader->hold().ok()); });
    const Status status = run.device->run(0, observed ? &nobody : nullptr);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message(),
              "holding card 0 (Titan fake card, sm_120) failed: cuStreamWaitEvent: "
              "CUDA_ERROR_INVALID_HANDLE (as the fake driver says)");
    EXPECT_EQ(run.device->run(0, nullptr).error().message(), status.error().message());
  }
}

TEST(CardReader, ErrorsOfCopiesAreNamed) {
  const FakeVariable fail("FAIL", "cuEventSynchronize:40:719");
  CopiedRun run;
  run.train(1);
  run.copy();
  Status status;
  while (status.ok())
    status = run.reader->wait();
  EXPECT_EQ(status.error().exitCode(), 4);
  EXPECT_TRUE(status.error().message().starts_with(
      "copying states from card 0 (Titan fake card, sm_120) failed: cuEventSynchronize: "))
      << status.error().message();
  EXPECT_FALSE(run.device->run(0, nullptr).ok());
}

} // namespace
} // namespace titan
