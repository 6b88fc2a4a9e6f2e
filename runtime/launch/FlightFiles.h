// What the ranks of a failed job did last, as files: RUN/ranks/rank-0003.json.
//
//   {"version": 1, "rank": 3, "ranks": 4, "pid": 4711, "step": 12, "waiting": "all_reduce of 0, 2",
//    "failure": {"code": 5, "rank": 2, "message": "rank 2 (pid 4710) was killed by signal 9 in ..."},
//    "written": 1093.52, "collectives": [
//      {"number": 130, "collective": 0, "name": "all_reduce of 0, 2", "step": 12,
//       "state": "waited", "started": 1092.1, "waited": 1092.3, "done": null}, ...]}
//
// `rank` is missing in a failure that is nobody's. Steps are null before the first, `waiting` is
// null for a rank that did not sleep in a wait. Collectives are the last 64 that the rank started,
// oldest first: `number` counts them, `collective` is the program's. `state` is how far the rank
// came: "started", "waited" (it is in the wait), "done". Times are seconds of the host's monotonic
// clock, so those of all ranks can be compared; `written` is when the file was.
#pragma once

#include "runtime/collective/ControlBlock.h"

#include <string>

namespace titan::launch {

/// Writes the files of all ranks to `runDirectory`/ranks in place of those of an earlier failure,
/// and returns that directory. Environment where it cannot be written.
Result<std::string> writeFlightFiles(const ControlBlock& block, const std::string& runDirectory);
/// The same for one rank, whose block is not that of the others; files of other ranks stay.
Result<std::string> writeFlightFile(const ControlBlock& block, int64_t rank,
                                    const std::string& runDirectory);

} // namespace titan::launch
