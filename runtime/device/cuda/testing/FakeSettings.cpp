#include "runtime/device/cuda/testing/FakeSettings.h"

#include <charconv>
#include <cstdlib>
#include <functional>

namespace titan::cuda::testing {
namespace {

template <typename Number> bool parse(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

/// "9.0"
bool parsePair(std::string_view text, int& first, int& second) {
  const size_t point = text.find('.');
  return point != text.npos && parse(text.substr(0, point), first) &&
         parse(text.substr(point + 1), second);
}

bool parseOrder(std::string_view text, ptx::Order& order) {
  if (text == "ascending")
    order = ptx::Order::Ascending;
  else if (text == "descending")
    order = ptx::Order::Descending;
  else if (text == "random")
    order = ptx::Order::Random;
  else
    return false;
  return true;
}

/// "cuLaunchKernel:3:700" or "cuLaunchKernel:3:kill"
bool parseFailure(std::string_view text, FakeSettings::Failure& failure) {
  const size_t first = text.find(':');
  const size_t second = first == text.npos ? text.npos : text.find(':', first + 1);
  if (second == text.npos)
    return false;
  failure.entry = text.substr(0, first);
  const std::string_view result = text.substr(second + 1);
  failure.kill = result == "kill";
  return parse(text.substr(first + 1, second - first - 1), failure.call) &&
         (failure.kill || parse(result, failure.result));
}

bool parseFailures(std::string_view text, std::vector<FakeSettings::Failure>& failures) {
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (!parseFailure(text.substr(0, comma), failures.emplace_back()))
      return false;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

} // namespace

Result<FakeSettings> FakeSettings::read() {
  FakeSettings settings;
  using Text = std::string_view;
  int major = 0, minor = 0;
  const std::pair<const char*, std::function<bool(Text)>> variables[] = {
      {"DEVICES", [&](Text text) { return parse(text, settings.devices); }},
      {"CAPABILITY",
       [&](Text text) {
         return parsePair(text, settings.capability.major, settings.capability.minor);
       }},
      {"VERSION",
       [&](Text text) {
         const bool good = parsePair(text, major, minor);
         settings.driverVersion = 1000 * major + 10 * minor;
         return good;
       }},
      {"MEMORY", [&](Text text) { return parse(text, settings.bytes); }},
      {"SHARED", [&](Text text) { return parse(text, settings.sharedBytes); }},
      {"ORDER", [&](Text text) { return parseOrder(text, settings.order); }},
      {"SEED", [&](Text text) { return parse(text, settings.seed); }},
      {"FAIL", [&](Text text) { return parseFailures(text, settings.failures); }},
      {"RECORD", [&](Text text) { return settings.record = text, true; }},
      {"PTX", [&](Text text) { return settings.ptx = text, true; }},
  };
  for (const auto& [suffix, take] : variables) {
    const std::string name = fmt::format("TITAN_FAKE_CUDA_{}", suffix);
    const char* text = std::getenv(name.c_str());
    if (text && *text && !take(text))
      return Error::badInput("{} cannot be '{}'", name, text);
  }
  return settings;
}

} // namespace titan::cuda::testing
