#include "runtime/checkpoint/HookStates.h"

#include "runtime/checkpoint/StrictJson.h"

#include <algorithm>
#include <array>
#include <optional>

#include <unistd.h>

namespace titan::checkpoint {
namespace {

constexpr std::array<std::string_view, 6> kindNames = {"waiting", "running",  "done",
                                                       "failed",  "left out", "unknown"};
constexpr int64_t mostBytes = int64_t{1} << 30;

Result<std::pair<int64_t, HookState>> parseLine(std::string_view line) {
  const Json json = TITAN_TRY(parseJsonObject(line, "a hook's state"));
  const std::string name = TITAN_TRY(stringField(json, "state"));
  const auto kind = std::ranges::find(kindNames, name) - kindNames.begin();
  if (kind >= std::ssize(kindNames) - 1)
    return Error::badInput("'{}' is no state of a hook", name);
  HookState state{static_cast<HookState::Kind>(kind), {}, TITAN_TRY(stringField(json, "by"))};
  if (json.contains("how"))
    state.how = TITAN_TRY(stringField(json, "how"));
  return std::pair(TITAN_TRY(integerField(json, "step")), std::move(state));
}

} // namespace

std::string_view nameOf(HookState::Kind kind) { return kindNames[static_cast<size_t>(kind)]; }

std::string hookStatesPath(const std::string& directory) {
  return joinPath(directory, "hooks.jsonl");
}

std::string hookLine(int64_t step, const HookState& state) {
  return fmt::format(
      "{{\"step\": {}, \"state\": {}{}, \"by\": {}}}\n", step, jsonString(nameOf(state.kind)),
      state.how.empty() ? "" : ", \"how\": " + jsonString(state.how), jsonString(state.by));
}

Result<std::map<int64_t, HookState>> readHookStates(Env& env, const std::string& directory) {
  std::map<int64_t, HookState> states;
  const std::string path = hookStatesPath(directory);
  if (TITAN_TRY(env.kindOf(path)) == FileKind::Missing)
    return states;
  const std::string text = TITAN_TRY(readWholeFile(env, path, mostBytes));
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    if (auto line = parseLine(std::string_view(text).substr(begin, end - begin)); line.ok())
      states[line->first] = std::move(line->second);
  return states;
}

std::string describeSelf() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("pid {} on {}", ::getpid(), host);
}

} // namespace titan::checkpoint
