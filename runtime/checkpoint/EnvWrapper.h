// An Env around another one, which says once what happens around every operation: of its own, and
// of the files that it opened.
#pragma once

#include "runtime/checkpoint/Env.h"

#include <functional>

namespace titan::checkpoint {

class EnvWrapper : public Env {
public:
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

protected:
  using Operation = std::function<Status()>;

  /// `base` outlives the object.
  explicit EnvWrapper(Env& base) : base_(base) {}
  Env& base() { return base_; }

  /// Does `operation`, or gives an Error in its place. With the path it reads "sync 'a/b'".
  virtual Status perform(const char* verb, const std::string& path, const Operation& operation) = 0;
  /// Of files that this opened: perform what `file` does.
  virtual Status append(WritableFile& file, const std::string& path, std::string_view bytes);
  virtual Status read(ReadableFile& file, const std::string& path, int64_t offset, char* into,
                      int64_t bytes);

private:
  class Writer;
  class Reader;

  /// Performs `operation`, which gives a T.
  template <typename T>
  Result<T> performFor(const char* verb, const std::string& path,
                       const std::function<Result<T>()>& operation);

  Env& base_;
};

} // namespace titan::checkpoint
