// Starts the ranks of a job on this host, and ends them all when one is lost.
//
// Each rank is a process in a group of its own, on CPUs of its own, that finds the others by its
// environment (Ranks.h). Rank 0 has the caller's stdout and stderr; each line that another rank
// writes comes out as "rank 3: <line>". Signals that ask to end (SIGTERM, SIGINT, SIGHUP, SIGQUIT)
// and SIGUSR1, SIGUSR2 are passed on to all ranks; a second SIGINT kills them. No rank outlives the
// launcher, however it ends.
//
// A rank that ends by a signal, or before the others without an error of its own, is named on
// stderr, with who waited for it at what. The others have a second to end; then they are killed.
//
// A run that failed (exit code 5) may be started again: a job goes on from its last checkpoint. Not
// where it failed in the step in which it had failed before, and not after a signal that asked it
// to end. With a log directory, all that a rank writes is in `rank-0003.attempt-1.log`, too.
#pragma once

#include "runtime/collective/ControlBlock.h"
#include "runtime/program/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace titan::launch {

struct LaunchOptions {
  int64_t ranks = 2;
  std::vector<std::string> command; ///< the program, looked up in PATH, and its arguments
  int64_t restarts = 0;             ///< at most so many, after exit code 5 only
  std::string logDirectory;         ///< empty: no logs
};

constexpr int64_t maxRanks = ControlBlock::maxRanks;

/// Runs the ranks to their end and returns the exit code of the job's last attempt: 0, or that of
/// the rank that failed first; 5 where a signal ended it or it left early, 128 + the signal where
/// we passed that signal on, or nobody reads its output (SIGPIPE). Usage for a number of ranks
/// below 1 or above maxRanks, Environment when a process cannot be started or a log cannot be
/// written.
Result<int> launch(const LaunchOptions& options);

} // namespace titan::launch
