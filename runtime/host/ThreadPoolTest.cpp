#include "runtime/host/ThreadPool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include <unistd.h>

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

TEST(ThreadPool, GivesEveryUnitToExactlyOneThread) {
  for (int threads : {1, 2, 3, 7}) {
    auto pool = ThreadPool::create(threads).take();
    for (int64_t units : {0, 1, 2, 5, 100, 1001}) {
      std::vector<std::atomic<int>> hits(units);
      pool->parallelFor(units, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          ++hits[i];
      });
      for (auto& hit : hits)
        EXPECT_EQ(hit, 1) << threads << " threads, " << units << " units";
    }
  }
}

TEST(ThreadPool, RangesAreContiguousAndOnePerThread) {
  auto pool = ThreadPool::create(4).take();
  std::atomic<int> calls{0};
  pool->parallelFor(10, 1, [&](int64_t begin, int64_t end) {
    ++calls;
    EXPECT_GE(end - begin, 2);
    EXPECT_LE(end - begin, 3);
  });
  EXPECT_EQ(calls, 4);
}

TEST(ThreadPool, GrainLimitsTheThreads) {
  auto pool = ThreadPool::create(4).take();
  EXPECT_EQ(pool->threadsFor(100, 1), 4);
  EXPECT_EQ(pool->threadsFor(100, 50), 2);
  EXPECT_EQ(pool->threadsFor(100, 51), 1);
  EXPECT_EQ(pool->threadsFor(0, 1), 1);
  EXPECT_EQ(pool->threadsFor(3, 0), 3);
}

TEST(ThreadPool, SurvivesManyRegionsOfChangingWidth) {
  auto pool = ThreadPool::create(3).take();
  int64_t total = 0;
  for (int64_t i = 0; i < 20000; ++i) {
    std::atomic<int64_t> sum{0};
    pool->region(
        1 + static_cast<int>(i % 3), 7,
        [](void* context, int64_t begin, int64_t end) {
          static_cast<std::atomic<int64_t>*>(context)->fetch_add(end - begin);
        },
        &sum);
    total += sum;
  }
  EXPECT_EQ(total, 20000 * 7);
}

TEST(ThreadPool, WakesThreadsThatWentToSleep) {
  auto pool = ThreadPool::create(2).take();
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::set<std::thread::id> ids;
    std::mutex mutex;
    pool->onEveryThread([&] {
      std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(ids.size(), 2u);
  }
}

TEST(ThreadPool, WaitsForAThreadThatIsMuchSlower) {
  auto pool = ThreadPool::create(2).take();
  bool slow = false;
  pool->parallelFor(2, 1, [&](int64_t begin, int64_t) {
    if (begin == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      slow = true;
    }
  });
  EXPECT_TRUE(slow);
}

TEST(ThreadPool, RefusesSillyThreadCounts) {
  EXPECT_EQ(ThreadPool::create(0).error().code(), ErrorCode::Usage);
  EXPECT_EQ(ThreadPool::create(100000).error().code(), ErrorCode::Usage);
}

// The bound is loose, for a machine that does other things as well; the figure is printed.
TEST(ThreadPool, RegionCostsLittle) {
  if (allowedCpus() < 2)
    GTEST_SKIP() << "needs 2 CPUs";
  auto pool = ThreadPool::create(2).take();
  constexpr int regions = 20;
  double best = 1e9;
  for (int round = 0; round < 3000; ++round) {
    auto start = Clock::now();
    for (int i = 0; i < regions; ++i)
      pool->parallelFor(2, 1, [](int64_t, int64_t) {});
    best = std::min(best, microseconds(Clock::now() - start) / regions);
  }
  RecordProperty("microseconds_per_region", std::to_string(best));
  std::printf("a region of 2 threads costs %.3f us\n", best);
  EXPECT_LT(best, 50);
}

/// Writes a page of every 64 KiB of `bytes` of stack.
__attribute__((noinline)) void touchStack(size_t bytes) {
  constexpr size_t frame = 64 << 10;
  volatile char page[frame];
  page[0] = 1;
  if (bytes > frame)
    touchStack(bytes - frame);
  page[frame - 1] = page[0];
}

TEST(ThreadPool, GivesKernelsTheirStackWhateverTheLimitOfTheProcess) {
  constexpr size_t kernels = kernelStackBytes - (1 << 20); // the rest is for who calls them
  std::atomic<int> ran{0};
  Status status = runWithKernelStack([&] {
    auto pool = ThreadPool::create(3).take();
    pool->onEveryThread([&] {
      touchStack(kernels);
      ++ran;
    });
  });
  ASSERT_TRUE(status.ok()) << status.error().message();
  EXPECT_EQ(ran, 3);
}

TEST(KernelThread, LeavesSignalsToTheJob) {
  static volatile std::sig_atomic_t seen;
  seen = 0;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) { seen = 1; };
  sigaction(SIGUSR1, &action, &before);
  // For the process, not for a thread: the one that runs the job takes it, out of its wait.
  bool wasInterrupted = false;
  Status status = runWithKernelStack([&] {
    std::thread sender([main = getpid()] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      kill(main, SIGUSR1);
    });
    const timespec aLongTime = {.tv_sec = 10, .tv_nsec = 0};
    wasInterrupted = nanosleep(&aLongTime, nullptr) != 0;
    sender.join();
  });
  sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(wasInterrupted);
}

} // namespace
} // namespace titan
