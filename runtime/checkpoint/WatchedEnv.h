// An Env around another one that says, to another thread, what it is doing and since when.
#pragma once

#include "runtime/checkpoint/EnvWrapper.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

namespace titan::checkpoint {

class WatchedEnv : public EnvWrapper {
public:
  /// `base` outlives the object. Its operations come from one thread at a time.
  explicit WatchedEnv(Env& base) : EnvWrapper(base) {}

  struct Running {
    std::string verb, path; ///< "write", "run/checkpoints/.attempt-..."
    double seconds = 0;     ///< since it began
  };
  /// The operation that goes on now.
  std::optional<Running> running() const;
  /// Of all files so far.
  int64_t bytesWritten() const { return written_; }

  Result<LockAttempt> lockFile(const std::string& path, std::string_view self) override;

protected:
  Status perform(const char* verb, const std::string& path, const Operation& operation) override;
  Status append(WritableFile& file, const std::string& path, std::string_view bytes) override;

private:
  class Lock;

  /// From now on this goes on; nullopt: nothing.
  void note(std::optional<Running> running);

  std::atomic<int64_t> written_ = 0;
  mutable std::mutex mutex_;
  std::optional<Running> running_;
  std::chrono::steady_clock::time_point begun_;
};

} // namespace titan::checkpoint
