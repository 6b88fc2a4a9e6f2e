// Saves behind a run's back: a thread of low priority that has the store while it saves.
//
//   plan.readFrom(snapshot.tensors());          // once
//   snapshot.take();
//   saver->begin(plan, {step, counters}, retention);
//   ...                                         // the next steps
//   if (std::optional<Saved> saved = saver->poll())
//     report(*saved);
#pragma once

#include "runtime/checkpoint/SavePlan.h"
#include "runtime/host/KernelThread.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace titan::checkpoint {

/// How a save ended.
struct Saved {
  int64_t step = 0;
  Result<SaveReport> report;
  double cpuSeconds = 0; ///< of the thread that saved
};

class BackgroundSaver {
public:
  /// Starts the thread. The store outlives the saver; from begin() until the save was taken by
  /// poll() or wait() nobody else calls it. Environment: no thread can be started.
  static Result<std::unique_ptr<BackgroundSaver>> create(CheckpointStore& store);
  /// Waits for a save that is under way.
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  /// Begins a save; none is under way. The plan and what its sources read stay as they are until
  /// the save was taken; what is borrowed, until waitUntilRead() has returned.
  void begin(const SavePlan& plan, PlannedSave save, Retention retention);
  /// Sleeps until the save reads nothing more that is borrowed, at the latest until it has ended.
  /// Calls `meanwhile` every now and then.
  void waitUntilRead(const std::function<void()>& meanwhile = {});
  /// Was a save begun that was not taken?
  bool isBusy() const { return isBusy_; }
  /// Takes the save that was begun, once it has ended.
  std::optional<Saved> poll();
  /// The same, and sleeps until then: on a busy machine the thread gets what others leave. Calls
  /// `meanwhile` every now and then.
  Saved wait(const std::function<void()>& meanwhile = {});

private:
  explicit BackgroundSaver(CheckpointStore& store) : store_(&store) {}
  void work();
  void noteRead(const TensorView& tensor);
  /// Sleeps until `isDone`, which is asked under the mutex.
  void sleep(const std::function<bool()>& isDone, const std::function<void()>& meanwhile);
  Saved take();

  CheckpointStore* store_;
  bool isBusy_ = false; ///< of the caller's side
  std::mutex mutex_;
  std::condition_variable changed_;
  const SavePlan* plan_ = nullptr; ///< these under the mutex; null: nothing is to be saved
  PlannedSave save_;
  Retention retention_{0};
  int64_t unread_ = 0; ///< tensors that are borrowed
  std::optional<Saved> saved_;
  bool isToEnd_ = false;
  KernelThread thread_; ///< the last member: it uses the others
};

} // namespace titan::checkpoint
