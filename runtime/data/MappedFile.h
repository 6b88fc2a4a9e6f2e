// A file's bytes, mapped read-only.
#pragma once

#include "runtime/program/Error.h"

#include <memory>
#include <span>
#include <string>

namespace titan {

class MappedFile {
public:
  /// Fails with BadInput when `path` is missing, cannot be read or is not a regular file. An empty
  /// file has no bytes.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const char> bytes() const { return bytes_; }

private:
  explicit MappedFile(std::span<const char> bytes) : bytes_(bytes) {}
  std::span<const char> bytes_;
};

} // namespace titan
