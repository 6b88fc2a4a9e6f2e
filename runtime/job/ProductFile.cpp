#include "runtime/job/ProductFile.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

} // namespace

std::string tuningFileOf(const std::string& executable) { return executable + ".tuning.json"; }

Status writeProducts(const std::string& path, const LibraryChoices& choices) {
  const Json json = {{"library", choices.library},
                     {"version", choices.version},
                     {"device", choices.device},
                     {"algorithms", choices.algorithms}};
  const std::string next = path + ".next";
  std::ofstream file(next, std::ios::binary);
  file << json.dump(2) << '\n';
  file.close();
  std::error_code error;
  if (file)
    std::filesystem::rename(next, path, error);
  if (!file || error)
    return Error::environment("cannot write '{}': {}", path,
                              error ? error.message() : std::strerror(errno));
  return {};
}

Result<std::optional<LibraryChoices>> readProducts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::optional<LibraryChoices>();
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&](const char* what) {
    return Error::badInput("'{}' is no file of product choices: {}: remove it, or run tune again",
                           path, what);
  };
  if (!json.is_object())
    return wrong("it is no JSON object");
  LibraryChoices choices;
  for (const auto& [key, member] : {std::pair("library", &LibraryChoices::library),
                                    {"version", &LibraryChoices::version},
                                    {"device", &LibraryChoices::device}}) {
    if (!json.contains(key) || !json[key].is_string())
      return wrong("it does not say for which library and device it is");
    choices.*member = json[key].get<std::string>();
  }
  if (!json.contains("algorithms") || !json["algorithms"].is_object())
    return wrong("it has no 'algorithms'");
  for (const auto& [product, algorithm] : json["algorithms"].items()) {
    if (!algorithm.is_string())
      return wrong("an algorithm is no text");
    choices.algorithms[product] = algorithm.get<std::string>();
  }
  return std::optional(std::move(choices));
}

} // namespace titan
