// JSON from untrusted files: no duplicate keys, bounded depth, no exceptions; typed access that
// names the field.
#pragma once

#include "runtime/program/DType.h"
#include "runtime/program/Error.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace titan::checkpoint {

using Json = nlohmann::json;

/// `text` must hold one object and nothing else; `what` names it in errors.
Result<Json> parseJsonObject(std::string_view text, std::string_view what);

/// Members of an object, by type; BadInput names the field that is missing or of another type.
Result<const Json*> objectField(const Json& json, std::string_view key);
Result<const Json*> arrayField(const Json& json, std::string_view key);
Result<std::string> stringField(const Json& json, std::string_view key);
Result<int64_t> integerField(const Json& json, std::string_view key);
Result<bool> booleanField(const Json& json, std::string_view key);
Result<std::vector<std::string>> stringsField(const Json& json, std::string_view key);
Result<std::map<std::string, std::string>> stringMapField(const Json& json, std::string_view key);
/// A list of at most 64 non-negative integers.
Result<Shape> extentsField(const Json& json, std::string_view key);

/// `text` as a JSON string, with quotes. Bytes that are not UTF-8 become U+FFFD.
std::string jsonString(std::string_view text);

} // namespace titan::checkpoint
