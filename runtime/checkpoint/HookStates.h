// What became of the commands of checkpoint.on_commit, for who looks at a run from outside.
//
//   DIR/hooks.jsonl   a line for each change, the last one of a step counts:
//     {"step": 200, "state": "running", "by": "pid 12 on a"}
//     {"step": 200, "state": "failed", "how": "exit status 3", "by": "pid 12 on a"}
//
// Lines are appended without a sync: no run reads them. What is no such line, as one that is torn,
// is passed over.
#pragma once

#include "runtime/checkpoint/Env.h"

#include <map>

namespace titan::checkpoint {

struct HookState {
  enum class Kind : uint8_t {
    Waiting,
    Running,
    Done,
    Failed,
    LeftOut, ///< another one was committed while it waited
    Unknown, ///< its run ended while it waited or ran; never written
  };
  Kind kind = Kind::Waiting;
  std::string how; ///< of a failure: "exit status 3"
  std::string by;  ///< the process of its run: describeSelf()
  bool operator==(const HookState&) const = default;

  /// Is it still to change, as long as its run lives?
  bool isOpen() const { return kind == Kind::Waiting || kind == Kind::Running; }
};

/// "left out"
std::string_view nameOf(HookState::Kind kind);

/// "DIR/hooks.jsonl"
std::string hookStatesPath(const std::string& directory);
/// Its line, with the end of it.
std::string hookLine(int64_t step, const HookState& state);
/// By step; empty where there is no such file. The errors of the storage.
Result<std::map<int64_t, HookState>> readHookStates(Env& env, const std::string& directory);

/// How a process names itself to others: "pid 12 on host".
std::string describeSelf();

} // namespace titan::checkpoint
