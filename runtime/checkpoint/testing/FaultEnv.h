// An Env around another one that fails the n-th operation, once or for good, or lets something
// happen before each. Every call counts as one operation, those on open files as well.
#pragma once

#include "runtime/checkpoint/Env.h"

#include <functional>
#include <string>
#include <vector>

namespace titan::checkpoint {

class FaultEnv : public Env {
public:
  static constexpr int64_t never = -1;

  explicit FaultEnv(Env& base) : base_(base) {}

  /// Operation `operation` (from 0, counted from now) fails with `errorNumber`; with `forGood`, so
  /// do all after it.
  void failAt(int64_t operation, int errorNumber, bool forGood);
  /// `happen` is called with the number of each operation (counted as by failAt) before it.
  void beforeEach(std::function<void(int64_t)> happen) { happen_ = std::move(happen); }
  /// Operations so far, since the last failAt.
  int64_t operations() const { return std::ssize(history_); }
  /// They: "sync 'a/b'".
  const std::vector<std::string>& history() const { return history_; }
  /// The first one that failed.
  const std::string& failed() const { return failed_; }

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

  /// Counts one operation; an Error if it is to fail.
  Status enter(std::string_view verb, const std::string& path);

private:
  Env& base_;
  std::vector<std::string> history_;
  int64_t failAt_ = never;
  int errorNumber_ = 0;
  bool forGood_ = false;
  std::string failed_;
  std::function<void(int64_t)> happen_;
};

} // namespace titan::checkpoint
