// Which states of a program for a card lie in the host's memory: averages, where `ema.device` says
// so. The arena is one range of offsets all the same.
#pragma once

#include "runtime/program/Program.h"

#include <vector>

namespace titan {

struct Recipe;

/// Of a recipe for `kind` of target ("cpu", "cuda"). A CPU has no other memory.
bool keepsAveragesOnHost(const Recipe& recipe, std::string_view kind);

/// Bytes of the arena, padding behind them included.
struct ArenaRange {
  int64_t offset = 0, bytes = 0;
};

/// Where these states are, in rising order. `program` has been verified.
std::vector<ArenaRange> hostRanges(const Program& program);
/// What of Program::arenaBytes lies there.
int64_t hostBytes(const Program& program);
/// The rest of it, which is the device's.
int64_t deviceBytes(const Program& program);

} // namespace titan
