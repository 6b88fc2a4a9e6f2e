// Before step 1: would a save work? Whatever a later save could find in its names, its formats or
// the storage is found in seconds, not after hours of training.
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Digest.h"
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/StoredFile.h"
#include "runtime/checkpoint/StrictJson.h"
#include "runtime/checkpoint/WriteState.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

constexpr int64_t probeBytes = 64 << 10;
/// The rounding of files to blocks, and what a manifest grows by.
constexpr uint64_t overheadPerCheckpoint = 1 << 20;

/// The checkpoint's directory and manifest; of each folder the directory, the file and the list of
/// its chunks, and the index where it has one.
uint64_t inodesOf(const std::vector<FolderPlan>& folders) {
  uint64_t inodes = 2;
  for (const FolderPlan& plan : folders)
    inodes += plan.index.empty() ? 3 : 4;
  return inodes;
}

int64_t bytesOf(const std::vector<FolderPlan>& folders) {
  int64_t bytes = 0;
  for (const FolderPlan& plan : folders) {
    const int64_t file = static_cast<int64_t>(plan.header.size()) + plan.dataBytes();
    bytes += file + chunkCount(file) * chunkDigestBytes + static_cast<int64_t>(plan.index.size());
  }
  return bytes;
}

Status checkSpace(Env& env, const std::string& path, uint64_t checkpoints,
                  const std::vector<FolderPlan>& folders, size_t manifestBytes) {
  const Space space = TITAN_TRY(env.space(path));
  const uint64_t each = static_cast<uint64_t>(bytesOf(folders)) + manifestBytes;
  const uint64_t bytes = checkpoints * (each + overheadPerCheckpoint);
  if (space.bytes < bytes)
    return Error::environment("'{}' has {} bytes free, {} more checkpoint(s) of {} and {} for "
                              "blocks and manifest growth each need {}: free some space, lower "
                              "checkpoint.keep, or give another --out",
                              path, space.bytes, checkpoints, each, overheadPerCheckpoint, bytes);
  const uint64_t inodes = checkpoints * inodesOf(folders);
  if (space.countsInodes && space.inodes < inodes)
    return Error::environment("'{}' has {} inodes free, {} more checkpoint(s) need {}: delete some "
                              "files, or give another --out",
                              path, space.inodes, checkpoints, inodes);
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

/// The whole protocol, under `published`: a name that no load looks at.
Status runProtocol(Env& env, const std::string& parent, Attempt& attempt,
                   const std::string& published, const std::vector<FolderPlan>& folders,
                   const Manifest& manifest) {
  for (const FolderPlan& plan : folders) {
    const std::string probe = probeOf(plan);
    const ByteSource pieces[] = {std::span<const char>(plan.header), std::span<const char>(probe)};
    const std::string_view index[] = {plan.index};
    TITAN_TRY(attempt.makeDirectory(plan.folder.name));
    TITAN_TRY(attempt.writeDataFile(plan.file, pieces));
    if (!plan.index.empty())
      TITAN_TRY(attempt.writeFile(plan.indexFile(), index));
  }
  const std::string path = joinPath(parent, published);
  TITAN_TRY(attempt.publish(manifest, published));
  TITAN_TRY(env.syncDirectory(parent));

  const Manifest found = TITAN_TRY(readManifest(path, env));
  TITAN_TRY(checkManifest(manifest, found));
  for (const FolderPlan& plan : folders) {
    TITAN_TRY(checkReadsBack(env, joinPath(path, plan.file), plan.header + probeOf(plan)));
    TITAN_TRY(checkHeader(plan, plan.header));
    if (!plan.index.empty())
      TITAN_TRY(checkIndex(plan));
  }
  for (const FileRecord& file : found.files)
    TITAN_TRY(checkFile(env, joinPath(path, file.path), file));
  return removeTree(env, path);
}

} // namespace

Status CheckpointStore::preflight(const SaveRequest& request, int64_t keep) {
  const std::string parent = checkpointsPath(directory_);
  const auto check = [&]() -> Status {
    TITAN_TRY(checkRequest(request));
    TITAN_TRY(checkLaterSteps(*env_, parent, request));
    const auto folders = TITAN_TRY(planFolders(request.tensors));
    const Manifest manifest = manifestOf(request);
    // A new checkpoint is written before the oldest is deleted.
    const int64_t there = static_cast<int64_t>(TITAN_TRY(list()).size());
    const int64_t more = std::max<int64_t>(1, keep > 0 ? keep + 1 - there : 1);
    TITAN_TRY(
        checkSpace(*env_, parent, static_cast<uint64_t>(more), folders, toJson(manifest).size()));
    Attempt attempt = TITAN_TRY(Attempt::begin(*env_, parent, "preflight"));
    const std::string published =
        fmt::format("{}{}", doomedPrefix, baseName(attempt.path()).substr(attemptPrefix.size()));
    Status passed = runProtocol(*env_, parent, attempt, published, folders, manifest);
    if (!passed.ok()) {
      attempt.abandon();
      (void)removeTree(*env_, joinPath(parent, published));
    }
    return passed;
  };
  Status passed = check();
  if (!passed.ok() && passed.error().code() != ErrorCode::Internal)
    return Error::environment("checkpoints cannot be saved: {}", passed.error().message());
  return passed;
}

} // namespace titan::checkpoint
