#include "runtime/checkpoint/BackgroundSaver.h"

#include <chrono>
#include <ctime>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan::checkpoint {
namespace {

/// The lowest of the normal priorities for CPU and I/O, of this thread alone: on Linux both belong
/// to threads. Where the system does not allow it the thread works as others do.
void lowerPriority() {
  constexpr int lowestNice = 19, whoProcess = 1, bestEffort = 2, classShift = 13, lowestLevel = 7;
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, lowestNice);
  (void)::syscall(SYS_ioprio_set, whoProcess, 0, bestEffort << classShift | lowestLevel);
}

double threadCpuSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace

Result<std::unique_ptr<BackgroundSaver>> BackgroundSaver::create(CheckpointStore& store) {
  std::unique_ptr<BackgroundSaver> saver(new BackgroundSaver(store));
  saver->thread_ = TITAN_TRY(KernelThread::start([s = saver.get()] { s->work(); }));
  return saver;
}

BackgroundSaver::~BackgroundSaver() {
  {
    const std::lock_guard lock(mutex_);
    isToEnd_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundSaver::work() {
  lowerPriority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return plan_ || isToEnd_; });
    if (!plan_)
      return;
    const SavePlan& plan = *std::exchange(plan_, nullptr);
    const PlannedSave save = std::move(save_);
    const Retention retention = std::move(retention_);
    lock.unlock();
    const double before = threadCpuSeconds();
    Result<SaveReport> report = store_->save(plan, save, retention);
    const double seconds = threadCpuSeconds() - before;
    lock.lock();
    saved_.emplace(save.step, std::move(report), seconds);
    changed_.notify_all();
  }
}

void BackgroundSaver::begin(const SavePlan& plan, PlannedSave save, Retention retention) {
  save.onRead = [this](const TensorView& tensor) { noteRead(tensor); };
  {
    const std::lock_guard lock(mutex_);
    unread_ = plan.borrowed();
    plan_ = &plan;
    save_ = std::move(save);
    retention_ = std::move(retention);
  }
  isBusy_ = true;
  changed_.notify_all();
}

std::optional<Saved> BackgroundSaver::poll() {
  if (!isBusy_)
    return std::nullopt;
  const std::lock_guard lock(mutex_);
  return saved_ ? std::optional(take()) : std::nullopt;
}

Saved BackgroundSaver::wait(const std::function<void()>& meanwhile) {
  sleep([this] { return saved_.has_value(); }, meanwhile);
  const std::lock_guard lock(mutex_);
  return take();
}

void BackgroundSaver::waitUntilRead(const std::function<void()>& meanwhile) {
  if (isBusy_)
    sleep([this] { return unread_ == 0 || saved_; }, meanwhile);
}

void BackgroundSaver::noteRead(const TensorView& tensor) {
  if (!tensor.isBorrowed)
    return;
  const std::lock_guard lock(mutex_);
  if (--unread_ == 0)
    changed_.notify_all();
}

void BackgroundSaver::sleep(const std::function<bool()>& isDone,
                            const std::function<void()>& meanwhile) {
  constexpr std::chrono::milliseconds interval{100};
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, isDone))
    if (meanwhile) {
      lock.unlock();
      meanwhile();
      lock.lock();
    }
}

/// Under the mutex.
Saved BackgroundSaver::take() {
  Saved saved = std::move(*saved_);
  saved_.reset();
  isBusy_ = false;
  return saved;
}

} // namespace titan::checkpoint
