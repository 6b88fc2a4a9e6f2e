// The compute threads of a job: persistent, spinning while a step runs, asleep soon after it ends.
//
// A region cuts its units into one contiguous range for each participating thread and returns when
// all are done. The calling thread takes the first range itself, and then every range whose thread
// has not begun: a thread that the system runs late costs its help, never a wait. A region
// allocates nothing and takes no lock.
#pragma once

#include "runtime/host/KernelThread.h"
#include "runtime/program/Error.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace titan {

/// CPUs this process may use: its affinity mask, cut to the CPU quota of its control group; at
/// least 1.
int allowedCpus();

class ThreadPool {
public:
  using Body = void (*)(void* context, int64_t begin, int64_t end);
  static constexpr int maxThreads = 1024;

  /// `threads` counts the caller. Environment when a thread cannot be started.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// How many threads a region of `units` uses when each is to get at least `grain` of them.
  int threadsFor(int64_t units, int64_t grain) const {
    int64_t wanted = grain > 1 ? units / grain : units;
    return static_cast<int>(wanted < 1 ? 1 : wanted < threads_ ? wanted : threads_);
  }

  /// Runs body(context, begin, end) on `active` threads over the ranges that cut [0, units) evenly;
  /// thread i gets the i-th, or the caller, if `takeOver` allows and the thread has not begun. Only
  /// one thread may call this, and not from inside a body. 1 <= active <= threads().
  void region(int active, int64_t units, Body body, void* context, bool takeOver = true);

  /// body(begin, end) on threadsFor(units, grain) threads.
  template <typename F> void parallelFor(int64_t units, int64_t grain, F&& body) {
    region(threadsFor(units, grain), units, &call<std::remove_reference_t<F>>, address(body));
  }

  /// body() once on every thread, the caller included: for settings that a library keeps per
  /// thread.
  template <typename F> void onEveryThread(F&& body) {
    auto once = [&](int64_t, int64_t) { body(); };
    region(threads_, threads_, &call<decltype(once)>, address(once), /*takeOver=*/false);
  }

private:
  template <typename Function> static void call(void* context, int64_t begin, int64_t end) {
    (*static_cast<Function*>(context))(begin, end);
  }
  template <typename Function> static void* address(Function& function) {
    return const_cast<void*>(static_cast<const void*>(&function));
  }

  // What one worker and the caller tell each other. The words lie on lines of their own: the caller
  // reads `asleep` in every region, and it hardly ever changes.
  struct Worker {
    alignas(64) std::atomic<uint64_t> claimed{0}; ///< the last region whose range somebody took
    alignas(64) std::atomic<uint64_t> done{0};    ///< the last region this worker finished
    alignas(64) std::atomic<uint32_t> asleep{0};
    KernelThread thread;
  };

  explicit ThreadPool(int threads);
  void work(int index);
  uint64_t awaitRegion(Worker& worker, uint64_t seen);
  void awaitWorker(Worker& worker, uint64_t generation);
  static bool claim(Worker& worker, uint64_t generation);

  static constexpr int activeBits = 12;

  // The region on offer: number << activeBits | threads taking part. One word, so that a worker
  // that is late for a region it has no part in never mixes two regions; the fields below it are
  // stable for those that claimed their range, because the caller waits for them.
  alignas(64) std::atomic<uint64_t> offer_{0};
  Body body_ = nullptr;
  void* context_ = nullptr;
  int64_t units_ = 0;
  alignas(64) std::atomic<uint32_t> callerAsleep_{0};
  int threads_ = 1;
  int spins_ = 0;
  bool stopping_ = false;
  std::unique_ptr<Worker[]> workers_; ///< [0] stands for the caller and is unused
};

} // namespace titan
