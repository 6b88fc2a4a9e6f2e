#include "runtime/checkpoint/Load.h"

#include "runtime/checkpoint/LoadBlocks.h"
#include "runtime/checkpoint/ReadCheckpoint.h"

#include <algorithm>
#include <set>

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

/// What is to be read, after everything was found to fit.
struct Found {
  LoadReport report;
  CheckpointTensors stored;
  std::vector<Match> matches;
};

Status leaveOutProfiles(const LoadRequest& request, ByFolder<Destination>& wanted,
                        CheckpointTensors& stored) {
  for (const std::string& profile : request.started)
    if (const auto folder = TITAN_TRY(folderOf(StateKind::Ema, profile)); !stored.contains(*folder))
      wanted.erase(*folder);
  for (const std::string& profile : request.dropped)
    stored.erase(*TITAN_TRY(folderOf(StateKind::Ema, profile)));
  return {};
}

/// What a user can do about a difference: of profiles that one side alone has, how to go on.
std::string adviceFor(const LoadRequest& request, const ProgramInfo& saved) {
  const std::set<std::string> savedProfiles = profilesOf(saved);
  std::set<std::string> wanted;
  for (const Destination& destination : request.destinations)
    if (!destination.entry.profile.empty())
      wanted.insert(destination.entry.profile);
  std::string advice;
  for (const std::string& profile : savedProfiles)
    if (!wanted.contains(profile))
      advice += fmt::format("--ema-drop {} leaves these averages out; ", profile);
  for (const std::string& profile : wanted)
    if (!savedProfiles.contains(profile))
      advice += fmt::format("--ema-start {} begins these averages from the parameters; ", profile);
  return advice + "resume with the model that wrote it; to start from some of its weights use "
                  "--init with --map and --fresh";
}

/// Names, shapes, dtypes and counters; `reading` says how much of the files is checked.
Result<Found> find(const std::string& path, const LoadRequest& request, Env& env, Reading reading) {
  Found found;
  found.report.manifest = TITAN_TRY(readManifest(path, env));
  const Manifest& manifest = found.report.manifest;
  const std::string& savedOptimizer = manifest.program.optimizer;
  if (savedOptimizer != request.program.optimizer)
    return Error::badInput("checkpoint '{}' holds the state of optimizer '{}', this job uses '{}': "
                           "resume with '{}', or start from the weights alone with --init {}",
                           path, savedOptimizer, request.program.optimizer, savedOptimizer, path);

  found.stored = TITAN_TRY(openCheckpoint(path, manifest, env, reading));
  for (const TableEntry& row : manifest.program.table)
    if (row.isCopy)
      found.stored.at(*TITAN_TRY(folderOf(row.kind, row.profile))).leaveOut(row.name);
  auto wanted = TITAN_TRY(byFolder(request.destinations, entryOf));
  TITAN_TRY(leaveOutProfiles(request, wanted, found.stored));
  // What one side alone has is in the diff, too.
  for (const auto& [folder, tensors] : found.stored)
    wanted[folder];
  Diff diff;
  std::vector<std::string>& notes = found.report.notes;
  for (const auto& [folder, destinations] : wanted) {
    Matching matching =
        TITAN_TRY(matchNames({destinations, {}, {}, folder}, found.stored[folder], diff));
    std::ranges::move(matching.matches, std::back_inserter(found.matches));
    std::ranges::move(matching.notes, std::back_inserter(notes));
  }
  diffCounters(TITAN_TRY(countersOf(request.destinations)), manifest.counters, diff);
  if (!diff.empty())
    return diff.error(fmt::format("checkpoint '{}'", path), adviceFor(request, manifest.program));
  std::ranges::move(describeDifferences(manifest.program, request.program),
                    std::back_inserter(notes));
  return found;
}

/// Last, so that what was loaded in part never looks like the step that was saved.
Status writeCounters(const LoadRequest& request, const Counters& saved) {
  for (const Destination* destination : TITAN_TRY(countersOf(request.destinations))) {
    const int64_t value = saved.at(destination->entry.name);
    TITAN_TRY(destination->sink.write(0, {reinterpret_cast<const char*>(&value), sizeof value}));
  }
  return {};
}

Result<LoadReport> loadAlone(const std::string& path, const LoadRequest& request, Env& env) {
  const auto hold = TITAN_TRY(holdCheckpoint(path, env));
  Found found = TITAN_TRY(find(path, request, env, Reading::All));
  // Everything fits. What fails below is the storage, or somebody who writes to the files.
  TITAN_TRY(readMatches(found.matches));
  TITAN_TRY(writeCounters(request, found.report.manifest.counters));
  return std::move(found.report);
}

Result<LoadReport> loadTogether(const std::string& path, const LoadRequest& request, Env& env) {
  constexpr std::string_view name = "the check of the checkpoint";
  Peers& peers = *request.peers;
  LoadReport report;
  Catalog catalog;
  std::unique_ptr<FileLock> hold; // of rank 0, until all have loaded
  TITAN_TRY(peers.byFirst(name, [&]() -> Status {
    hold = TITAN_TRY(holdCheckpoint(path, env));
    Found found = TITAN_TRY(find(path, request, env, Reading::Header));
    catalog = Catalog::of(found.matches, request.destinations);
    report = std::move(found.report);
    return {};
  }));
  const std::string manifest = TITAN_TRY(peers.fromFirst(name, toJson(report.manifest)));
  const std::string bytes = TITAN_TRY(peers.fromFirst(name, catalog.toBytes()));
  if (!peers.isFirst()) {
    report.manifest = TITAN_TRY(parseManifest(manifest));
    catalog = TITAN_TRY(Catalog::parse(bytes));
  }
  TITAN_TRY(loadBlocks(catalog, request.destinations, request.mesh, peers, env));
  TITAN_TRY(peers.agree(name, writeCounters(request, report.manifest.counters)));
  return report;
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
  return isAlone(request.peers) ? loadAlone(path, request, env) : loadTogether(path, request, env);
}

Result<std::optional<LoadReport>> loadLatest(const std::string& directory,
                                             const LoadRequest& request, Env& env) {
  constexpr std::string_view name = "the search for checkpoints";
  Peers alone;
  Peers& peers = request.peers ? *request.peers : alone;
  const auto all = TITAN_TRY(peers.byFirst(name, [&] { return listCheckpoints(env, directory); }));
  const std::string newest =
      TITAN_TRY(peers.fromFirst(name, all.empty() ? std::string() : all.back().path));
  if (newest.empty())
    return std::optional<LoadReport>();
  auto report = load(newest, request, env);
  if (report.ok())
    return std::optional(report.take());
  // A disk that cannot be read is no damage, and neither is a checkpoint of another program.
  if (report.error().code() != ErrorCode::BadInput)
    return report.takeError();
  TITAN_TRY(peers.byFirst(name, [&]() -> Status {
    if (const auto damage = TITAN_TRY(findDamage(newest, env)))
      // Of several ranks, the error says which one met it.
      return damaged(directory, all, peers.isAlone() ? *damage : report.error(), env);
    return {};
  }));
  return report.takeError();
}

} // namespace titan::checkpoint
