// An Env of one rank on a file system that several ranks, which are threads, use: one operation at
// a time, with a count of what this rank reads and writes.
#pragma once

#include "runtime/checkpoint/Env.h"

#include <map>
#include <mutex>

namespace titan::checkpoint {

class LockedEnv : public Env {
public:
  /// Both outlive the object; all ranks have the same.
  LockedEnv(Env& base, std::mutex& mutex) : base_(base), mutex_(mutex) {}

  int64_t bytesRead() const { return read_; }
  /// By path as it was created.
  const std::map<std::string, int64_t>& bytesWritten() const { return written_; }

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
  uint64_t uniqueNumber() override;

private:
  class Writer;
  class Reader;

  Env& base_;
  std::mutex& mutex_;
  int64_t read_ = 0;
  std::map<std::string, int64_t> written_;
};

} // namespace titan::checkpoint
