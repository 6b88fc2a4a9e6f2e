#include "runtime/job/Resume.h"

#include "runtime/job/Agreement.h"
#include "runtime/job/Session.h"

#include <algorithm>
#include <filesystem>

namespace titan {
namespace {

using checkpoint::CheckpointInfo;

Result<Start> fromNewest(const std::string& path) {
  Start start;
  start.hold = TITAN_TRY(checkpoint::holdCheckpoint(path));
  start.checkpoint = path;
  start.newest = true;
  if (Result<checkpoint::Manifest> manifest = checkpoint::readManifest(path); manifest.ok())
    start.manifest = manifest.take();
  return start;
}

Result<Start> fromNamed(const std::string& path) {
  Start start;
  start.checkpoint = TITAN_TRY(resolveCheckpoint(path));
  start.hold = TITAN_TRY(checkpoint::holdCheckpoint(start.checkpoint));
  start.manifest = TITAN_TRY(checkpoint::readManifest(start.checkpoint));
  return start;
}

/// The newest checkpoint that is sound; all later ones are damaged.
Result<Start> fromNewestGood(const std::vector<CheckpointInfo>& all, const std::string& directory) {
  Start start;
  for (auto info = all.rbegin(); info != all.rend(); ++info) {
    if (std::optional<Error> damage = TITAN_TRY(checkpoint::findDamage(info->path))) {
      start.damage.push_back(damage->message());
      continue;
    }
    start.checkpoint = info->path;
    start.manifest = TITAN_TRY(checkpoint::readManifest(info->path));
    if (!start.damage.empty())
      start.setAsideAfter = info->step;
    return start;
  }
  if (all.empty())
    return start;
  return Error::badInput("'{}' has no good checkpoint: {}; start anew in another --out", directory,
                         start.damage.front());
}

/// The same checkpoint as another rank sees it.
Result<Start> seenAs(const std::string& path, bool newest) {
  return newest ? fromNewest(path) : fromNamed(path);
}

} // namespace

Result<checkpoint::LoadReport> Start::load(const std::string& directory,
                                           const checkpoint::LoadRequest& request) const {
  if (!newest)
    return checkpoint::load(checkpoint, request);
  std::optional<checkpoint::LoadReport> report =
      TITAN_TRY(checkpoint::loadLatest(directory, request));
  return std::move(*report); // it is held
}

SavedProducts Start::products(const std::string& target) const {
  if (!manifest)
    return {};
  const checkpoint::Libraries& libraries = manifest->program.libraries;
  const auto choicesOf = [&](const char* routine) {
    const auto found = libraries.find(target + routine);
    if (found == libraries.end())
      return LibraryChoices();
    const checkpoint::LibraryChoice& choice = found->second;
    return LibraryChoices{choice.library, choice.version, choice.device, choice.algorithms};
  };
  return {choicesOf(".gemm"), choicesOf(".attention"), manifest->step};
}

Result<std::string> resolveCheckpoint(const std::string& path) {
  checkpoint::Env& env = checkpoint::posixEnv();
  if (TITAN_TRY(env.kindOf(path)) == checkpoint::FileKind::Missing)
    return Error::badInput("no checkpoint '{}'", path);
  if (TITAN_TRY(env.kindOf(checkpoint::joinPath(path, checkpoint::Manifest::fileName))) ==
      checkpoint::FileKind::File)
    return path;
  std::vector<CheckpointInfo> all = TITAN_TRY(checkpoint::listCheckpoints(env, path));
  if (all.empty())
    return Error::badInput("'{}' is neither a checkpoint nor a run directory with one", path);
  return all.back().path;
}

Result<Start> chooseStart(const JobOptions& options, const checkpoint::CheckpointStore& store) {
  const std::vector<CheckpointInfo> all = TITAN_TRY(store.list());
  if (options.resume == "never") {
    if (!all.empty())
      return Error::usage(
          "'{}' has {} checkpoints, the newest of step {}, and --resume never would mix two runs: "
          "give another --out",
          store.directory(), all.size(), all.back().step);
    return Start();
  }
  if (options.resume == "auto")
    return all.empty() ? Start() : fromNewest(all.back().path);
  if (options.resume == "good")
    return fromNewestGood(all, store.directory());
  Start start = TITAN_TRY(fromNamed(options.resume));
  const int64_t step = start.manifest->step;
  for (const CheckpointInfo& other : all) {
    std::error_code error;
    if (other.step < step || std::filesystem::equivalent(other.path, start.checkpoint, error))
      continue;
    if (!options.setAside)
      return Error::usage("'{}' already has a checkpoint of step {}, and --resume starts at step "
                          "{}: give another --out, or --set-aside to rename what is later",
                          store.directory(), other.step, step);
    // One of the same step is another run's: the start lies elsewhere.
    const int64_t after = other.step == step ? step - 1 : step;
    start.setAsideAfter = std::min(start.setAsideAfter.value_or(after), after);
  }
  return start;
}

Result<Start> chooseForReading(const JobOptions& options) {
  if (!options.checkpoint.empty())
    return fromNamed(options.checkpoint);
  std::vector<CheckpointInfo> all =
      TITAN_TRY(checkpoint::listCheckpoints(checkpoint::posixEnv(), options.out));
  if (!all.empty())
    return fromNewest(all.back().path);
  printNote(
      fmt::format("no checkpoint in '{}': using the weights the job starts from", options.out));
  return Start();
}

Result<Start> chooseTogether(Peers& peers, const std::function<Result<Start>()>& choose) {
  if (peers.isAlone())
    return choose();
  constexpr std::string_view name = "the choice of the checkpoint";
  Start start = TITAN_TRY(peers.byFirst(name, choose));
  const std::string path = TITAN_TRY(peers.fromFirst(name, start.checkpoint));
  const bool newest = TITAN_TRY(peers.fromFirst(name, int64_t{start.newest})) != 0;
  if (path.empty())
    return start;
  const std::string identity = TITAN_TRY(peers.agree(name, checkpoint::identityOf(path)));
  TITAN_TRY(agreeOn(peers, name, [&] {
    return std::vector<Fact>{{fmt::format("the digest of '{}'", path), identity}};
  }));
  if (!peers.isFirst())
    start = TITAN_TRY(seenAs(path, newest));
  return start;
}

} // namespace titan
