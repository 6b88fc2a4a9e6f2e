#include "runtime/host/AvailableMemory.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>

namespace titan {
namespace {

std::optional<int64_t> parseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest != text.data() ? std::optional(number) : std::nullopt;
}

/// The first line that begins so, without that beginning; nothing where there is none.
std::optional<std::string> lineOf(const std::string& file, std::string_view beginning) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with(beginning))
      return line.substr(beginning.size());
  return std::nullopt;
}

int64_t systemBytes(const std::string& proc) {
  const auto line = lineOf(proc + "/meminfo", "MemAvailable:");
  if (!line)
    return INT64_MAX;
  const auto kilobytes = parseNumber(
      std::string_view(*line).substr(std::min(line->find_first_not_of(' '), line->size())));
  return kilobytes ? *kilobytes * 1024 : INT64_MAX;
}

/// What one group leaves; INT64_MAX where it has no limit ("max") or is none.
int64_t groupBytes(const std::string& folder) {
  const auto limit = lineOf(folder + "/memory.max", ""),
             used = lineOf(folder + "/memory.current", "");
  const auto most = limit ? parseNumber(*limit) : std::nullopt,
             taken = used ? parseNumber(*used) : std::nullopt;
  return most && taken ? std::max<int64_t>(0, *most - *taken) : INT64_MAX;
}

} // namespace

int64_t availableMemoryBytes(const std::string& proc, const std::string& controlGroups) {
  int64_t bytes = std::min(systemBytes(proc), groupBytes(controlGroups));
  // "0::/user.slice/job": a limit of any group above the process's own holds as well.
  std::string path = lineOf(proc + "/self/cgroup", "0::").value_or("");
  for (; path.size() > 1; path.resize(path.rfind('/')))
    bytes = std::min(bytes, groupBytes(controlGroups + path));
  return bytes;
}

} // namespace titan
