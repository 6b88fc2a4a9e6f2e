#include "runtime/checkpoint/Copy.h"

#include "runtime/checkpoint/ReadCheckpoint.h"
#include "runtime/checkpoint/StoredSource.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

/// Every stored tensor, as the table says what it is.
Result<std::vector<TensorView>> viewsOf(const CheckpointTensors& stored,
                                        const std::vector<TableEntry>& table) {
  std::vector<TensorView> views;
  for (const TableEntry& row : table)
    if (const auto folder = TITAN_TRY(folderOf(row.kind, row.profile))) {
      const StoredTensors::Tensor& tensor = stored.at(*folder).tensors().at(row.name);
      views.push_back(
          {row.name, row.kind, row.profile, row.dtype, row.shape, sourceOf(tensor, row.dtype), {}});
    }
  return views;
}

Status checkIsFree(const std::string& directory, int64_t step, Env& env) {
  const auto all = TITAN_TRY(listCheckpoints(env, directory));
  const auto found = std::ranges::find(all, step, &CheckpointInfo::step);
  if (found != all.end())
    return Error::usage("'{}' exists already: give another run directory", found->path);
  return {};
}

} // namespace

Result<SaveReport> copyCheckpoint(const std::string& path, const std::string& directory, Env& env) {
  const auto hold = TITAN_TRY(holdCheckpoint(path, env));
  const Manifest manifest = TITAN_TRY(readManifest(path, env));
  TITAN_TRY(checkIsFree(directory, manifest.step, env));
  const CheckpointTensors stored = TITAN_TRY(openCheckpoint(path, manifest, env));
  SaveRequest request;
  request.step = manifest.step;
  request.tensors = TITAN_TRY(viewsOf(stored, manifest.program.table));
  request.counters = manifest.counters;
  request.data = manifest.data;
  request.program = manifest.program;
  request.init = manifest.init;

  CheckpointStore store = TITAN_TRY(CheckpointStore::open(directory, env));
  // Somebody may have saved it since.
  TITAN_TRY(checkIsFree(directory, manifest.step, env));
  return store.save(request, /*keep=*/0);
}

} // namespace titan::checkpoint
