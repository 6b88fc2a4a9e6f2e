// All of a checkpoint read by several threads, and everything that is wrong with it; `verify` and
// loads (Load.h) stop at the first thing.
//
// A file with a list of chunks is checked chunk by chunk: the list has its digest in the manifest,
// and its digests are those of all bytes. One without, or whose list is damaged, is read in order.
#pragma once

#include "runtime/checkpoint/Load.h"

namespace titan::checkpoint {

struct VerifyReport {
  std::optional<Manifest> manifest; ///< nothing: it is damaged itself
  /// One line each: the file and, where it has chunks, the chunk and the tensors in it. In the
  /// order of the manifest's files, whatever the number of threads; then what no file tells alone.
  std::vector<std::string> damages;
};

/// Reads all of the checkpoint at `path` with `threads` threads, 1 or more. The errors of the
/// storage. A manifest that cannot be read, of another version for instance, is a damage.
Result<VerifyReport> verifyWhole(const std::string& path, int threads, Env& env = posixEnv());

} // namespace titan::checkpoint
