// A rank as a child process: how it starts, what it writes, how it ends.
#pragma once

#include "runtime/launch/OutputLines.h"
#include "runtime/program/Error.h"

#include <chrono>
#include <csignal>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace titan::launch {

struct RankStart {
  std::span<const std::string> command;
  int64_t rank = 0, ranks = 1;
  int controlFile = -1;
  std::span<const int> cpus; ///< empty: all of the caller's
  sigset_t signals;          ///< those that the rank blocks
  int log = -1; ///< a file that gets all that the rank writes, too; the process closes it
};

class RankProcess {
public:
  /// One stream of a rank that we read; without a log rank 0 has the caller's streams.
  struct Stream {
    int file = -1; ///< -1: not read, or at its end
    OutputLines lines;
    int log = -1; ///< the process's
    /// Takes what is there, up to 64 KiB; false where there is nothing. Closes the stream at its
    /// end.
    bool read();
  };

  /// Returns when the program runs. Environment when it cannot be started.
  static Result<RankProcess> start(const RankStart& how);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&& other) = delete;
  /// Kills what still runs.
  ~RankProcess();

  int64_t rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  bool isRunning() const { return isRunning_; }
  /// Readable when the process has ended.
  int pidfd() const { return pidfd_; }
  std::span<Stream> streams() { return streams_; }

  /// To the process and what it has started.
  void send(int signal) const;
  /// Since when it has been stopped by a signal, as last looked; nothing while it runs, and after.
  void lookWhetherStopped();
  std::optional<std::chrono::steady_clock::time_point> stoppedSince() const {
    return stoppedSince_;
  }
  /// The status as of waitpid(), once, when the process has ended. What it has started and left
  /// behind is killed if `killGroup`.
  std::optional<int> reap(bool killGroup);

private:
  RankProcess() = default;

  int64_t rank_ = 0;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  bool isRunning_ = false;
  std::optional<std::chrono::steady_clock::time_point> stoppedSince_;
  int log_ = -1;
  std::vector<Stream> streams_;
};

} // namespace titan::launch
