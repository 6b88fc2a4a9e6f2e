// The commands of titan-ckpt. Each yields what goes to stdout.
#pragma once

#include "runtime/checkpoint/Export.h"
#include "runtime/checkpoint/Import.h"

#include <string>
#include <vector>

namespace titan::ckpt {

struct Report {
  std::string text;
  bool good = true;                    ///< false: exit code 1, the text says why
  std::string problem = {};            ///< one line for stderr
  std::vector<std::string> notes = {}; ///< a line each, likewise
};

/// One line a checkpoint, oldest first, and one for each that is being saved or deleted, or was set
/// aside. `path`: a run directory or the checkpoints/ in it.
Result<Report> list(const std::string& path, bool json);
Result<Report> inspect(const std::string& path, bool json);
/// One line a checkpoint, or one for each damage of it; not good if one is damaged. The same text
/// whatever the number of threads.
Result<Report> verifyAll(const std::string& path, int threads, bool json);
/// Names, shapes, dtypes, values and counters; not good if there is a difference.
Result<Report> diff(const std::string& a, const std::string& b, bool json);
/// Into the run directory `directory`.
Result<Report> copy(const std::string& path, const std::string& directory);
Result<Report> exportTo(const checkpoint::ExportRequest& request);
/// For the run that the compiled job `job` begins or, where that is empty, one like the checkpoint
/// `like`. `renames` is as --map is given; `request` has neither.
Result<Report> importFrom(checkpoint::ImportRequest request,
                          const std::vector<std::string>& renames, const std::string& job,
                          const std::string& like);

} // namespace titan::ckpt
