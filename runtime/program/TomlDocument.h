// TOML text as JSON values: the one place that knows the TOML parser.
#pragma once

#include "runtime/program/Error.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace titan::recipe {

/// `source` names the text in errors: "recipe.toml:3:7: ...".
Result<nlohmann::ordered_json> parseToml(std::string_view text, std::string_view source);

/// The content of the file (or pipe) at `path`; `what` says in errors what it is, a "recipe".
Result<std::string> readText(const std::string& path, std::string_view what);

} // namespace titan::recipe
