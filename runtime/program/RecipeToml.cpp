// The recipe as TOML: what users write, and --set key=value.
#include "runtime/program/RecipeSchema.h"
#include "runtime/program/TomlDocument.h"

namespace titan {

namespace {

using recipe::Json;
using recipe::Key;

// --- Writing ---

bool isBareKey(std::string_view key) {
  return !key.empty() &&
         key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789_-") == std::string_view::npos;
}

std::string quoted(const std::string& text) {
  // A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
  std::string string = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at; (at = string.find('\x7f')) != std::string::npos;)
    string.replace(at, 1, "\\u007F");
  return string;
}

std::string toTomlValue(const Json& value) {
  if (value.is_string())
    return quoted(value.get_ref<const std::string&>());
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& element : value)
      text += (text.size() > 1 ? ", " : "") + toTomlValue(element);
    return text + "]";
  }
  if (value.is_object()) {
    std::string text;
    for (const auto& [key, element] : value.items())
      text += fmt::format("{}{} = {}", text.empty() ? " " : ", ",
                          isBareKey(key) ? key : quoted(key), toTomlValue(element));
    return text.empty() ? "{}" : "{" + text + " }";
  }
  return value.dump(); // integers, booleans and floats, which always have a point or an exponent
}

void appendTables(std::string& text, const Key& key, const Json& list) {
  for (const Json& element : list) {
    text += fmt::format("\n[[{}]]\n", key.path());
    for (const auto& [name, value] : element.items())
      text += fmt::format("{} = {}\n", name, toTomlValue(value));
  }
}

std::string comment(const Key& key) {
  std::string text = fmt::format("# {}", key.doc);
  if (!key.choices.empty())
    text += fmt::format(" ({})", key.choices);
  if (key.runTime)
    text += " [run time]";
  return text + "\n";
}

// --- Assignments ---

constexpr std::string_view meshAxes = "mesh.axes", meshSync = "mesh.sync";

/// Is the key's value a table of entries, may it be one, or is it the list of mesh axes, whose
/// entries are their ranks?
bool hasEntries(const Key& key) {
  return key.path() == meshAxes || key.path() == meshSync || key.get(Recipe()).is_object();
}

/// The key that `path` names, and what follows it: "model.dims.seq" is entry "seq" of key
/// "model.dims".
std::pair<const Key*, std::string_view> findKeyAndEntry(std::string_view path) {
  if (const Key* key = recipe::findKey(path))
    return {key, {}};
  const size_t dot = path.find('.', path.find('.') + 1);
  if (dot == std::string_view::npos || path.find('.') == std::string_view::npos)
    return {nullptr, {}};
  const Key* key = recipe::findKey(path.substr(0, dot));
  if (!key || !hasEntries(*key))
    return {nullptr, {}};
  return {key, path.substr(dot + 1)};
}

Status assignOne(Recipe& recipe, const Key& key, std::string_view entry, const Json& value) {
  Json values = value;
  if (!entry.empty() && key.path() == meshAxes) {
    values = Json::object();
    for (const MeshAxis& axis : recipe.mesh.axes)
      values[axis.name] = axis.ranks;
    values[std::string(entry)] = value;
  } else if (!entry.empty()) {
    values = key.get(recipe);
    if (!values.is_object()) // one word for all is replaced
      values = Json::object();
    values[std::string(entry)] = value;
  }
  Json document = Json::object();
  document[std::string(key.section)][std::string(key.name)] = std::move(values);
  return recipe::assign(recipe, document);
}

} // namespace

Status recipe::assignToml(Recipe& recipe, std::string_view toml, std::string_view source) {
  const Json document = TITAN_TRY(parseToml(toml, source));
  if (Status status = assign(recipe, document); !status.ok())
    return status.takeError().withContext(std::string(source));
  return {};
}

Result<Recipe> parseRecipe(std::string_view toml, std::string_view source) {
  Recipe recipe;
  TITAN_TRY(recipe::assignToml(recipe, toml, source));
  return recipe;
}

Result<Recipe> readRecipe(const std::string& path) {
  return parseRecipe(TITAN_TRY(recipe::readText(path, "recipe")), path);
}

std::string toToml(const Recipe& recipe) {
  std::string text = "# Titan recipe. Keys marked [run time] can also be set when the job runs: "
                     "./job train --set key=value\n";
  const auto keys = recipe::keys();
  for (size_t begin = 0, end; begin < keys.size(); begin = end) {
    for (end = begin; end < keys.size() && keys[end].section == keys[begin].section;)
      ++end;
    const auto section = keys.subspan(begin, end - begin);
    text += fmt::format("\n[{}]\n", section.front().section);
    for (const Key& key : section)
      if (!key.tables)
        text += comment(key) + fmt::format("{} = {}\n", key.name, toTomlValue(key.get(recipe)));
    // Tables of their own come last: in TOML, what follows them would belong to them.
    for (const Key& key : section)
      if (key.tables) {
        text += fmt::format("# [[{}]] tables: {}\n", key.path(), key.doc);
        appendTables(text, key, key.get(recipe));
      }
  }
  return text;
}

Status setKey(Recipe& recipe, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return Error::usage("'{}' is not key=value", assignment);
  const std::string_view path = assignment.substr(0, equals), text = assignment.substr(equals + 1);
  const auto [key, entry] = findKeyAndEntry(path);
  if (!key)
    return recipe::unknownKey(path);

  const Result<Json> parsed = recipe::parseToml("value = " + std::string(text), path);
  const bool isValue = parsed.ok() && parsed->size() == 1;
  const Json word = std::string(text);
  Status status = assignOne(recipe, *key, entry, isValue ? (*parsed)["value"] : word);
  // A string key takes any text as it is, also `--set data.train=2024`.
  if (!status.ok() && isValue && assignOne(recipe, *key, entry, word).ok())
    return {};
  return status;
}

bool isRunTimeKey(std::string_view key) {
  const auto found = findKeyAndEntry(key).first;
  return found && found->runTime;
}

} // namespace titan
