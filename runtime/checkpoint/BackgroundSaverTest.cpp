// Saves beside the thread that wants them.
#include "runtime/checkpoint/BackgroundSaver.h"

#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <semaphore>

#include <sys/resource.h>

namespace titan::checkpoint {
namespace {

class BackgroundSaverTest : public ::testing::Test {
protected:
  void SetUp() override {
    auto opened = CheckpointStore::open(directory.path() + "/run", env);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    store.emplace(opened.take());
    auto created = BackgroundSaver::create(*store);
    ASSERT_TRUE(created.ok()) << created.error().message();
    saver = created.take();
  }

  void begin(int64_t step, int64_t keep) {
    const SaveRequest request = state.saveRequest(step);
    if (!plan) {
      auto planned = store->plan(request);
      ASSERT_TRUE(planned.ok()) << planned.error().message();
      plan.emplace(planned.take());
    }
    saver->begin(*plan, {step, request.counters}, keep);
  }

  TemporaryDirectory directory;
  FaultEnv env{posixEnv()};
  SampleState state{1};
  std::optional<CheckpointStore> store;
  std::optional<SavePlan> plan;
  std::unique_ptr<BackgroundSaver> saver;
};

TEST_F(BackgroundSaverTest, SavesBesideTheCaller) {
  std::binary_semaphore goOn(0);
  std::atomic<bool> isHeld = false;
  env.beforeEach([&](int64_t) {
    if (!isHeld.exchange(true))
      goOn.acquire();
  });
  EXPECT_FALSE(saver->isBusy());
  EXPECT_FALSE(saver->poll());
  begin(7, 0);
  EXPECT_TRUE(saver->isBusy());
  EXPECT_FALSE(saver->poll()); // its first operation waits for this thread
  goOn.release();
  const Saved saved = saver->wait();
  EXPECT_FALSE(saver->isBusy());
  EXPECT_EQ(saved.step, 7);
  ASSERT_TRUE(saved.report.ok()) << saved.report.error().message();
  EXPECT_GT(saved.report->bytes, 0);
  EXPECT_GT(saved.cpuSeconds, 0);
  SampleState loaded(9);
  ASSERT_TRUE(load(saved.report->path, loaded.loadRequest()).ok());
  EXPECT_EQ(loaded, state);
}

TEST_F(BackgroundSaverTest, OneAfterAnother) {
  for (int64_t step = 1; step <= 20; ++step) {
    state.refill(static_cast<uint8_t>(step));
    begin(step, 3);
    std::optional<Saved> saved;
    while (step % 2 == 0 && !saved)
      saved = saver->poll();
    if (!saved)
      saved = saver->wait();
    EXPECT_EQ(saved->step, step);
    ASSERT_TRUE(saved->report.ok()) << saved->report.error().message();
  }
  const auto left = store->list();
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->size(), 3u);
}

TEST_F(BackgroundSaverTest, AFailureIsTakenAndTheNextSaveWorks) {
  env.failAt(3, ENOSPC, /*forGood=*/false);
  begin(1, 0);
  const Saved failed = saver->wait();
  ASSERT_FALSE(failed.report.ok());
  EXPECT_EQ(failed.report.error().code(), ErrorCode::RunFailed);
  begin(2, 0);
  EXPECT_TRUE(saver->wait().report.ok());
}

TEST_F(BackgroundSaverTest, TheEndWaitsForASave) {
  begin(5, 0);
  saver.reset();
  SampleState loaded(9);
  ASSERT_TRUE(load(directory.path() + "/run/checkpoints/step-00000005", loaded.loadRequest()).ok());
  EXPECT_EQ(loaded, state);
}

TEST_F(BackgroundSaverTest, OnlyItsThreadHasALowPriority) {
  std::atomic<int> priority = -1;
  env.beforeEach([&](int64_t) { priority = getpriority(PRIO_PROCESS, 0); });
  const int own = getpriority(PRIO_PROCESS, 0);
  begin(1, 0);
  ASSERT_TRUE(saver->wait().report.ok());
  EXPECT_EQ(priority, 19);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own);
}

} // namespace
} // namespace titan::checkpoint
