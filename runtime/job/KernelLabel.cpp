#include "runtime/job/KernelLabel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace titan {
namespace {

constexpr std::string_view pathsSeparator = " : ";

/// "gemm [64, 256, 784] B^T" of "gemm [64, 256, 784] B^T : hidden.0.linear".
std::string_view descriptionOf(std::string_view label) {
  return label.substr(0, label.find(pathsSeparator));
}

std::vector<std::string_view> pathsOf(std::string_view label) {
  std::vector<std::string_view> paths;
  const size_t separator = label.find(pathsSeparator);
  if (separator == std::string_view::npos)
    return paths;
  for (size_t at = separator + pathsSeparator.size(); at < label.size();) {
    const size_t end = std::min(label.find(", ", at), label.size());
    paths.push_back(label.substr(at, end - at));
    at = end + 2;
  }
  return paths;
}

/// "blocks.*.norm_1" of "blocks.3.norm_1".
std::string withoutNumbers(std::string_view path) {
  std::string module;
  for (size_t part = 0; part <= path.size();) {
    const size_t dot = std::min(path.find('.', part), path.size());
    const std::string_view word = path.substr(part, dot - part);
    const bool number = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    module += part == 0 ? "" : ".";
    module += number ? "*" : word;
    part = dot + 1;
  }
  return module;
}

/// Does one of the words of `text`, which anything but letters parts, begin like this?
bool hasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (at == 0 || !std::isalpha(static_cast<unsigned char>(text[at - 1])))
      return true;
  return false;
}

/// A module path that is called as norms are: norm_1, ln_f, input_layernorm, rms.
bool isNorm(std::string_view path) {
  const std::string_view last = path.substr(path.rfind('.') + 1);
  return last.find("norm") != std::string_view::npos || hasWord(last, "ln") || hasWord(last, "rms");
}

} // namespace

std::string groupOf(const ProfileRow& row) {
  const std::string_view description = descriptionOf(row.label);
  if (row.kind == CommandKind::Copy || row.kind == CommandKind::Zero)
    return "copies";
  if (row.kind == CommandKind::CollectiveStart || row.kind == CommandKind::CollectiveWait)
    return "collectives";
  if (row.phase == Phase::Update)
    return "optimizer";
  if (description.starts_with("gemm"))
    return "products";
  for (const char* routine : {"attention", "embedding", "recurrence", "scatter", "top_k"})
    if (description.starts_with(routine))
      return routine;
  const std::vector<std::string> modules = modulesOf(row.label);
  if (std::ranges::find(modules, "loss") != modules.end())
    return "loss";
  if (std::ranges::any_of(modules, isNorm))
    return "norms";
  return "elementwise";
}

std::vector<std::string> modulesOf(const std::string& label) {
  std::vector<std::string> modules;
  for (std::string_view path : pathsOf(label))
    if (std::string module = withoutNumbers(path);
        std::ranges::find(modules, module) == modules.end())
      modules.push_back(std::move(module));
  return modules;
}

std::string shortLabel(const std::string& label) {
  const std::vector<std::string_view> paths = pathsOf(label);
  std::map<std::string, int> layers;
  for (std::string_view path : paths)
    ++layers[withoutNumbers(path)];
  std::vector<std::string> names;
  for (std::string_view path : paths) {
    std::string module = withoutNumbers(path);
    std::string name = layers[module] > 1 ? std::move(module) : std::string(path);
    if (std::ranges::find(names, name) == names.end())
      names.push_back(std::move(name));
  }
  return fmt::format("{}{}{}", descriptionOf(label), names.empty() ? "" : pathsSeparator,
                     fmt::join(names, ", "));
}

} // namespace titan
