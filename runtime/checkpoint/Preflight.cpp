// Before step 1: would a save work? Each broken storage is found in seconds, not after hours of
// training.
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Commit.h"
#include "runtime/checkpoint/Digest.h"
#include "runtime/checkpoint/Load.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

constexpr size_t probeBytes = 64 << 10;
constexpr const char* probeFile = "probe";
/// Directories and files of one checkpoint, and the headers, manifest and rounding to blocks of its
/// files.
constexpr uint64_t inodesPerCheckpoint = 10;
constexpr uint64_t overheadPerCheckpoint = 1 << 20;

Status checkSpace(Env& env, const std::string& path, uint64_t checkpoints, uint64_t tensorBytes) {
  const Space space = TITAN_TRY(env.space(path));
  const uint64_t bytes = checkpoints * (tensorBytes + overheadPerCheckpoint);
  if (space.bytes < bytes)
    return Error::environment("'{}' has {} bytes free, {} more checkpoint(s) of {} need {}: free "
                              "some space, lower checkpoint.keep, or give another --out",
                              path, space.bytes, checkpoints, tensorBytes, bytes);
  const uint64_t inodes = checkpoints * inodesPerCheckpoint;
  if (space.countsInodes && space.inodes < inodes)
    return Error::environment("'{}' has {} inodes free, {} more checkpoint(s) need {}: delete some "
                              "files, or give another --out",
                              path, space.inodes, checkpoints, inodes);
  return {};
}

/// The whole protocol, under a name that no load looks at.
Status runProtocol(Env& env, const std::string& parent, Attempt& attempt) {
  std::string chunk(probeBytes, '\0');
  for (size_t i = 0; i < chunk.size(); ++i)
    chunk[i] = static_cast<char>(i * 31 + i / 251);
  const std::string_view pieces[] = {chunk};
  TITAN_TRY(attempt.makeDirectory("model"));
  TITAN_TRY(attempt.writeFile(joinPath("model", probeFile), pieces));

  const std::string published =
      fmt::format("{}{}", doomedPrefix, baseName(attempt.path()).substr(attemptPrefix.size()));
  const std::string path = joinPath(parent, published);
  TITAN_TRY(attempt.publish(Manifest{}, published));
  TITAN_TRY(env.syncDirectory(parent));
  const Manifest manifest = TITAN_TRY(readManifest(path, env));
  const std::string file = joinPath(path, manifest.files.at(0).path);
  const std::string found = TITAN_TRY(readWholeFile(env, file, probeBytes));
  if (found != chunk)
    return Error::environment("'{}' reads back as digest {}, {} was written: this disk loses data",
                              file, digestOf(found), digestOf(chunk));
  return removeTree(env, path);
}

} // namespace

Status CheckpointStore::preflight(const SaveRequest& request, int64_t keep) {
  const std::string parent = checkpointsPath(directory_);
  uint64_t tensorBytes = 0;
  for (const TensorView& tensor : request.tensors)
    tensorBytes += static_cast<uint64_t>(tensor.bytes());
  // A new checkpoint is written before the oldest is deleted.
  const int64_t there = static_cast<int64_t>(TITAN_TRY(list()).size());
  const int64_t more = std::max<int64_t>(1, keep > 0 ? keep + 1 - there : 1);

  const auto check = [&]() -> Status {
    TITAN_TRY(checkSpace(*env_, parent, static_cast<uint64_t>(more), tensorBytes));
    Attempt attempt = TITAN_TRY(Attempt::begin(*env_, parent, "preflight"));
    Status passed = runProtocol(*env_, parent, attempt);
    if (!passed.ok())
      attempt.abandon();
    return passed;
  };
  if (Status passed = check(); !passed.ok())
    return Error::environment("checkpoints cannot be saved: {}", passed.error().message());
  return {};
}

} // namespace titan::checkpoint
