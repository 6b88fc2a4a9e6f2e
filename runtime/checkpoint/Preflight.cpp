// Before step 1: would a save work? Whatever a later save could find in its names, its formats or
// the storage is found in seconds, not after hours of training.
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Digest.h"
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/StoredFile.h"
#include "runtime/checkpoint/StrictJson.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace titan::checkpoint {
namespace {

constexpr std::string_view waitName = "the preflight";
constexpr int64_t probeBytes = 64 << 10;
/// The rounding of files to blocks, and what a manifest grows by.
constexpr uint64_t overheadPerCheckpoint = 1 << 20;

/// Of this rank's files: each process has a limit of its own.
Status checkFileSizes(Env& env, const std::string& parent, const std::vector<FolderPlan>& folders) {
  const Space space = TITAN_TRY(env.space(parent));
  for (const FolderPlan& plan : folders)
    if (const uint64_t bytes = plan.header.size() + static_cast<uint64_t>(plan.dataBytes());
        bytes > space.largestFile)
      return Error::environment("'{}' of a checkpoint takes {} bytes, and a file in '{}' may have "
                                "at most {}: raise ulimit -f, or give an --out on a file system "
                                "that holds it",
                                plan.file, bytes, parent, space.largestFile);
  return {};
}

Result<SaveSize> sizeOfAll(Peers& peers, Env& env, const std::string& parent,
                           const std::vector<FolderPlan>& folders) {
  const auto mine = [&]() -> Result<std::string> {
    TITAN_TRY(checkFileSizes(env, parent, folders));
    const SaveSize size = sizeOf(folders);
    return std::string(reinterpret_cast<const char*>(&size), sizeof size);
  };
  SaveSize all;
  for (const std::string& bytes : TITAN_TRY(peers.gather(waitName, mine()))) {
    SaveSize size;
    std::memcpy(&size, bytes.data(), sizeof size);
    all.bytes += size.bytes, all.files += size.files;
  }
  return all;
}

Status checkSpace(Env& env, const std::string& path, uint64_t checkpoints, uint64_t each,
                  uint64_t inodesOfEach) {
  const Space space = TITAN_TRY(env.space(path));
  const uint64_t bytes = checkpoints * (each + overheadPerCheckpoint);
  if (space.bytes < bytes)
    return Error::environment("'{}' has {} bytes free, {} more checkpoint(s) of {} and {} for "
                              "blocks and manifest growth each need {}: free some space, lower "
                              "checkpoint.keep, or give another --out",
                              path, space.bytes, checkpoints, each, overheadPerCheckpoint, bytes);
  const uint64_t inodes = checkpoints * inodesOfEach;
  if (space.inodes < inodes)
    return Error::environment("'{}' has {} inodes free, {} more checkpoint(s) need {}: delete some "
                              "files, or give another --out",
                              path, space.inodes, checkpoints, inodes);
  return {};
}

/// Takes the room of the saves to come for a moment: of a quota no call tells.
Status checkRoom(Env& env, const std::string& attempt, uint64_t checkpoints, uint64_t each) {
  std::vector<std::string> files;
  for (uint64_t i = 0; i < checkpoints; ++i) {
    const std::string& path = files.emplace_back(joinPath(attempt, fmt::format("room-{}", i)));
    auto file = TITAN_TRY(env.createFile(path));
    if (Status taken = file->reserve(static_cast<int64_t>(each)); !taken.ok())
      return taken.takeError().withContext(
          fmt::format("room for {} more checkpoint(s) of {} bytes", checkpoints, each));
    TITAN_TRY(file->close());
  }
  for (const std::string& path : files)
    TITAN_TRY(env.removeFile(path));
  return {};
}

/// Nothing but checkpoints of this program may stand at the names of the steps to come.
Status checkLaterSteps(Env& env, const std::string& parent, const SaveRequest& request) {
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(parent))) {
    const auto step = parseStepName(entry.name);
    if (!step || *step < request.step)
      continue;
    const std::string path = joinPath(parent, entry.name);
    if (entry.kind != FileKind::Directory)
      return Error::environment(
          "'{}' is no directory and stands where the checkpoint of step {} is "
          "to be: move it away, or give another --out",
          path, *step);
    if (*step == request.step)
      continue;
    const Manifest there = TITAN_TRY(readManifest(path, env));
    if (there.program.fingerprint != request.program.fingerprint)
      return Error::environment("'{}' was saved by another program and stands where the checkpoint "
                                "of step {} is to be: move it away, or give another --out",
                                path, *step);
  }
  return {};
}

/// By name; where the pieces of a shard start is not part of a plan.
std::vector<SafetensorsEntry> comparable(std::vector<SafetensorsEntry> entries) {
  for (SafetensorsEntry& entry : entries)
    entry.offsets.clear();
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

/// `bytes` is the beginning of the file as it was read back.
Status checkHeader(const FolderPlan& plan, std::string_view bytes) {
  auto header = parseSafetensorsHeader(bytes.substr(0, plan.header.size()),
                                       static_cast<int64_t>(plan.header.size()) + plan.dataBytes());
  if (!header.ok())
    return header.takeError().withContext(fmt::format("the header of '{}'", plan.file));
  if (comparable(header->entries) != comparable(plan.entries))
    return Error::environment("the header of '{}' does not hold the tensors' names", plan.file);
  return {};
}

Status checkIndex(const FolderPlan& plan) {
  const Json json = TITAN_TRY(parseJsonObject(plan.index, plan.indexFile()));
  const auto names = TITAN_TRY(stringMapField(json, "weight_map"));
  for (const TensorView* tensor : plan.tensors)
    if (!names.contains(tensor->name))
      return Error::environment("'{}' does not hold the name '{}'", plan.indexFile(), tensor->name);
  return {};
}

/// What a load relies on. The rest may be text that JSON cannot hold: a path, for instance.
Status checkManifest(const Manifest& written, const Manifest& found) {
  const auto differs = [](std::string_view what) {
    return Error::environment("{} does not hold the {} of this run", Manifest::fileName, what);
  };
  for (size_t i = 0; i < written.program.table.size(); ++i)
    if (i >= found.program.table.size() || written.program.table[i] != found.program.table[i])
      return differs(fmt::format("state '{}'", written.program.table[i].name));
  if (written.step != found.step || written.counters != found.counters)
    return differs("counters");
  if (written.program.optimizer != found.program.optimizer ||
      written.program.libraries != found.program.libraries ||
      written.program.mesh != found.program.mesh)
    return differs("optimizer, libraries and mesh");
  return {};
}

/// What a file of the plan gets in place of its tensors.
std::string probeOf(const FolderPlan& plan) {
  std::string probe(static_cast<size_t>(std::min(probeBytes, plan.dataBytes())), '\0');
  for (size_t i = 0; i < probe.size(); ++i)
    probe[i] = static_cast<char>(i * 31 + i / 251);
  return probe;
}

Status checkReadsBack(Env& env, const std::string& file, const std::string& written) {
  const std::string found =
      TITAN_TRY(readWholeFile(env, file, static_cast<int64_t>(written.size())));
  if (found != written)
    return Error::environment("'{}' reads back as digest {}, {} was written: this disk loses data",
                              file, digestOf(found), digestOf(written));
  return {};
}

/// What this rank wrote reads back, under the name that it was published by: from the storage, for
/// what the system still holds in memory says nothing of it.
Status checkFolders(Env& env, const std::string& path, const std::vector<FolderPlan>& folders,
                    const std::vector<FileRecord>& files, Probe probe) {
  for (const FileRecord& file : files) {
    env.dropCached(joinPath(path, file.path));
    if (file.chunks)
      env.dropCached(joinPath(path, file.chunks->path));
  }
  for (const FolderPlan& plan : folders) {
    // A whole file is checked by its digests below.
    if (probe == Probe::Chunk)
      TITAN_TRY(checkReadsBack(env, joinPath(path, plan.file), plan.header + probeOf(plan)));
    TITAN_TRY(checkHeader(plan, plan.header));
    if (!plan.index.empty())
      TITAN_TRY(checkIndex(plan));
  }
  for (const FileRecord& file : files)
    TITAN_TRY(checkFile(env, joinPath(path, file.path), file));
  return {};
}

/// Rank 0 sees what the others wrote, and everything of its own.
Status publishProbe(Env& env, Attempt& attempt, std::string_view text, const Manifest& manifest,
                    const std::string& published) {
  TITAN_TRY(attempt.publish(text, published));
  const std::string parent = parentPath(attempt.path()), path = joinPath(parent, published);
  TITAN_TRY(env.syncDirectory(parent));
  env.dropCached(joinPath(path, Manifest::fileName));
  return checkManifest(manifest, TITAN_TRY(readManifest(path, env)));
}

/// The whole protocol on probes, under a name that no load looks at. `attempt` is this rank's.
Status runProtocol(Env& env, Peers& peers, Attempt& attempt, const std::string& published,
                   const SavePlan& plan, const SaveRequest& request, Probe probe) {
  const std::vector<FolderPlan>& folders = plan.folders();
  std::string chunk;
  std::array<ByteSource, 2> pieces;
  const auto piecesOf = [&](const FolderPlan& folder) -> std::span<const ByteSource> {
    if (probe == Probe::Whole)
      return folder.pieces;
    chunk = probeOf(folder);
    pieces = {std::span<const char>(folder.header), std::span<const char>(chunk)};
    return pieces;
  };
  const auto write = [&]() -> Result<std::string> {
    TITAN_TRY(writeFolders(attempt, folders, piecesOf));
    return toJson(attempt.files());
  };
  const auto files = TITAN_TRY(gatherFiles(peers, waitName, write()));
  TITAN_TRY(peers.byFirst(waitName, [&] {
    return publishProbe(env, attempt, plan.manifest({request.step, request.counters}, files),
                        manifestOf(request), published);
  }));
  const std::string path = joinPath(parentPath(attempt.path()), published);
  TITAN_TRY(peers.agree(waitName, checkFolders(env, path, folders, attempt.files(), probe)));
  return peers.byFirst(waitName, [&] { return removeTree(env, path); });
}

} // namespace

Result<SavePlan> CheckpointStore::checkAll(const SaveRequest& request, const Retention& retention,
                                           Probe probe) {
  const std::string parent = checkpointsPath(directory_);
  SavePlan plan = TITAN_TRY(peers_->agree(waitName, SavePlan::of(request, peers_->rank())));
  const std::vector<FolderPlan>& folders = plan.folders();
  TITAN_TRY(peers_->byFirst(waitName, [&] { return checkLaterSteps(*env_, parent, request); }));
  const SaveSize size = TITAN_TRY(sizeOfAll(*peers_, *env_, parent, folders));
  std::optional<Attempt> attempt =
      TITAN_TRY(peers_->byFirst(waitName, [&]() -> Result<std::optional<Attempt>> {
        // A new checkpoint is written before the oldest is deleted.
        constexpr int64_t newest = std::numeric_limits<int64_t>::max();
        const auto there = static_cast<int64_t>(TITAN_TRY(counted(newest, retention)).size());
        const int64_t more =
            std::max<int64_t>(1, retention.keep > 0 ? retention.keep + 1 - there : 1);
        const uint64_t bytes = static_cast<uint64_t>(size.bytes) +
                               plan.manifest({request.step, request.counters}, {}).size();
        // The checkpoint's directory, the folders and the manifest, too.
        const uint64_t inodes = static_cast<uint64_t>(size.files) + folders.size() + 2;
        TITAN_TRY(checkSpace(*env_, parent, static_cast<uint64_t>(more), bytes, inodes));
        Attempt begun = TITAN_TRY(Attempt::begin(*env_, parent, "preflight"));
        const auto prepare = [&]() -> Status {
          TITAN_TRY(checkRoom(*env_, begun.path(), static_cast<uint64_t>(more), bytes));
          return makeFolders(begun, folders);
        };
        if (Status prepared = prepare(); !prepared.ok()) {
          begun.abandon();
          return prepared.takeError();
        }
        return std::optional(std::move(begun));
      }));
  const std::string path =
      TITAN_TRY(peers_->fromFirst(waitName, attempt ? attempt->path() : std::string()));
  if (!attempt)
    attempt = Attempt::join(*env_, path);
  const std::string published =
      fmt::format("{}{}", doomedPrefix, baseName(path).substr(attemptPrefix.size()));
  Status passed = runProtocol(*env_, *peers_, *attempt, published, plan, request, probe);
  if (!passed.ok() && peers_->isFirst()) {
    attempt->abandon();
    (void)removeTree(*env_, joinPath(parent, published));
  }
  TITAN_TRY(std::move(passed));
  return plan;
}

Result<SavePlan> CheckpointStore::preflight(const SaveRequest& request, const Retention& retention,
                                            Probe probe) {
  Result<SavePlan> passed = checkAll(request, retention, probe);
  if (!passed.ok() && passed.error().code() != ErrorCode::Internal)
    return Error::environment("checkpoints cannot be saved: {}", passed.error().message());
  return passed;
}

} // namespace titan::checkpoint
