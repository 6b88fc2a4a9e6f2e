// A file's bytes, mapped read-only. Who writes a mapped file can take its pages away at any moment;
// reading them is a SIGBUS then, which ends a process. Here it is an error: the missing pages read
// as zeros, and `check` tells.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace titan {

class MappedFile {
public:
  /// Fails with BadInput when `path` is missing, cannot be read or is not a regular file. An empty
  /// file has no bytes. The first file installs a handler of SIGBUS, for the life of the process;
  /// threads that read `bytes` must not block that signal.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const char> bytes() const { return bytes_; }
  /// BadInput when the file became shorter or could not be read since it was opened: what was taken
  /// from `bytes` before the call may be zeros. Costs a stat(); from any thread.
  Status check() const;

private:
  struct Guard;
  explicit MappedFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::span<const char> bytes_;
  uint64_t device_ = 0, inode_ = 0;
  Guard* guard_ = nullptr; ///< none for an empty file
};

} // namespace titan
