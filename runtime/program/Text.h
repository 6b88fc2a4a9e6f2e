// Small formatters and comparisons of text that messages and tables share.
#pragma once

#include "runtime/program/Program.h"

#include <string>
#include <string_view>

namespace titan {

/// "param", "buffer", "slot", "ema", "counter"
std::string_view nameOf(StateKind kind);
/// "1.5 MiB"; exact below 1024 bytes: "96 B"
std::string readableBytes(int64_t bytes);
/// The number of insertions, deletions and substitutions between two words (Levenshtein).
size_t editDistance(std::string_view a, std::string_view b);

} // namespace titan
