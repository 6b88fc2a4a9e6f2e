// A checkpoint as one of another run directory.
#pragma once

#include "runtime/checkpoint/Load.h"

namespace titan::checkpoint {

/// Checks all of the checkpoint at `path` and saves what it holds into the run directory
/// `directory`, under its step: the tensors' bytes, counters, data, program and start are the same,
/// the manifest is of the current version, and pieces that ranks wrote are put together. No step is
/// run, and no other checkpoint is deleted. Usage: `directory` has one of that step. Else the
/// errors of a load and of a save.
Result<SaveReport> copyCheckpoint(const std::string& path, const std::string& directory,
                                  Env& env = posixEnv());

} // namespace titan::checkpoint
