// An Env of one rank on a file system that several ranks, which are threads, use: one operation at
// a time, with a count of what this rank reads and writes.
#pragma once

#include "runtime/checkpoint/EnvWrapper.h"

#include <map>
#include <mutex>

namespace titan::checkpoint {

class LockedEnv : public EnvWrapper {
public:
  /// Both outlive the object; all ranks have the same.
  LockedEnv(Env& base, std::mutex& mutex) : EnvWrapper(base), mutex_(mutex) {}

  int64_t bytesRead() const { return read_; }
  /// By path as it was created.
  const std::map<std::string, int64_t>& bytesWritten() const { return written_; }

  uint64_t uniqueNumber() override;

protected:
  Status perform(const char* verb, const std::string& path, const Operation& operation) override;
  Status append(WritableFile& file, const std::string& path, std::string_view bytes) override;
  Status read(ReadableFile& file, const std::string& path, int64_t offset, char* into,
              int64_t bytes) override;

private:
  std::mutex& mutex_;
  int64_t read_ = 0;
  std::map<std::string, int64_t> written_;
};

} // namespace titan::checkpoint
