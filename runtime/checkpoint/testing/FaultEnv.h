// An Env around another one that fails the n-th operation, once or for good, or lets something
// happen before each. Every call counts as one operation, those on open files as well.
#pragma once

#include "runtime/checkpoint/EnvWrapper.h"

#include <functional>
#include <string>
#include <vector>

namespace titan::checkpoint {

class FaultEnv : public EnvWrapper {
public:
  static constexpr int64_t never = -1;

  explicit FaultEnv(Env& base) : EnvWrapper(base) {}

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

  /// Is not counted: it has no error.
  void dropCached(const std::string& path) override { base().dropCached(path); }

protected:
  Status perform(const char* verb, const std::string& path, const Operation& operation) override;
  /// One that fails has written a part, as on a disk that fills up.
  Status append(WritableFile& file, const std::string& path, std::string_view bytes) override;

private:
  /// Counts one operation; an Error if it is to fail.
  Status enter(const char* verb, const std::string& path);

  std::vector<std::string> history_;
  int64_t failAt_ = never;
  int errorNumber_ = 0;
  bool forGood_ = false;
  std::string failed_;
  std::function<void(int64_t)> happen_;
};

} // namespace titan::checkpoint
