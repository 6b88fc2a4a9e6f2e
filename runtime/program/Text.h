// Small formatters and comparisons of text that messages and tables share.
#pragma once

#include "runtime/program/Program.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace titan {

/// "param", "buffer", "slot", "ema", "counter"
std::string_view nameOf(StateKind kind);
/// "forward", "backward", "update"
std::string_view nameOf(Phase phase);
/// "object", "cubin", "ptx"
std::string_view nameOf(Image::Kind kind);
/// What a command of the program does, for which modules: "loss of head"; "copy", "zero".
std::string labelOf(const Program& program, const Command& command);
/// "1.5 MiB"; exact below 1024 bytes: "96 B"
std::string readableBytes(int64_t bytes);
/// As a word of a shell's command line: in quotes where it needs them.
std::string shellQuoted(std::string_view word);
/// XXH3-128 as 32 hex digits, the canonical (big-endian) form that `xxhsum -H2` prints: finds
/// damage, is no protection against forgery.
std::string digest128(std::string_view bytes);
/// The number of insertions, deletions and substitutions between two words (Levenshtein).
size_t editDistance(std::string_view a, std::string_view b);
/// The element of `all`, which has some, whose name is the fewest such steps from `name`; the first
/// of equals.
template <typename List, typename NameOf = std::identity>
const auto& nearest(std::string_view name, const List& all, NameOf nameOf = {}) {
  return *std::ranges::min_element(
      all, {}, [&](const auto& each) { return editDistance(std::invoke(nameOf, each), name); });
}

} // namespace titan
