#include "runtime/checkpoint/Import.h"

#include "runtime/checkpoint/JobFile.h"
#include "runtime/checkpoint/StoredSource.h"
#include "runtime/checkpoint/WeightFiles.h"
#include "runtime/program/Text.h"

#include <cstring>

namespace titan::checkpoint {
namespace {

constexpr std::string_view advice =
    "rename with --map 'old.*=new.*'; leave tensors of the file out with --ignore 'old_head.*'; "
    "what the file does not have is initialised by train --init with --fresh alone";

ByteSource zeros(int64_t bytes) {
  return ByteSource::made(bytes, [](int64_t, std::span<char> into) -> Status {
    std::memset(into.data(), 0, into.size());
    return {};
  });
}

Status checkIsFresh(const std::string& directory, Env& env) {
  if (const auto all = TITAN_TRY(listCheckpoints(env, directory)); !all.empty())
    return Error::usage("'{}' has checkpoints already, up to '{}': give another run directory",
                        directory, all.back().path);
  return {};
}

/// All of the table but the counters. The sources read `matches`' tensors.
Result<std::vector<TensorView>> viewsOf(const std::vector<TableEntry>& table,
                                        const std::vector<Match>& matches) {
  std::map<std::string_view, const StoredTensors::Tensor*> weights;
  for (const Match& match : matches)
    weights[match.destination->entry.name] = match.tensor;
  std::vector<TensorView> views;
  for (const TableEntry& row : table) {
    const auto folder = TITAN_TRY(folderOf(row.kind, row.profile));
    if (!folder)
      continue;
    views.push_back({row.name, row.kind, row.profile, row.dtype, row.shape, {}, {}});
    const bool isModels = row.isCopy || *folder == folderOfModel();
    views.back().source =
        isModels ? sourceOf(*weights.at(row.name), row.dtype) : zeros(views.back().bytes());
  }
  return views;
}

Counters countersOf(const std::vector<TableEntry>& table) {
  Counters counters;
  for (const TableEntry& row : table)
    if (row.kind == StateKind::Counter)
      counters[row.name] = 0;
  return counters;
}

} // namespace

Result<ImportTarget> targetOfJob(const std::string& path, Env& env) {
  const std::vector<Program> programs = TITAN_TRY(readJobFile(path, env));
  const Program& program = programs.front(); // all share their states and recipe
  for (const State& state : program.states) {
    const bool isModel = state.kind == StateKind::Param || state.kind == StateKind::Buffer;
    if (!isModel && (state.init.kind != Init::Kind::Constant || state.init.a != 0))
      return Error::badInput("{} '{}' of job '{}' does not start as zeros: start the run with "
                             "train --init",
                             nameOf(state.kind), state.name, path);
  }
  const Recipe recipe = TITAN_TRY(parseRecipeJson(program.recipe));
  return ImportTarget{describe(program, {}, recipe), {"", 0, recipe.train.seed}};
}

Result<ImportTarget> targetLike(const std::string& path, Env& env) {
  Manifest manifest = TITAN_TRY(readManifest(path, env));
  manifest.program.libraries.clear(); // nothing was computed
  return ImportTarget{std::move(manifest.program), std::move(manifest.data)};
}

Result<ImportReport> importWeights(const ImportRequest& request, Env& env) {
  TITAN_TRY(checkIsFresh(request.directory, env));
  const auto hold = TITAN_TRY(holdCheckpoint(request.weights, env));
  InitRequest wanted;
  for (const TableEntry& row : request.target.program.table)
    wanted.destinations.push_back({row, {}});
  wanted.renames = request.renames;
  wanted.ignored = request.ignored;
  wanted.cast = request.cast;
  const FoundWeights found =
      TITAN_TRY(findWeights(request.weights, wanted, advice, env, Reading::All));

  SaveRequest save;
  save.program = request.target.program;
  save.data = request.target.data;
  save.init = {
      request.weights, {}, request.renames, found.matching.ignored, found.matching.rounded};
  save.tensors = TITAN_TRY(viewsOf(save.program.table, found.matching.matches));
  save.counters = countersOf(save.program.table);
  CheckpointStore store = TITAN_TRY(CheckpointStore::open(request.directory, env));
  // Somebody may have saved one since.
  TITAN_TRY(checkIsFresh(request.directory, env));
  return ImportReport{TITAN_TRY(store.save(save, /*keep=*/0)), found.matching.notes};
}

} // namespace titan::checkpoint
