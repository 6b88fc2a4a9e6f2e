#include "runtime/checkpoint/Folders.h"

#include "runtime/program/ProgramFields.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <array>

namespace titan::checkpoint {
namespace {

struct Place {
  StateKind kind;
  std::string_view folder; ///< empty: the manifest
  bool ofProfile = false;  ///< the folder's name ends with the profile's
};

constexpr std::array places = {
    Place{StateKind::Param, modelFolder}, Place{StateKind::Buffer, modelFolder},
    Place{StateKind::Slot, "optimizer"},  Place{StateKind::Ema, "ema-", /*ofProfile=*/true},
    Place{StateKind::Counter, ""},
};

constexpr bool namesEveryKindOnce() {
  for (size_t i = 0; i < places.size(); ++i)
    if (static_cast<size_t>(places[i].kind) != i)
      return false;
  return places.size() == size_t{serialization::last(StateKind())} + 1;
}
static_assert(namesEveryKindOnce(), "a new kind of state needs its place in checkpoints");

const Place* placeOf(StateKind kind) {
  const auto found = std::find_if(places.begin(), places.end(),
                                  [&](const Place& place) { return place.kind == kind; });
  return found == places.end() ? nullptr : &*found;
}

int positionOf(std::string_view folder) {
  const auto found = std::find_if(places.begin(), places.end(),
                                  [&](const Place& place) { return place.folder == folder; });
  return static_cast<int>(found - places.begin());
}

} // namespace

Folder folderOfModel() { return {positionOf(modelFolder), modelFolder, {}}; }

Result<std::optional<Folder>> folderOf(StateKind kind, std::string_view profile) {
  const Place* place = placeOf(kind);
  if (!place)
    return Error::internal("kind {} has no place in a checkpoint", static_cast<int>(kind));
  if (place->ofProfile ? !isProfileName(profile) : !profile.empty())
    return Error::internal("kind '{}' with profile '{}' has no place in a checkpoint", nameOf(kind),
                           profile);
  if (place->folder.empty())
    return std::optional<Folder>();
  return std::optional(Folder{positionOf(place->folder),
                              fmt::format("{}{}", place->folder, profile), std::string(profile)});
}

std::optional<StateKind> kindNamed(std::string_view name) {
  for (const Place& place : places)
    if (nameOf(place.kind) == name)
      return place.kind;
  return std::nullopt;
}

bool hasProfile(StateKind kind) {
  const Place* place = placeOf(kind);
  return place && place->ofProfile;
}

} // namespace titan::checkpoint
