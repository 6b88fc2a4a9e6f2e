#include "runtime/device/cuda/testing/FakeLtSettings.h"

#include <charconv>
#include <cstdlib>
#include <functional>

namespace titan::cuda::testing {
namespace {

template <typename Number> bool parseNumber(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

/// "13.1.0"
bool parseVersion(std::string_view text, size_t& version) {
  version = 0;
  for (const size_t unit : {10000, 100, 1}) {
    const size_t point = std::min(text.find('.'), text.size());
    size_t part = 0;
    if (!parseNumber(text.substr(0, point), part))
      return false;
    version += part * unit;
    text.remove_prefix(std::min(point + 1, text.size()));
  }
  return text.empty();
}

} // namespace

bool FakeAlgorithms::parse(std::string_view text) {
  bits_ = text == "all" ? ~0u : 0;
  while (bits_ != ~0u && !text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    int number = 0;
    if (!parseNumber(text.substr(0, comma), number) || number < 0 ||
        number >= FakeLtSettings::algorithms)
      return false;
    bits_ |= 1u << number;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

Result<FakeLtSettings> FakeLtSettings::read() {
  FakeLtSettings settings;
  using Text = std::string_view;
  const std::pair<const char*, std::function<bool(Text)>> variables[] = {
      {"VERSION", [&](Text text) { return parseVersion(text, settings.version); }},
      {"START", [&](Text text) { return parseNumber(text, settings.start); }},
      {"REFUSE", [&](Text text) { return settings.refusing.parse(text); }},
      {"MISROUND", [&](Text text) { return settings.misrounding.parse(text); }},
      {"COARSE", [&](Text text) { return settings.coarse.parse(text); }},
      {"VARY", [&](Text text) { return settings.varying.parse(text); }},
      {"GREEDY", [&](Text text) { return settings.greedy.parse(text); }},
      {"CARELESS", [&](Text text) { return settings.careless.parse(text); }},
      {"NONE", [&](Text text) { return settings.knowsNothing = text == "1", true; }},
  };
  for (const auto& [suffix, take] : variables) {
    const std::string name = fmt::format("TITAN_FAKE_CUBLASLT_{}", suffix);
    const char* text = std::getenv(name.c_str());
    if (text && *text && !take(text))
      return Error::badInput("{} cannot be '{}'", name, text);
  }
  return settings;
}

} // namespace titan::cuda::testing
