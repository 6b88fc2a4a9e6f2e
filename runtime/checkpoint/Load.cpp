#include "runtime/checkpoint/Load.h"

#include "runtime/checkpoint/MatchNames.h"
#include "runtime/checkpoint/ReadCheckpoint.h"

namespace titan::checkpoint {
namespace {

const TableEntry& entryOf(const Destination& destination) { return destination.entry; }

/// What the manifest gives: the destinations without a folder.
Result<std::vector<const Destination*>> countersOf(const std::vector<Destination>& destinations) {
  std::vector<const Destination*> counters;
  for (const Destination& destination : destinations)
    if (!TITAN_TRY(folderOf(destination.entry.kind, destination.entry.profile)))
      counters.push_back(&destination);
  return counters;
}

void diffCounters(const std::vector<const Destination*>& wanted, const Counters& saved,
                  Diff& diff) {
  Counters rest = saved;
  for (const Destination* destination : wanted)
    if (rest.erase(destination->entry.name) == 0)
      diff.missing({destination->entry.name, DType::I64, {}});
  for (const auto& [name, value] : rest)
    diff.unexpected({name, DType::I64, {}});
}

/// What loadLatest says of a damaged checkpoint: which one to continue from.
Error damaged(const std::string& directory, const std::vector<CheckpointInfo>& all,
              const Error& error, Env& env) {
  for (auto older = all.rbegin() + 1; older != all.rend(); ++older)
    if (verify(older->path, env).ok())
      return {error.code(),
              fmt::format("{}; the newest good checkpoint before it is '{}': train --resume good "
                          "goes on from it and sets what is damaged aside",
                          error.message(), older->path)};
  return {error.code(), fmt::format("{}; there is no good checkpoint before it in '{}': start anew "
                                    "in another --out",
                                    error.message(), directory)};
}

} // namespace

Result<LoadReport> load(const std::string& path, const LoadRequest& request, Env& env) {
  LoadReport report;
  report.manifest = TITAN_TRY(readManifest(path, env));
  const std::string& savedOptimizer = report.manifest.program.optimizer;
  if (savedOptimizer != request.program.optimizer)
    return Error::badInput("checkpoint '{}' holds the state of optimizer '{}', this job uses '{}': "
                           "resume with '{}', or start from the weights alone with --init {}",
                           path, savedOptimizer, request.program.optimizer, savedOptimizer, path);

  CheckpointTensors stored = TITAN_TRY(openCheckpoint(path, report.manifest, env));
  auto wanted = TITAN_TRY(byFolder(request.destinations, entryOf));
  // What one side alone has is in the diff, too.
  for (const auto& [folder, tensors] : stored)
    wanted[folder];
  Diff diff;
  std::vector<Matching> matchings;
  for (const auto& [folder, destinations] : wanted)
    matchings.push_back(
        TITAN_TRY(matchNames({destinations, {}, {}, folder}, stored[folder], diff)));
  const auto counters = TITAN_TRY(countersOf(request.destinations));
  diffCounters(counters, report.manifest.counters, diff);
  if (!diff.empty())
    return diff.error(fmt::format("checkpoint '{}'", path),
                      "resume with the model that wrote it; to start from some of its weights use "
                      "--init with --map and --fresh");

  // Everything fits. What fails below is the storage, or somebody who writes to the files.
  for (const Matching& matching : matchings) {
    TITAN_TRY(readMatches(matching.matches));
    report.notes.insert(report.notes.end(), matching.notes.begin(), matching.notes.end());
  }
  for (const Destination* destination : counters) {
    const int64_t value = report.manifest.counters[destination->entry.name];
    TITAN_TRY(destination->sink.write(0, {reinterpret_cast<const char*>(&value), sizeof value}));
  }
  for (std::string& note : describeDifferences(report.manifest.program, request.program))
    report.notes.push_back(std::move(note));
  return report;
}

Result<std::optional<LoadReport>> loadLatest(const std::string& directory,
                                             const LoadRequest& request, Env& env) {
  const auto all = TITAN_TRY(listCheckpoints(env, directory));
  if (all.empty())
    return std::optional<LoadReport>();
  auto report = load(all.back().path, request, env);
  if (report.ok())
    return std::optional(report.take());
  // A disk that cannot be read is no damage, and neither is a checkpoint of another program.
  if (report.error().code() != ErrorCode::BadInput)
    return report.takeError();
  if (const auto damage = TITAN_TRY(findDamage(all.back().path, env)))
    return damaged(directory, all, *damage, env);
  return report.takeError();
}

} // namespace titan::checkpoint
