#include "runtime/checkpoint/CheckpointStore.h"

#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/RunListing.h"
#include "runtime/checkpoint/SavePlan.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace titan::checkpoint {
namespace {

constexpr std::string_view stepPrefix = "step-";

/// What ranks call a save.
std::string waitNameOf(int64_t step) { return fmt::format("save {}", step); }

Error notSaved(int64_t step, Error error) {
  if (error.code() == ErrorCode::Internal)
    return error;
  return Error::runFailed("the checkpoint of step {} was not saved: {}", step, error.message());
}

/// What cut-off saves and deletions left. The parent is synced: no name of theirs can come back.
Status removeLeftovers(Env& env, const std::string& parent) {
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(parent)))
    if (entry.kind == FileKind::Directory &&
        (entry.name.starts_with(attemptPrefix) || entry.name.starts_with(doomedPrefix)))
      TITAN_TRY(removeTree(env, joinPath(parent, entry.name)));
  return {};
}

/// Of what open makes, what is not there yet; what stands in another before that.
Result<std::vector<std::string>> findMissing(Env& env, const std::string& directory) {
  std::vector<std::string> missing;
  for (const std::string& path : {checkpointsPath(directory), lockPath(directory)})
    if (TITAN_TRY(env.kindOf(path)) == FileKind::Missing)
      missing.push_back(path);
  for (std::string path = directory; TITAN_TRY(env.kindOf(path)) == FileKind::Missing;
       path = parentPath(path))
    missing.push_back(path);
  return missing;
}

} // namespace

std::string stepName(int64_t step) { return fmt::format("{}{:08}", stepPrefix, step); }

std::optional<int64_t> parseStepName(const std::string& name) {
  if (!name.starts_with(stepPrefix))
    return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + stepPrefix.size(), end, step);
  // Only the one spelling that save gives: "step-1" is somebody else's.
  if (error != std::errc() || rest != end || step < 0 || stepName(step) != name)
    return std::nullopt;
  return step;
}

std::string checkpointsPath(const std::string& directory) {
  return joinPath(directory, "checkpoints");
}

Result<std::vector<CheckpointInfo>> listCheckpoints(Env& env, const std::string& directory) {
  const std::string parent = checkpointsPath(directory);
  std::vector<CheckpointInfo> checkpoints;
  if (TITAN_TRY(env.kindOf(parent)) == FileKind::Missing)
    return checkpoints;
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(parent)))
    if (const auto step = parseStepName(entry.name); step && entry.kind == FileKind::Directory)
      checkpoints.push_back({*step, joinPath(parent, entry.name)});
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  return checkpoints;
}

CheckpointStore::CheckpointStore(std::string directory, Env& env, std::unique_ptr<FileLock> lock)
    : directory_(std::move(directory)), env_(&env), alone_(std::make_unique<Peers>()),
      peers_(alone_.get()), lock_(std::move(lock)) {}

Result<CheckpointStore> CheckpointStore::open(const std::string& directory, Env& env) {
  std::vector<std::string> missing = TITAN_TRY(findMissing(env, directory));
  TITAN_TRY(makeDirectories(env, directory));
  const LockText self{describeSelf(), {}};
  LockAttempt attempt = TITAN_TRY(env.lockFile(lockPath(directory), self.toString()));
  if (!attempt.lock)
    return Error::environment("directory '{}' is in use by another process ({}): wait until it "
                              "has ended, or give another --out",
                              directory, LockText::parse(attempt.holder).holder);
  const std::string parent = checkpointsPath(directory);
  TITAN_TRY(makeDirectories(env, parent));
  // Another process may have made these, or renamed a checkpoint into place, and died before its
  // sync. The ancestors were synced before checkpoints/ was made.
  TITAN_TRY(env.syncDirectory(directory));
  TITAN_TRY(env.syncDirectory(parent));
  TITAN_TRY(removeLeftovers(env, parent));
  CheckpointStore store(directory, env, std::move(attempt.lock));
  store.made_ = std::move(missing);
  return store;
}

Result<CheckpointStore> CheckpointStore::open(const std::string& directory, Peers& peers,
                                              Env& env) {
  CheckpointStore store(directory, env, nullptr);
  TITAN_TRY(peers.byFirst("the lock on --out", [&]() -> Status {
    store = TITAN_TRY(open(directory, env));
    return {};
  }));
  store.peers_ = &peers;
  return store;
}

void CheckpointStore::takeBack() {
  for (const std::string& path : made_) {
    const bool isLock = path == lockPath(directory_);
    if (!(isLock ? env_->removeFile(path) : env_->removeDirectory(path)).ok())
      return;
  }
}

Result<std::vector<CheckpointInfo>> CheckpointStore::list() const {
  return listCheckpoints(*env_, directory_);
}

Result<std::optional<CheckpointInfo>> CheckpointStore::latest() const {
  const auto all = TITAN_TRY(list());
  return all.empty() ? std::nullopt : std::optional(all.back());
}

Status CheckpointStore::syncParent() {
  Status synced = env_->syncDirectory(checkpointsPath(directory_));
  if (!synced.ok())
    broken_ = synced.error();
  return synced;
}

Result<std::optional<Attempt>> CheckpointStore::begin(const SavePlan& plan, int64_t step) {
  if (broken_)
    return *broken_;
  const std::string parent = checkpointsPath(directory_), name = stepName(step);
  const std::string path = joinPath(parent, name);
  if (TITAN_TRY(env_->kindOf(path)) != FileKind::Missing) {
    const Manifest there = TITAN_TRY(readManifest(path, *env_));
    if (there.program.fingerprint != plan.fingerprint())
      return Error::badInput("'{}' was saved by another program (fingerprint {}, this one's is {})",
                             path, there.program.fingerprint, plan.fingerprint());
    return std::optional<Attempt>();
  }
  Attempt attempt = TITAN_TRY(Attempt::begin(*env_, parent, name));
  if (Status made = makeFolders(attempt, plan.folders()); !made.ok()) {
    attempt.abandon();
    return made.takeError();
  }
  return std::optional(std::move(attempt));
}

Status CheckpointStore::publish(Attempt& attempt, std::string_view manifest, int64_t step) {
  const std::string name = stepName(step);
  TITAN_TRY(attempt.publish(manifest, name));
  Status synced = syncParent();
  if (!synced.ok())
    attempt.withdraw(name);
  return synced;
}

void CheckpointStore::tellSave(int64_t step, int64_t bytes) {
  if (lock_)
    lock_->rewrite(LockText{describeSelf(), {{step, bytes}}}.toString());
}

void CheckpointStore::tellNoSave() {
  if (lock_)
    lock_->rewrite(LockText{describeSelf(), {}}.toString());
}

Result<SaveReport> CheckpointStore::commit(const SavePlan& plan, const PlannedSave& save) {
  TITAN_TRY(plan.checkCounters(save.counters));
  const std::string name = waitNameOf(save.step);
  SaveReport report;
  report.path = joinPath(checkpointsPath(directory_), stepName(save.step));
  std::optional<Attempt> attempt =
      TITAN_TRY(peers_->byFirst(name, [&] { return begin(plan, save.step); }));
  const std::string path =
      TITAN_TRY(peers_->fromFirst(name, attempt ? attempt->path() : std::string()));
  report.alreadyCommitted = path.empty();
  if (report.alreadyCommitted)
    return report;

  if (!attempt)
    attempt = Attempt::join(*env_, path);
  const auto write = [&]() -> Result<std::string> {
    if (save.beforeRead)
      TITAN_TRY(save.beforeRead());
    const auto pieces = [](const FolderPlan& folder) { return std::span(folder.pieces); };
    TITAN_TRY(writeFolders(*attempt, plan.folders(), pieces, save.onRead));
    return toJson(attempt->files());
  };
  const auto finish = [&]() -> Status {
    const std::vector<FileRecord> files = TITAN_TRY(gatherFiles(*peers_, name, write()));
    for (const FileRecord& file : files)
      report.bytes += file.bytes + (file.chunks ? chunkCount(file.bytes) * chunkDigestBytes : 0);
    return peers_->byFirst(
        name, [&] { return publish(*attempt, plan.manifest(save, files), save.step); });
  };
  if (Status finished = finish(); !finished.ok()) {
    if (peers_->isFirst())
      attempt->abandon();
    return finished.takeError();
  }
  return report;
}

Result<std::vector<CheckpointInfo>> CheckpointStore::counted(int64_t newest,
                                                             const Retention& retention) const {
  auto all = TITAN_TRY(list());
  // A checkpoint of a later step is no reason to delete this one.
  std::erase_if(all, [&](const CheckpointInfo& info) {
    return info.step > newest || retention.isForGood(info.step);
  });
  return all;
}

Status CheckpointStore::retire(int64_t newest, const Retention& retention) {
  const auto all = TITAN_TRY(counted(newest, retention));
  const int64_t surplus =
      retention.keep > 0 ? static_cast<int64_t>(all.size()) - retention.keep : 0;
  for (int64_t i = 0; i < surplus; ++i) {
    const CheckpointInfo& info = all[static_cast<size_t>(i)];
    if (retention.inUse.contains(info.step))
      continue;
    bool syncFailed = false;
    Result<bool> removed = removeCommitted(*env_, info.path, syncFailed);
    if (syncFailed)
      broken_ = removed.error();
    TITAN_TRY(std::move(removed));
  }
  return {};
}

Result<SavePlan> CheckpointStore::plan(const SaveRequest& request) {
  return peers_->agree(waitNameOf(request.step), SavePlan::of(request, peers_->rank()));
}

Result<SaveReport> CheckpointStore::save(const SaveRequest& request, const Retention& retention) {
  Result<SavePlan> planned = plan(request);
  if (!planned.ok())
    return notSaved(request.step, planned.takeError());
  return save(*planned, {request.step, request.counters}, retention);
}

Result<SaveReport> CheckpointStore::save(const SavePlan& plan, const PlannedSave& save,
                                         const Retention& retention) {
  const auto start = std::chrono::steady_clock::now();
  tellSave(save.step, plan.tensorBytes());
  auto report = commit(plan, save);
  tellNoSave();
  if (!report.ok())
    return notSaved(save.step, report.takeError());
  // The new checkpoint is there, whatever happens to the old ones.
  if (Status retired = peers_->isFirst() ? retire(save.step, retention) : Status(); !retired.ok())
    report->notes.push_back(
        fmt::format("an old checkpoint was not deleted: {}", retired.error().message()));
  report->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

Result<std::vector<std::string>> CheckpointStore::setAsideAfter(int64_t step) {
  std::vector<std::string> paths;
  for (const CheckpointInfo& info : TITAN_TRY(list())) {
    if (info.step <= step)
      continue;
    paths.push_back(
        joinPath(checkpointsPath(directory_), fmt::format("aside-{}-{:08x}", stepName(info.step),
                                                          env_->uniqueNumber() & 0xffffffff)));
    TITAN_TRY(env_->rename(info.path, paths.back()));
  }
  if (!paths.empty())
    TITAN_TRY(syncParent());
  return paths;
}

} // namespace titan::checkpoint
