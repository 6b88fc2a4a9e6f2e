// All that a run directory holds of checkpoints, as somebody sees it who holds no lock: committed
// ones, and what a run is doing or was doing when it died.
//
// DIR/.lock says who holds it, and what it saves just now:
//
//   pid 123 on host
//   saving step 200 of 1493012480 bytes       of tensors, all ranks together; only during a save
//
// It is written without a sync: a process that is alive is what it is for.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/HookStates.h"

namespace titan::checkpoint {

/// What a lock says.
struct LockText {
  std::string holder; ///< "pid 123 on host"
  struct Save {
    int64_t step = 0, bytes = 0;
    bool operator==(const Save&) const = default;
  };
  std::optional<Save> save;

  std::string toString() const;
  /// Reads any text: what it does not say is missing.
  static LockText parse(std::string_view text);
};

struct RunEntry {
  enum class State : uint8_t {
    Committed,
    Saving,   ///< an attempt: under way, or cut off where nobody holds the directory
    Deleting, ///< likewise
    SetAside,
  };
  State state = State::Committed;
  std::optional<int64_t> step; ///< nothing: preflight's attempt
  std::string path;
  int64_t bytes = 0;                  ///< Saving: of tensors that are in its files by now
  std::optional<int64_t> total;       ///< Saving: of tensors in the end, where the lock says it
  std::optional<HookState> hook = {}; ///< Committed: of checkpoint.on_commit, where it has one
};

struct RunListing {
  std::vector<RunEntry> entries; ///< committed ones first, oldest first; then the others by state
  /// Where something is being saved or deleted, or a hook waits or runs: who holds the directory,
  /// or did last, and whether that process is alive. Else not looked at.
  std::string holder;
  bool isHeld = false;
};

/// Empty if there is no run. What goes while it looks is left out. The errors of the storage.
Result<RunListing> listRun(Env& env, const std::string& directory);

/// "DIR/.lock"
std::string lockPath(const std::string& directory);

} // namespace titan::checkpoint
