// Weights that other programs wrote, as the first checkpoint of a run.
#pragma once

#include "runtime/checkpoint/Load.h"

namespace titan::checkpoint {

/// What an imported checkpoint says of its run: of a program that no device has run yet.
struct ImportTarget {
  ProgramInfo program; ///< without libraries
  DataInfo data;       ///< an empty digest: not known
};

/// The run that the compiled job at `path` begins. BadInput: no job, or one whose slots, averages
/// and counters do not all start as zeros.
Result<ImportTarget> targetOfJob(const std::string& path, Env& env = posixEnv());
/// One of the program and the data that the checkpoint at `path` has.
Result<ImportTarget> targetLike(const std::string& path, Env& env = posixEnv());

struct ImportRequest {
  std::string weights;   ///< as loadWeights takes it
  std::string directory; ///< of the run; it has no checkpoint
  ImportTarget target;
  std::map<std::string, std::string> renames = {}; ///< as in InitRequest
  std::vector<std::string> ignored = {};           ///< likewise
  bool cast = false;                               ///< likewise
};

struct ImportReport {
  SaveReport saved;
  std::vector<std::string> notes;
};

/// Saves a checkpoint of step 0 that a run goes on from as if it had started with `--init`:
/// parameters and buffers are the file's, all else is zeros. It appears whole or not at all. Usage:
/// the run has checkpoints. BadInput: what does not fit, as loadWeights finds it; nothing may be
/// missing. Else the errors of a save.
Result<ImportReport> importWeights(const ImportRequest& request, Env& env = posixEnv());

} // namespace titan::checkpoint
