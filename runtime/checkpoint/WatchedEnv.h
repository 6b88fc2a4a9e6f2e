// An Env around another one that says, to another thread, what it is doing and since when.
#pragma once

#include "runtime/checkpoint/Env.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

namespace titan::checkpoint {

class WatchedEnv : public Env {
public:
  /// `base` outlives the object. Its operations come from one thread at a time.
  explicit WatchedEnv(Env& base) : base_(base) {}

  struct Operation {
    std::string verb, path; ///< "write", "run/checkpoints/.attempt-..."
    double seconds = 0;     ///< since it began
  };
  /// The operation that goes on now.
  std::optional<Operation> running() const;
  /// Of all files so far.
  int64_t bytesWritten() const { return written_; }

  Result<std::unique_ptr<WritableFile>> createFile(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> openFile(const std::string& path) override;
  void dropCached(const std::string& path) override;
  Result<FileKind> kindOf(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> readDirectory(const std::string& path) override;
  Status makeDirectory(const std::string& path) override;
  Status syncDirectory(const std::string& path) override;
  Status syncAncestor(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status removeFile(const std::string& path) override;
  Status removeDirectory(const std::string& path) override;
  Result<LockAttempt> lockFile(const std::string& path, std::string_view self) override;
  Result<std::unique_ptr<FileLock>> tryLock(const std::string& path, LockKind kind) override;
  Result<Space> space(const std::string& path) override;
  uint64_t uniqueNumber() override { return base_.uniqueNumber(); }

private:
  class Watch;
  class Writer;
  class Reader;
  class Lock;

  Env& base_;
  std::atomic<int64_t> written_ = 0;
  mutable std::mutex mutex_;
  std::optional<Operation> operation_;
  std::chrono::steady_clock::time_point begun_;
};

} // namespace titan::checkpoint
