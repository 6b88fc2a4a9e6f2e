#include "tools/titan-ckpt/Commands.h"

#include "runtime/checkpoint/Load.h"
#include "runtime/program/Text.h"
#include "tools/titan-ckpt/Format.h"

#include <nlohmann/json.hpp>

namespace titan::ckpt {
namespace {

using namespace checkpoint;
using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int64_t bytesOf(const Manifest& manifest) {
  int64_t bytes = 0;
  for (const FileRecord& file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

/// The checkpoints below `path`: a run directory or the checkpoints/ in it.
Result<std::vector<CheckpointInfo>> checkpointsOf(const std::string& path) {
  Env& env = posixEnv();
  if (TITAN_TRY(env.kindOf(path)) != FileKind::Directory)
    return Error::badInput("'{}' is no directory", path);
  const bool isInner = checkpointsPath("") == baseName(path) &&
                       TITAN_TRY(env.kindOf(checkpointsPath(path))) == FileKind::Missing;
  return listCheckpoints(env, isInner ? parentPath(path) : path);
}

int64_t parametersOf(const Manifest& manifest) {
  int64_t parameters = 0;
  for (const TableEntry& row : manifest.program.table)
    if (row.kind == StateKind::Param)
      parameters += elementCount(row.shape);
  return parameters;
}

} // namespace

Result<Report> list(const std::string& path, bool json) {
  const auto checkpoints = TITAN_TRY(checkpointsOf(path));
  std::vector<std::vector<std::string>> rows = {{"step", "bytes", "samples", "model", "path"}};
  Json items = Json::array();
  std::string problem;
  for (const CheckpointInfo& info : checkpoints) {
    auto manifest = readManifest(info.path);
    if (!manifest.ok()) {
      if (problem.empty())
        problem = manifest.error().message();
      rows.push_back({std::to_string(info.step), "damaged", "", "", info.path});
      items.push_back(
          {{"step", info.step}, {"path", info.path}, {"error", manifest.error().message()}});
      continue;
    }
    const auto samples = manifest->counters.find("samples");
    const int64_t count = samples == manifest->counters.end() ? 0 : samples->second;
    rows.push_back({std::to_string(info.step), formatBytes(bytesOf(*manifest)),
                    std::to_string(count), manifest->program.model, info.path});
    items.push_back({{"step", info.step},
                     {"path", info.path},
                     {"bytes", bytesOf(*manifest)},
                     {"samples", count},
                     {"model", manifest->program.model}});
  }
  if (json)
    return Report{dump(items), problem.empty(), problem};
  if (checkpoints.empty())
    return Report{fmt::format("no checkpoints in '{}'\n", path), true};
  return Report{formatTable(rows), problem.empty(), problem};
}

Result<Report> inspect(const std::string& path, bool json) {
  const Manifest manifest = TITAN_TRY(readManifest(path));
  if (json)
    return Report{toJson(manifest), true};
  const ProgramInfo& program = manifest.program;
  std::vector<std::vector<std::string>> head = {
      {"step", std::to_string(manifest.step)},
      {"model", program.model},
      {"optimizer", program.optimizer},
      {"parameters", std::to_string(parametersOf(manifest))},
      {"bytes", formatBytes(bytesOf(manifest))},
      {"program", program.fingerprint},
      {"target", fmt::format("{} ({})", program.target, program.cpu)},
      {"compiler", program.compilerVersion},
      {"data", manifest.data.digest.empty()
                   ? fmt::format("none yet, seed {}", manifest.data.seed)
                   : fmt::format("{} samples, digest {}, seed {}", manifest.data.length,
                                 manifest.data.digest, manifest.data.seed)}};
  for (const auto& [library, choice] : program.libraries)
    head.push_back({library, fmt::format("{}{}{}", choice.library,
                                         choice.version.empty() ? "" : " ", choice.version)});
  for (const auto& [counter, value] : manifest.counters)
    head.push_back({"counter " + counter, std::to_string(value)});
  if (!manifest.init.source.empty())
    head.push_back({"started from", manifest.init.source});

  std::vector<std::vector<std::string>> table = {{"name", "kind", "dtype", "shape", "also named"}};
  for (const TableEntry& row : program.table)
    table.push_back(
        {row.name,
         fmt::format("{}{}{}", nameOf(row.kind), row.profile.empty() ? "" : " ", row.profile),
         std::string(name(row.dtype)), toString(row.shape),
         fmt::format("{}", fmt::join(row.aliases, ", "))});
  return Report{formatTable(head) + "\n" + formatTable(table), true};
}

Result<Report> verifyAll(const std::string& path, bool json) {
  std::vector<CheckpointInfo> checkpoints = TITAN_TRY(checkpointsOf(path));
  if (checkpoints.empty())
    checkpoints.push_back({0, path});
  Report report;
  Json items = Json::array();
  for (const CheckpointInfo& info : checkpoints) {
    auto manifest = verify(info.path);
    if (!manifest.ok() && manifest.error().code() != ErrorCode::BadInput)
      return manifest.takeError();
    report.good &= manifest.ok();
    if (manifest.ok()) {
      report.text += fmt::format("ok: '{}', step {}, {} files, {}\n", info.path, manifest->step,
                                 manifest->files.size(), formatBytes(bytesOf(*manifest)));
      items.push_back({{"path", info.path}, {"ok", true}, {"step", manifest->step}});
    } else {
      report.text += fmt::format("damaged: {}\n", manifest.error().message());
      if (report.problem.empty())
        report.problem = manifest.error().message();
      items.push_back({{"path", info.path}, {"ok", false}, {"error", manifest.error().message()}});
    }
  }
  if (json)
    report.text = dump(items);
  return report;
}

} // namespace titan::ckpt
