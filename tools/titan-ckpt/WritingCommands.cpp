#include "tools/titan-ckpt/Commands.h"

#include "runtime/checkpoint/Copy.h"
#include "tools/titan-ckpt/Format.h"

namespace titan::ckpt {

Result<Report> copy(const std::string& path, const std::string& directory) {
  const auto saved = TITAN_TRY(checkpoint::copyCheckpoint(path, directory));
  return Report{fmt::format("copied: '{}', {}\n", saved.path, formatBytes(saved.bytes))};
}

Result<Report> exportTo(const checkpoint::ExportRequest& request) {
  const auto done = TITAN_TRY(checkpoint::exportWeights(request));
  return Report{fmt::format("exported: '{}', {} tensors, {} file{}, {}\n", request.output,
                            done.tensors, done.files, done.files == 1 ? "" : "s",
                            formatBytes(done.bytes))};
}

Result<Report> importFrom(checkpoint::ImportRequest request,
                          const std::vector<std::string>& renames, const std::string& job,
                          const std::string& like) {
  request.renames = TITAN_TRY(checkpoint::parseRenames(renames));
  request.target =
      TITAN_TRY(job.empty() ? checkpoint::targetLike(like) : checkpoint::targetOfJob(job));
  auto done = TITAN_TRY(checkpoint::importWeights(request));
  Report report{
      fmt::format("imported: '{}', {}\n", done.saved.path, formatBytes(done.saved.bytes))};
  report.notes = std::move(done.notes);
  return report;
}

} // namespace titan::ckpt
