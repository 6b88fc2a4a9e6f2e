#include "runtime/checkpoint/testing/LockedEnv.h"

namespace titan::checkpoint {

Status LockedEnv::perform(const char*, const std::string&, const Operation& operation) {
  const std::lock_guard lock(mutex_);
  return operation();
}

Status LockedEnv::append(WritableFile& file, const std::string& path, std::string_view bytes) {
  written_[path] += static_cast<int64_t>(bytes.size());
  return EnvWrapper::append(file, path, bytes);
}

Status LockedEnv::read(ReadableFile& file, const std::string& path, int64_t offset, char* into,
                       int64_t bytes) {
  read_ += bytes;
  return EnvWrapper::read(file, path, offset, into, bytes);
}

uint64_t LockedEnv::uniqueNumber() {
  const std::lock_guard lock(mutex_);
  return base().uniqueNumber();
}

} // namespace titan::checkpoint
