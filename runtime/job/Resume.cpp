#include "runtime/job/Resume.h"

#include "runtime/checkpoint/Load.h"
#include "runtime/job/Session.h"

#include <filesystem>

namespace titan {
namespace {

using checkpoint::CheckpointInfo;

Start fromNewest(const std::string& path) {
  Start start{path, true, std::nullopt};
  if (Result<checkpoint::Manifest> manifest = checkpoint::readManifest(path); manifest.ok())
    start.manifest = manifest.take();
  return start;
}

Result<Start> fromNamed(const std::string& path) {
  Start start;
  start.checkpoint = TITAN_TRY(resolveCheckpoint(path));
  start.manifest = TITAN_TRY(checkpoint::readManifest(start.checkpoint));
  return start;
}

} // namespace

std::string Start::gemm(const std::string& target) const {
  if (!manifest)
    return {};
  auto it = manifest->program.libraries.find(target + ".gemm");
  return it == manifest->program.libraries.end() ? std::string() : it->second.library;
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
  Start start = TITAN_TRY(fromNamed(options.resume));
  for (const CheckpointInfo& other : all) {
    std::error_code error;
    if (other.step >= start.manifest->step &&
        !std::filesystem::equivalent(other.path, start.checkpoint, error))
      return Error::usage("'{}' already has a checkpoint of step {}, and --resume starts at step "
                          "{}: give another --out",
                          store.directory(), other.step, start.manifest->step);
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

} // namespace titan
