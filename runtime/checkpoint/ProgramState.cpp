// Between a compiled Program with its arena and what the checkpoint layer takes.
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/StrictJson.h"

#include <cstring>
#include <set>

namespace titan::checkpoint {
namespace {

/// What belongs to a tied parameter (a slot "<parameter>.exp_avg", an average "<parameter>") may
/// have been saved under any of the parameter's names.
std::vector<std::string> aliasesOfOwner(const Program& program, const State& owned) {
  for (const State& state : program.states) {
    const bool owns = owned.kind == StateKind::Slot ? owned.name.starts_with(state.name + ".")
                                                    : owned.name == state.name;
    if (state.kind != StateKind::Param || !owns)
      continue;
    std::vector<std::string> aliases;
    for (const std::string& alias : state.aliases)
      aliases.push_back(alias + owned.name.substr(state.name.size()));
    return aliases;
  }
  return {};
}

TableEntry entryOf(const Program& program, const State& state) {
  TableEntry entry{state.name,      state.kind,    state.profile,    state.dtype,       state.shape,
                   state.trainable, state.aliases, state.sourceName, state.sourceLayout};
  const bool owned = state.kind == StateKind::Slot || state.kind == StateKind::Ema;
  if (owned && entry.aliases.empty())
    entry.aliases = aliasesOfOwner(program, state);
  return entry;
}

void collectDifferences(const Json& saved, const Json& current, const std::string& prefix,
                        std::vector<std::string>& notes) {
  std::set<std::string> keys;
  for (const Json* side : {&saved, &current})
    for (const auto& [key, value] : side->items())
      keys.insert(key);
  for (const std::string& key : keys) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const Json& before = saved.contains(key) ? saved.at(key) : Json();
    const Json& now = current.contains(key) ? current.at(key) : Json();
    if (before == now)
      continue;
    if (before.is_object() && now.is_object())
      collectDifferences(before, now, path, notes);
    else
      notes.push_back(fmt::format("{} was {}, is {}", path, before.dump(), now.dump()));
  }
}

Json recipeOf(const ProgramInfo& program) {
  Json recipe = Json::parse(program.recipe, nullptr, /*allow_exceptions=*/false);
  return recipe.is_object() ? recipe : Json::object();
}

} // namespace

std::vector<TensorView> tensors(const Program& program, const char* arena) {
  std::vector<TensorView> views;
  for (const State& state : program.states)
    if (state.kind != StateKind::Counter)
      views.push_back(
          {state.name, state.kind, state.profile, state.dtype, state.shape, arena + state.offset});
  return views;
}

Counters counters(const Program& program, const char* arena) {
  Counters counters;
  for (const State& state : program.states)
    if (state.kind == StateKind::Counter)
      std::memcpy(&counters[state.name], arena + state.offset, sizeof(int64_t));
  return counters;
}

std::vector<Destination> destinations(const Program& program, char* arena) {
  std::vector<Destination> destinations;
  for (const State& state : program.states)
    destinations.push_back({entryOf(program, state), arena + state.offset});
  return destinations;
}

ProgramInfo describe(const Program& program, std::map<std::string, std::string> libraries,
                     std::string recipe) {
  ProgramInfo info;
  info.fingerprint = fingerprint(program);
  info.optimizer = program.optimizer;
  info.model = program.model;
  info.recipe = recipe.empty() ? program.recipe : std::move(recipe);
  info.target = program.target.kind;
  info.cpu = program.target.cpu;
  info.compilerVersion = program.compilerVersion;
  info.libraries = std::move(libraries);
  for (const State& state : program.states)
    info.table.push_back(entryOf(program, state));
  return info;
}

std::vector<std::string> describeDifferences(const ProgramInfo& saved, const ProgramInfo& current) {
  std::vector<std::string> notes;
  collectDifferences(recipeOf(saved), recipeOf(current), "", notes);
  const auto compare = [&](std::string_view what, const std::string& before,
                           const std::string& now) {
    if (before != now)
      notes.push_back(fmt::format("{} was '{}', is '{}': the bits of the continued run may differ",
                                  what, before, now));
  };
  compare("target", saved.target, current.target);
  compare("CPU", saved.cpu, current.cpu);
  compare("compiler", saved.compilerVersion, current.compilerVersion);
  std::map<std::string, std::string> libraries = saved.libraries;
  libraries.insert(current.libraries.begin(), current.libraries.end());
  const auto choice = [](const ProgramInfo& info, const std::string& library) {
    const auto found = info.libraries.find(library);
    return found == info.libraries.end() ? std::string("none") : found->second;
  };
  for (const auto& [library, unused] : libraries)
    compare(library, choice(saved, library), choice(current, library));
  return notes;
}

} // namespace titan::checkpoint
