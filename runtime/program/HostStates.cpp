#include "runtime/program/HostStates.h"

#include "runtime/program/Recipe.h"

#include <algorithm>

namespace titan {

bool keepsAveragesOnHost(const Recipe& recipe, std::string_view kind) {
  return recipe.ema.device == "host" && kind != "cpu";
}

std::vector<ArenaRange> hostRanges(const Program& program) {
  const Result<Recipe> recipe = parseRecipeJson(program.recipe);
  if (!recipe.ok() || !keepsAveragesOnHost(*recipe, program.target.kind))
    return {};
  std::vector<const State*> states;
  for (const State& state : program.states)
    states.push_back(&state);
  std::ranges::sort(states, {}, &State::offset);
  std::vector<ArenaRange> ranges;
  for (size_t i = 0; i < states.size(); ++i) {
    const State& state = *states[i];
    if (state.kind != StateKind::Ema)
      continue;
    const int64_t end = i + 1 < states.size()
                            ? states[i + 1]->offset
                            : std::max(program.stateBytes, state.offset + state.bytes);
    if (ranges.empty() || ranges.back().offset + ranges.back().bytes < state.offset)
      ranges.push_back({state.offset, 0});
    ranges.back().bytes = end - ranges.back().offset;
  }
  return ranges;
}

int64_t hostBytes(const Program& program) {
  int64_t bytes = 0;
  for (const ArenaRange& range : hostRanges(program))
    bytes += range.bytes;
  return bytes;
}

int64_t deviceBytes(const Program& program) { return program.arenaBytes - hostBytes(program); }

} // namespace titan
