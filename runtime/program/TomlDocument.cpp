#include "runtime/program/TomlDocument.h"

#include <stdexcept>

// toml++ 3.3 violates its own assertions on some malformed texts ("[[["): in a debug build it
// aborts, in a release build it tells the compiler that they hold. Here they are exceptions, in
// both.
namespace {
inline void require(bool holds) {
  if (!holds)
    throw std::runtime_error("malformed TOML");
}
} // namespace
#undef NDEBUG
#define TOML_ASSERT(expr) ::require(static_cast<bool>(expr))
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace titan::recipe {

namespace {

using Json = nlohmann::ordered_json;

Json toJson(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table)
      object[std::string(key.str())] = toJson(value);
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& element : *array)
      list.push_back(toJson(element));
    return list;
  }
  if (const auto* value = node.as_string())
    return value->get();
  if (const auto* value = node.as_integer())
    return value->get();
  if (const auto* value = node.as_floating_point())
    return value->get();
  if (const auto* value = node.as_boolean())
    return value->get();
  return Json(); // dates and times: no key takes null, so they are refused as a wrong type
}

} // namespace

Result<Json> parseToml(std::string_view text, std::string_view source) {
  try {
    return toJson(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return Error::badInput("{}:{}:{}: {}", source, error.source().begin.line,
                           error.source().begin.column, error.description());
  } catch (const std::exception& error) {
    return Error::badInput("{}: {}", source, error.what());
  }
}

} // namespace titan::recipe
