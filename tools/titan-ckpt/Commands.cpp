#include "tools/titan-ckpt/Commands.h"

#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/RunListing.h"
#include "runtime/checkpoint/Verify.h"
#include "runtime/program/Text.h"
#include "tools/titan-ckpt/Format.h"

#include <nlohmann/json.hpp>

#include <algorithm>

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

/// The run directory that `path` is, or whose checkpoints/ it is.
Result<std::string> directoryOf(const std::string& path) {
  Env& env = posixEnv();
  if (TITAN_TRY(env.kindOf(path)) != FileKind::Directory)
    return Error::badInput("'{}' is no directory", path);
  const bool isInner = checkpointsPath("") == baseName(path) &&
                       TITAN_TRY(env.kindOf(checkpointsPath(path))) == FileKind::Missing;
  return isInner ? parentPath(path) : path;
}

const char* nameOf(RunEntry::State state) {
  switch (state) {
  case RunEntry::State::Committed:
    return "committed";
  case RunEntry::State::Saving:
    return "saving";
  case RunEntry::State::Deleting:
    return "deleting";
  case RunEntry::State::SetAside:
    return "set aside";
  }
  return "";
}

/// What is being done, and whether somebody still does it: "saving 64% (pid 12 on host)".
std::string stateOf(const RunEntry& entry, const RunListing& listing) {
  std::string state = nameOf(entry.state);
  if (entry.state == RunEntry::State::SetAside)
    return state;
  if (!listing.isHeld)
    return fmt::format("{}, cut off ({} is dead)", state,
                       listing.holder.empty() ? "its process" : listing.holder);
  // The last percent is the manifest.
  if (entry.total && *entry.total > 0)
    state += fmt::format(" {}%", std::min<int64_t>(99, entry.bytes * 100 / *entry.total));
  return fmt::format("{} ({})", state, listing.holder);
}

/// "failed (exit status 3)"
std::string textOf(const std::optional<HookState>& hook) {
  if (!hook)
    return "";
  return fmt::format("{}{}", nameOf(hook->kind),
                     hook->how.empty() ? "" : fmt::format(" ({})", hook->how));
}

void addHook(const RunEntry& entry, Json& item) {
  if (!entry.hook)
    return;
  item["hook"] = {{"state", nameOf(entry.hook->kind)}};
  if (!entry.hook->how.empty())
    item["hook"]["how"] = entry.hook->how;
}

/// One that is committed, which may be damaged; nothing where it was deleted since.
Status listCommitted(const RunEntry& entry, std::vector<std::vector<std::string>>& rows,
                     Json& items, std::string& problem) {
  const std::string step = std::to_string(*entry.step);
  auto manifest = readManifest(entry.path);
  if (!manifest.ok()) {
    if (TITAN_TRY(posixEnv().kindOf(entry.path)) == FileKind::Missing)
      return {};
    if (problem.empty())
      problem = manifest.error().message();
    rows.push_back({step, "damaged", "", "", "", "", textOf(entry.hook), entry.path});
    items.push_back({{"step", *entry.step},
                     {"path", entry.path},
                     {"state", "damaged"},
                     {"error", manifest.error().message()}});
    addHook(entry, items.back());
    return {};
  }
  const auto samples = manifest->counters.find("samples");
  const int64_t count = samples == manifest->counters.end() ? 0 : samples->second;
  const std::set<std::string> profiles = profilesOf(manifest->program);
  rows.push_back({step, nameOf(entry.state), formatBytes(bytesOf(*manifest)), std::to_string(count),
                  manifest->program.model, fmt::format("{}", fmt::join(profiles, ", ")),
                  textOf(entry.hook), entry.path});
  items.push_back({{"step", *entry.step},
                   {"path", entry.path},
                   {"state", nameOf(entry.state)},
                   {"bytes", bytesOf(*manifest)},
                   {"samples", count},
                   {"model", manifest->program.model},
                   {"profiles", profiles}});
  addHook(entry, items.back());
  return {};
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
  const RunListing listing = TITAN_TRY(listRun(posixEnv(), TITAN_TRY(directoryOf(path))));
  std::vector<std::vector<std::string>> rows = {
      {"step", "state", "bytes", "samples", "model", "averages", "hook", "path"}};
  Json items = Json::array();
  std::string problem;
  for (const RunEntry& entry : listing.entries) {
    if (entry.state == RunEntry::State::Committed) {
      TITAN_TRY(listCommitted(entry, rows, items, problem));
      continue;
    }
    const std::string step = entry.step ? std::to_string(*entry.step) : "";
    rows.push_back({step, stateOf(entry, listing), entry.bytes > 0 ? formatBytes(entry.bytes) : "",
                    "", "", "", "", entry.path});
    Json item = {{"path", entry.path}, {"state", nameOf(entry.state)}};
    if (entry.step)
      item["step"] = *entry.step;
    if (entry.state == RunEntry::State::Saving)
      item["bytes"] = entry.bytes;
    if (entry.total)
      item["total"] = *entry.total;
    if (entry.state != RunEntry::State::SetAside) {
      item["holder"] = listing.holder;
      item["holder_alive"] = listing.isHeld;
    }
    items.push_back(std::move(item));
  }
  if (json)
    return Report{dump(items), problem.empty(), problem};
  if (listing.entries.empty())
    return Report{fmt::format("no checkpoints in '{}'\n", path), true};
  // Few runs have hooks.
  if (std::ranges::none_of(listing.entries,
                           [](const RunEntry& entry) { return entry.hook.has_value(); }))
    for (std::vector<std::string>& row : rows)
      row.erase(row.end() - 2);
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
    table.push_back({row.name,
                     fmt::format("{}{}{}", row.isCopy ? "copy" : nameOf(row.kind),
                                 row.profile.empty() ? "" : " ", row.profile),
                     std::string(name(row.dtype)), toString(row.shape),
                     fmt::format("{}", fmt::join(row.aliases, ", "))});
  return Report{formatTable(head) + "\n" + formatTable(table), true};
}

Result<Report> verifyAll(const std::string& path, int threads, bool json) {
  std::vector<CheckpointInfo> checkpoints =
      TITAN_TRY(listCheckpoints(posixEnv(), TITAN_TRY(directoryOf(path))));
  if (checkpoints.empty())
    checkpoints.push_back({0, path});
  Report report;
  Json items = Json::array();
  for (const CheckpointInfo& info : checkpoints) {
    const VerifyReport found = TITAN_TRY(verifyWhole(info.path, threads));
    if (found.damages.empty()) {
      report.text +=
          fmt::format("ok: '{}', step {}, {} files, {}\n", info.path, found.manifest->step,
                      found.manifest->files.size(), formatBytes(bytesOf(*found.manifest)));
      items.push_back({{"path", info.path}, {"ok", true}, {"step", found.manifest->step}});
      continue;
    }
    report.good = false;
    for (const std::string& damage : found.damages)
      report.text += fmt::format("damaged: {}\n", damage);
    if (report.problem.empty())
      report.problem = found.damages.front();
    items.push_back({{"path", info.path},
                     {"ok", false},
                     {"error", found.damages.front()},
                     {"damages", found.damages}});
  }
  if (json)
    report.text = dump(items);
  return report;
}

} // namespace titan::ckpt
