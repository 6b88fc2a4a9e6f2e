// checkpoint.on_commit: a command for each checkpoint that was committed. It is a process of its
// own that no save waits for.
//
//   committed(10)  runs 10
//   committed(20)  20 waits
//   committed(30)  30 waits, 20 is left out: the newest waits, and those that are kept for good
//
// One that fails waits for the next commit, and has a second turn then. One that is kept for good
// has a turn at each commit until it succeeds.
#pragma once

#include "runtime/checkpoint/HookStates.h"

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

namespace titan {

class CommitHooks {
public:
  static constexpr const char* logName = "hooks.log";
  /// Called with what a user should know, without "note: ".
  using Tell = std::function<void(const std::string&)>;

  /// Would sh find the command? Environment: it would not. Tells where only a run of it can say.
  static Status check(const std::string& command, const Tell& tell);

  /// What the processes print is appended to DIRECTORY/hooks.log, what becomes of them to
  /// hooks.jsonl (HookStates.h).
  CommitHooks(std::string command, std::string directory, Tell tell)
      : command_(std::move(command)), directory_(std::move(directory)), tell_(std::move(tell)) {}

  /// The checkpoint at `path` was committed. Starts its process unless one is running.
  void committed(int64_t step, const std::string& path, bool isForGood);
  /// Takes a process that has ended, and starts the next. Does not wait.
  void look();
  /// The run ends: runs what waits, and ends each process that takes longer than `timeout` from now
  /// or from its start.
  void finish(std::chrono::seconds timeout);
  /// Steps whose checkpoints a process reads or will read.
  std::set<int64_t> inUse() const;

  /// `command` with {path}, {name} and {step} as words of sh.
  static std::string commandFor(const std::string& command, int64_t step, const std::string& path);

private:
  struct Hook {
    int64_t step = 0;
    std::string path;
    bool isForGood = false;
    int64_t failures = 0;
    bool isReady = true; ///< else it waits for the next commit
    pid_t process = 0;   ///< and its process group, while it runs
  };

  void startNext();
  void ended(int waitStatus);
  void failed(Hook hook, const std::string& how);
  void endRunning(std::chrono::seconds timeout);
  /// For who looks at the run from outside.
  void record(const Hook& hook, checkpoint::HookState::Kind kind, const std::string& how = {});

  std::string command_, directory_;
  Tell tell_;
  std::optional<Hook> running_;
  std::deque<Hook> waiting_; ///< oldest first
  bool isFinishing_ = false, isUnrecordedTold_ = false;
};

} // namespace titan
