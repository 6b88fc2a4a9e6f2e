// The protocol: the caller writes the region's fields, then publishes `offer_`; a worker that takes
// part claims its range by raising its own `claimed` to the region's number, runs it and stores the
// number in `done`. When the caller is through with its own range it claims those that nobody has
// begun, and polls the `done` words of the others. A region ends with every range claimed, so a
// worker that comes late finds its claim taken and touches nothing.
//
// Sleeping is the usual two-sided check: the sleeper raises its flag, then looks again; the waker
// publishes, then looks at the flag; both in one total order (seq_cst), so that one of the two sees
// the other.
#include "runtime/host/ThreadPool.h"

#include "runtime/host/Relax.h"

#include <algorithm>
#include <climits>
#include <cstdio>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan {
namespace {

// Waiting costs nobody anything while every thread has a CPU: about 100 microseconds bridge the
// gaps inside a step and between two short ones. With more threads than CPUs, the waiter occupies
// the CPU of the one it waits for.
constexpr int spinsWithOwnCpu = 4000;
constexpr int spinsOversubscribed = 200;

void futexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void futexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

/// Ends the sleep of whoever waits on `flag`, if anybody does.
void wake(std::atomic<uint32_t>& flag) {
  if (flag.load(std::memory_order_seq_cst) == 0)
    return;
  flag.store(0, std::memory_order_seq_cst);
  futexWake(flag);
}

int64_t rangeBegin(int64_t units, int active, int index) {
  int64_t share = units / active, rest = units % active;
  return index * share + std::min<int64_t>(index, rest);
}

/// CPUs that the control group's quota amounts to, rounded up; INT_MAX without one.
int quotaCpus() {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r");
  if (!file)
    return INT_MAX;
  long long quota = 0, period = 0;
  int fields = std::fscanf(file, "%lld %lld", &quota, &period);
  std::fclose(file);
  if (fields != 2 || quota <= 0 || period <= 0)
    return INT_MAX;
  return static_cast<int>(std::clamp<long long>((quota + period - 1) / period, 1, INT_MAX));
}

} // namespace

int allowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int affinity = sched_getaffinity(0, sizeof set, &set) == 0
                     ? CPU_COUNT(&set)
                     : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(affinity, quotaCpus()));
}

ThreadPool::ThreadPool(int threads)
    : threads_(threads), spins_(threads <= allowedCpus() ? spinsWithOwnCpu : spinsOversubscribed),
      workers_(new Worker[threads]) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  if (threads < 1 || threads > maxThreads)
    return Error::usage("{} threads: use 1 to {}", threads, maxThreads);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads));
  for (int i = 1; i < threads; ++i) {
    auto thread = KernelThread::start([pool = pool.get(), i] { pool->work(i); });
    if (!thread.ok()) {
      pool->threads_ = i;
      return Error::environment("cannot start compute thread {} of {}: {}: use --threads {}", i + 1,
                                threads, thread.error().message(), i);
    }
    pool->workers_[i].thread = thread.take();
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  region(threads_, 0, [](void*, int64_t, int64_t) {}, nullptr, /*takeOver=*/false);
  for (int i = 1; i < threads_; ++i)
    workers_[i].thread.join();
}

bool ThreadPool::claim(Worker& worker, uint64_t generation) {
  uint64_t last = worker.claimed.load(std::memory_order_acquire);
  return last < generation &&
         worker.claimed.compare_exchange_strong(last, generation, std::memory_order_acq_rel);
}

void ThreadPool::region(int active, int64_t units, Body body, void* context, bool takeOver) {
  if (active <= 1) {
    body(context, 0, units);
    return;
  }
  body_ = body;
  context_ = context;
  units_ = units;
  uint64_t generation = (offer_.load(std::memory_order_relaxed) >> activeBits) + 1;
  offer_.store(generation << activeBits | static_cast<uint64_t>(active), std::memory_order_seq_cst);
  for (int i = 1; i < active; ++i)
    wake(workers_[i].asleep);
  body(context, 0, rangeBegin(units, active, 1));
  for (int i = 1; i < active; ++i) {
    if (takeOver && claim(workers_[i], generation))
      body(context, rangeBegin(units, active, i), rangeBegin(units, active, i + 1));
    else
      awaitWorker(workers_[i], generation);
  }
}

void ThreadPool::awaitWorker(Worker& worker, uint64_t generation) {
  for (;;) {
    for (int spin = 0; spin < spins_; ++spin) {
      if (worker.done.load(std::memory_order_acquire) == generation)
        return;
      relax();
    }
    callerAsleep_.store(1, std::memory_order_seq_cst);
    if (worker.done.load(std::memory_order_seq_cst) != generation)
      futexWait(callerAsleep_, 1);
    callerAsleep_.store(0, std::memory_order_relaxed);
  }
}

uint64_t ThreadPool::awaitRegion(Worker& worker, uint64_t seen) {
  for (;;) {
    for (int spin = 0; spin < spins_; ++spin) {
      uint64_t offer = offer_.load(std::memory_order_acquire);
      if (offer != seen)
        return offer;
      relax();
    }
    worker.asleep.store(1, std::memory_order_seq_cst);
    if (offer_.load(std::memory_order_seq_cst) == seen)
      futexWait(worker.asleep, 1);
    worker.asleep.store(0, std::memory_order_relaxed);
  }
}

void ThreadPool::work(int index) {
  pthread_setname_np(pthread_self(), "titan-compute");
  Worker& worker = workers_[index];
  uint64_t seen = 0;
  for (;;) {
    seen = awaitRegion(worker, seen);
    int active = static_cast<int>(seen & ((1u << activeBits) - 1));
    if (index >= active || !claim(worker, seen >> activeBits))
      continue;
    bool last = stopping_;
    body_(context_, rangeBegin(units_, active, index), rangeBegin(units_, active, index + 1));
    worker.done.store(seen >> activeBits, std::memory_order_seq_cst);
    wake(callerAsleep_);
    if (last)
      return;
  }
}

} // namespace titan
