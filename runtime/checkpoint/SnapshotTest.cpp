// What a save reads while the state goes on to change.
#include "runtime/checkpoint/Snapshot.h"

#include "runtime/checkpoint/BackgroundSaver.h"
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/WriteState.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"
#include "runtime/device/testing/LinearRun.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <semaphore>
#include <thread>

namespace titan::checkpoint {
namespace {

using testing::LinearRun;

constexpr int64_t all = std::numeric_limits<int64_t>::max();

/// On the CPU, and on a device without a window that does nothing before it must.
class SnapshotTest : public ::testing::TestWithParam<LinearRun::Maker> {
protected:
  void SetUp() override {
    run.train(3);
    auto opened = CheckpointStore::open(directory.path() + "/run", env);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    store.emplace(opened.take());
    saver = BackgroundSaver::create(*store).take();
  }

  Snapshot take(int64_t most) {
    Snapshot snapshot = *Snapshot::of(*run.access);
    EXPECT_TRUE(snapshot.reserve(most).ok());
    EXPECT_TRUE(snapshot.take().ok());
    return snapshot;
  }
  void begin(Snapshot& snapshot) {
    if (!plan) {
      SaveRequest request;
      request.tensors = tensors(*run.access);
      request.counters = counters(*run.access).take();
      request.program = describe(run.program, {}, Recipe());
      plan.emplace(store->plan(request).take());
    }
    ASSERT_TRUE(plan->readFrom(snapshot.tensors()).ok());
    saver->begin(*plan,
                 {.step = nextStep++,
                  .counters = counters(*run.access).take(),
                  .beforeRead = [&snapshot] { return snapshot.wait(); }},
                 0);
  }
  /// As a run does between a save and the next step.
  void setGate(Snapshot& snapshot) {
    run.access->setGate([&] {
      saver->waitUntilRead();
      EXPECT_TRUE(snapshot.hold().ok());
    });
  }
  /// Every byte of every state that is no counter.
  void spoil() {
    for (const State& state : run.program.states)
      if (state.kind != StateKind::Counter)
        ASSERT_TRUE(run.access->fill(placeOf(state), '\xff').ok());
  }
  std::vector<std::string> bytesOf(const std::vector<TensorView>& tensors) {
    std::vector<std::string> bytes;
    for (const TensorView& tensor : tensors) {
      bytes.emplace_back(static_cast<size_t>(tensor.bytes()), '\0');
      EXPECT_TRUE(tensor.source.read(0, bytes.back()).ok());
    }
    return bytes;
  }

  LinearRun run{2, GetParam()};
  int64_t nextStep = 3;
  TemporaryDirectory directory;
  FaultEnv env{posixEnv()};
  std::optional<CheckpointStore> store;
  std::optional<SavePlan> plan;
  std::unique_ptr<BackgroundSaver> saver;
};

// What is read before the state may change is a copy in host memory or asked for: nothing is left
// to a later call of the device.
TEST_P(SnapshotTest, CopiesAreMadeBesideTheNextStep) {
  const std::vector<std::string> before = bytesOf(tensors(*run.access));
  Snapshot snapshot = take(all);
  setGate(snapshot);
  if (!snapshot.needsGate())
    run.access->setGate(nullptr);
  spoil();
  ASSERT_TRUE(snapshot.wait().ok());
  EXPECT_EQ(bytesOf(snapshot.tensors()), before);
  EXPECT_EQ(snapshot.needsGate(), run.access->runsBehind());
}

TEST_P(SnapshotTest, StagesTheLastTensorsOfASaveThatFit) {
  const Snapshot none = *Snapshot::of(*run.access);
  const auto order = inSaveOrder(none.tensors());
  ASSERT_TRUE(order.ok());
  ASSERT_GE(order->size(), 2u);
  for (int64_t most = 0; most <= none.bytes(); ++most) {
    Snapshot snapshot = *Snapshot::of(*run.access);
    ASSERT_TRUE(snapshot.reserve(most).ok());
    EXPECT_LE(snapshot.stagedBytes(), most);
    // Borrowed ones first, then those with a copy.
    const auto tensors = inSaveOrder(snapshot.tensors()).take();
    EXPECT_TRUE(std::ranges::is_partitioned(tensors, &TensorView::isBorrowed));
    EXPECT_EQ(snapshot.isPartial(), std::ranges::any_of(tensors, &TensorView::isBorrowed));
    EXPECT_EQ(snapshot.isPartial(), most < none.bytes()) << most;
  }
}

TEST_P(SnapshotTest, CopiesStayAndTheRestIsTheStateItself) {
  const std::vector<std::string> before = bytesOf(tensors(*run.access));
  for (int64_t most : {int64_t{0}, Snapshot::of(*run.access)->bytes() / 2, all}) {
    Snapshot snapshot = take(most);
    ASSERT_TRUE(snapshot.wait().ok());
    EXPECT_EQ(bytesOf(snapshot.tensors()), before);
    std::vector<std::string> kept;
    for (const State& state : run.program.states)
      kept.push_back(run.bytesOfState(state));
    spoil();
    const std::vector<std::string> after = bytesOf(snapshot.tensors());
    for (size_t i = 0; i < after.size(); ++i)
      EXPECT_EQ(after[i] == before[i], !snapshot.tensors()[i].isBorrowed) << i;
    for (size_t i = 0; i < kept.size(); ++i)
      ASSERT_TRUE(run.access->write(placeOf(run.program.states[i]), 0, kept[i]).ok());
  }
}

// The state is spoiled as soon as the save has read what it borrowed: before it has written the
// rest and before anything is durable.
TEST_P(SnapshotTest, ASaveThatBorrowsIsTheStateOfItsStep) {
  const std::vector<std::string> before = bytesOf(tensors(*run.access));
  for (int64_t most : {int64_t{0}, Snapshot::of(*run.access)->bytes() / 2, all}) {
    Snapshot snapshot = take(most);
    begin(snapshot);
    setGate(snapshot);
    std::vector<std::string> kept;
    for (const State& state : run.program.states)
      kept.push_back(run.bytesOfState(state));
    spoil();
    const Saved saved = saver->wait();
    ASSERT_TRUE(saved.report.ok()) << saved.report.error().message();
    ASSERT_TRUE(
        load(saved.report->path, {destinations(*run.access), describe(run.program, {}, Recipe())})
            .ok());
    EXPECT_EQ(bytesOf(tensors(*run.access)), before) << most;
  }
}

TEST_P(SnapshotTest, TheGateOpensBeforeTheSaveHasEndedAndWhenItFails) {
  Snapshot snapshot = take(0);
  const int64_t before = env.operations();
  begin(snapshot);
  ASSERT_TRUE(saver->wait().report.ok());
  const int64_t operations = env.operations() - before;

  // Every operation is held until it is seen whether the gate is open.
  int64_t opensAt = -1;
  std::counting_semaphore<> goOn(0);
  std::atomic<int64_t> reached = 0;
  env.beforeEach([&](int64_t) {
    ++reached;
    goOn.acquire();
  });
  begin(snapshot);
  std::atomic<bool> isOpen = false;
  std::thread gate([&] {
    saver->waitUntilRead();
    isOpen = true;
  });
  for (int64_t operation = 0; operation < operations; ++operation) {
    while (reached <= operation)
      std::this_thread::yield();
    if (opensAt < 0) {
      // An open gate is seen within a while; one that is shut stays so.
      for (int i = 0; i < 50 && !isOpen; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      opensAt = isOpen ? operation : -1;
    }
    goOn.release();
  }
  gate.join();
  ASSERT_TRUE(saver->wait().report.ok());
  EXPECT_GT(opensAt, 0);
  EXPECT_LT(opensAt, operations - 1);

  env.beforeEach({});
  env.failAt(2, ENOSPC, /*forGood=*/false);
  begin(snapshot);
  saver->waitUntilRead();
  EXPECT_FALSE(saver->wait().report.ok());
}

INSTANTIATE_TEST_SUITE_P(Devices, SnapshotTest,
                         ::testing::Values(testing::makeCpuDevice, testing::makeLateDevice),
                         [](const auto& info) { return info.index == 0 ? "Cpu" : "Late"; });

} // namespace
} // namespace titan::checkpoint
