// Where titan-compile writes text: a stage, a report, a recipe.
#pragma once

#include "runtime/program/Error.h"

#include <string>
#include <string_view>

namespace titan {

/// Writes `text` to `path` (stdout when empty or "-"). A regular file is there whole or not at all;
/// a device or a pipe is written to. Environment names path and cause.
Status writeOutput(const std::string& path, std::string_view text);

} // namespace titan
