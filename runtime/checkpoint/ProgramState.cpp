// Between a compiled Program with its state and what the checkpoint layer takes.
#include "runtime/checkpoint/Load.h"
#include "runtime/program/Text.h"

#include <algorithm>
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
  TableEntry entry{state.name,  state.kind,      state.profile, state.dtype,
                   state.shape, state.trainable, state.aliases, state.sources};
  const bool owned = state.kind == StateKind::Slot || state.kind == StateKind::Ema;
  if (owned && entry.aliases.empty())
    entry.aliases = aliasesOfOwner(program, state);
  return entry;
}

/// The row of what the folder of a profile has once more.
TableEntry copyOf(TableEntry row, const std::string& profile) {
  row.kind = StateKind::Ema;
  row.profile = profile;
  row.trainable = false;
  row.sources.clear();
  row.isCopy = true;
  return row;
}

bool isFirst(std::span<const int64_t> coordinates) {
  return std::ranges::all_of(coordinates, [](int64_t coordinate) { return coordinate == 0; });
}

/// Of the ranks that have the same box, is this the one at coordinate 0 of all axes that cut
/// nothing?
bool isFirstReplica(const Placement& placement, std::span<const int64_t> coordinates) {
  for (size_t axis = 0; axis < coordinates.size(); ++axis)
    if (coordinates[axis] != 0 &&
        std::ranges::none_of(placement, [&](const Cut& cut) { return cut.axis == axis; }))
      return false;
  return true;
}

/// Of the code of all images; empty where the program names none.
std::string kernelsDigest(const Program& program) {
  std::string digests;
  for (const Image& image : program.images)
    digests += image.digest;
  return digests.empty() ? digests : digest128(digests);
}

} // namespace

std::vector<SavedState> savedStates(const Program& program) {
  std::vector<SavedState> saved;
  std::set<std::string> profiles;
  std::set<std::pair<std::string_view, std::string_view>> averages; // profile and name
  for (const State& state : program.states) {
    if (state.kind != StateKind::Counter)
      saved.push_back({&state, {}});
    if (state.kind == StateKind::Ema) {
      profiles.insert(state.profile);
      averages.emplace(state.profile, state.name);
    }
  }
  for (const std::string& profile : profiles)
    for (const State& state : program.states)
      if ((state.kind == StateKind::Param || state.kind == StateKind::Buffer) &&
          !averages.contains({profile, state.name}))
        saved.push_back({&state, profile});
  return saved;
}

TensorView viewOf(const SavedState& saved, std::span<const MeshAxis> mesh,
                  std::span<const int64_t> coordinates) {
  const State& state = *saved.state;
  const Part part = partOf(state, mesh, coordinates);
  const bool isWhole = part.isWholeOf(state.shape);
  // Without elements there are no boxes: rank 0 names the tensor.
  const bool isEmpty = elementCount(state.shape) == 0;
  return {state.name,
          saved.copyFor.empty() ? state.kind : StateKind::Ema,
          saved.copyFor.empty() ? state.profile : saved.copyFor,
          state.dtype,
          state.shape,
          {},
          isWhole || isEmpty ? std::nullopt : std::optional(part.box),
          isFirstReplica(state.placement, coordinates) &&
              (isEmpty ? isFirst(coordinates) : part.elements() > 0)};
}

std::vector<TensorView> tensors(StateAccess& access) {
  std::vector<TensorView> views;
  for (const SavedState& saved : savedStates(access.program())) {
    views.push_back(viewOf(saved, access.program().mesh, access.coordinates()));
    views.back().source = access.valid(*saved.state);
  }
  return views;
}

Result<Counters> counters(StateAccess& access) {
  Counters counters;
  for (const State& state : access.program().states)
    if (state.kind == StateKind::Counter) {
      int64_t& value = counters[state.name];
      TITAN_TRY(access.read(placeOf(state), 0, {reinterpret_cast<char*>(&value), sizeof value}));
    }
  return counters;
}

std::vector<Destination> destinations(StateAccess& access) {
  std::vector<Destination> destinations;
  for (const State& state : access.program().states)
    destinations.push_back(
        {entryOf(access.program(), state), access.sink(placeOf(state)), state.placement});
  return destinations;
}

ProgramInfo describe(const Program& program, Libraries libraries, const Recipe& recipe) {
  ProgramInfo info;
  info.fingerprint = fingerprint(program);
  info.optimizer = program.optimizer;
  info.model = program.model;
  info.recipe = toJson(recipe);
  info.target = program.target.kind;
  info.cpu = program.target.cpu;
  info.compilerVersion = program.compilerVersion;
  info.kernels = kernelsDigest(program);
  info.libraries = std::move(libraries);
  info.mesh = recipe.mesh.axes;
  for (const State& state : program.states)
    info.table.push_back(entryOf(program, state));
  for (const SavedState& saved : savedStates(program))
    if (!saved.copyFor.empty())
      info.table.push_back(copyOf(entryOf(program, *saved.state), saved.copyFor));
  return info;
}

} // namespace titan::checkpoint
