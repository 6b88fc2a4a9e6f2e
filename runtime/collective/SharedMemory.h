// Ranks that are processes of one host. They meet in a control block, which lies in a file that all
// have open; their staging regions lie behind it.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/collective/ConnectOptions.h"

#include <memory>

namespace titan {

/// A file in memory with a control block for `ranks` ranks, of which processes inherit the number:
/// it stays open over exec. Environment without memory.
Result<int> createControlFile(int64_t ranks, bool crowded);

/// Joins the ranks of `controlFile` as `rank`; from here on the others watch whether this process
/// lives. `controlFile` stays the caller's, and open. Environment where the file has no control
/// block for as many ranks, or another process is this rank.
Result<std::unique_ptr<Communicator>>
connectSharedMemory(int controlFile, int64_t rank, int64_t ranks, const ConnectOptions& options);

} // namespace titan
