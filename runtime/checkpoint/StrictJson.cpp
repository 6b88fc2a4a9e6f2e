#include "runtime/checkpoint/StrictJson.h"

#include <optional>
#include <set>

namespace titan::checkpoint {
namespace {

constexpr int maxDepth = 16;
constexpr size_t maxRank = 64;

Result<const Json*> field(const Json& json, std::string_view key,
                          bool (Json::*isType)() const noexcept, std::string_view type) {
  const auto found = json.find(key);
  if (found == json.end())
    return Error::badInput("no field '{}'", key);
  if (!((*found).*isType)())
    return Error::badInput("field '{}' is {}, not {}", key, found->type_name(), type);
  return &*found;
}

bool fitsInt64(const Json& json) {
  return json.is_number_integer() &&
         (!json.is_number_unsigned() || json.get<uint64_t>() <= uint64_t{INT64_MAX});
}

} // namespace

Result<Json> parseJsonObject(std::string_view text, std::string_view what) {
  std::vector<std::set<std::string>> keys;
  std::optional<std::string> problem;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (problem)
      return false;
    if (depth > maxDepth)
      problem = fmt::format("nests deeper than {}", maxDepth);
    else if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key &&
             !keys.back().insert(parsed.get_ref<const std::string&>()).second)
      problem = fmt::format("names '{}' twice", parsed.get_ref<const std::string&>());
    return !problem;
  };
  Json json = Json::parse(text, check, /*allow_exceptions=*/false);
  if (problem)
    return Error::badInput("{} {}", what, *problem);
  if (json.is_discarded())
    return Error::badInput("{} is not valid JSON", what);
  if (!json.is_object())
    return Error::badInput("{} is not a JSON object", what);
  return json;
}

Result<const Json*> objectField(const Json& json, std::string_view key) {
  return field(json, key, &Json::is_object, "an object");
}

Result<const Json*> arrayField(const Json& json, std::string_view key) {
  return field(json, key, &Json::is_array, "a list");
}

Result<std::string> stringField(const Json& json, std::string_view key) {
  return TITAN_TRY(field(json, key, &Json::is_string, "a string"))->get<std::string>();
}

Result<int64_t> integerField(const Json& json, std::string_view key) {
  const Json* value = TITAN_TRY(field(json, key, &Json::is_number_integer, "an integer"));
  if (!fitsInt64(*value))
    return Error::badInput("field '{}' is too large", key);
  return value->get<int64_t>();
}

Result<bool> booleanField(const Json& json, std::string_view key) {
  return TITAN_TRY(field(json, key, &Json::is_boolean, "true or false"))->get<bool>();
}

Result<std::vector<std::string>> stringsField(const Json& json, std::string_view key) {
  std::vector<std::string> strings;
  for (const Json& item : *TITAN_TRY(arrayField(json, key))) {
    if (!item.is_string())
      return Error::badInput("field '{}' holds {}, not strings only", key, item.type_name());
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

Result<std::map<std::string, std::string>> stringMapField(const Json& json, std::string_view key) {
  std::map<std::string, std::string> map;
  for (const auto& [name, value] : TITAN_TRY(objectField(json, key))->items()) {
    if (!value.is_string())
      return Error::badInput("field '{}': '{}' is {}, not a string", key, name, value.type_name());
    map[name] = value.get<std::string>();
  }
  return map;
}

Result<Shape> extentsField(const Json& json, std::string_view key) {
  const Json* list = TITAN_TRY(arrayField(json, key));
  if (list->size() > maxRank)
    return Error::badInput("field '{}' has {} extents, at most {} are allowed", key, list->size(),
                           maxRank);
  Shape extents;
  for (const Json& extent : *list) {
    if (!extent.is_number_unsigned() || !fitsInt64(extent))
      return Error::badInput("field '{}' holds {}, which is no size", key,
                             extent.is_number() ? extent.dump() : extent.type_name());
    extents.push_back(extent.get<int64_t>());
  }
  return extents;
}

std::string jsonString(std::string_view text) {
  return Json(text).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

} // namespace titan::checkpoint
