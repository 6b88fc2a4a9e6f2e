// The table of all recipe keys. Parsing (TOML, JSON, --set), writing (TOML with comments, JSON),
// error texts and run-time keys are all derived from it; a new key is one line in RecipeSchema.cpp.
//
// JSON values are the common form: TOML is translated to them first, so that each type is read by
// one function.
#pragma once

#include "runtime/program/Recipe.h"

#include <nlohmann/json.hpp>

#include <span>

namespace titan::recipe {

/// Keeps keys in the order they were put in.
using Json = nlohmann::ordered_json;

struct Key {
  std::string_view section; ///< "optimizer"
  std::string_view name;    ///< "lr"
  std::string_view type;    ///< "a number", for errors
  std::string_view doc;     ///< one line
  std::string_view choices; ///< the known values, "sgd | adam | adamw"; empty: any
  bool runTime;             ///< may be overridden when a job runs
  bool tables;              ///< TOML: [[section.name]] tables
  Status (*set)(Recipe& recipe, const Json& value, const std::string& path);
  Json (*get)(const Recipe& recipe);

  /// "optimizer.lr"
  std::string path() const { return std::string(section) + "." + std::string(name); }
};

/// Every key, in the order of the README's table; the keys of a section stand together.
std::span<const Key> keys();
/// The key of "optimizer.lr"; nullptr when there is none.
const Key* findKey(std::string_view path);
/// "unknown key 'optimizer.lrr'; did you mean 'optimizer.lr'?"
Error unknownKey(std::string_view path);
/// "unknown table [optimzer]; did you mean [optimizer]?"
Error unknownSection(std::string_view section);
/// Is `value` one of `choices` ("a | b | c")?
bool isChoice(std::string_view choices, std::string_view value);

/// Sets all keys that `document` ({"optimizer": {"lr": ...}}) holds and then the defaults that
/// depend on others.
Status assign(Recipe& recipe, const Json& document);
/// The same of TOML; `source` names the text in errors.
Status assignToml(Recipe& recipe, std::string_view toml, std::string_view source);
/// The whole recipe as {"section": {"key": value}}.
Json toDocument(const Recipe& recipe);

} // namespace titan::recipe
