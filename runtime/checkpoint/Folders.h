// Where a checkpoint keeps the states of each kind. This is the only list of kinds: writing,
// loading, verifying, comparing and preflight group states by it.
//
//   param, buffer   model/
//   slot            optimizer/
//   ema             ema-<profile>/, one folder a profile
//   counter         manifest.json
//
// Keys in the files are the bare names, so a name occurs once in each folder.
#pragma once

#include "runtime/program/Names.h"
#include "runtime/program/Program.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace titan::checkpoint {

inline constexpr const char* modelFolder = "model";

/// Ordered as folders are written and loaded: model, optimizer, ema by profile.
struct Folder {
  int position = 0;
  std::string name;
  std::string profile; ///< of its states, where they have one
  auto operator<=>(const Folder&) const = default;

  /// How messages name a state of the folder: "fc.weight", of an average "ema-slow/fc.weight",
  /// which the parameter's name alone does not tell.
  std::string shown(std::string_view state) const {
    return profile.empty() ? std::string(state) : fmt::format("{}/{}", name, state);
  }
};

/// The folder of parameters and buffers, which every checkpoint has.
Folder folderOfModel();

/// Nothing: the state is kept in the manifest. Internal: a kind without a place, or a profile that
/// the kind does not have or that is no profile's name.
Result<std::optional<Folder>> folderOf(StateKind kind, std::string_view profile);

/// The kind of that name ("param"), or nothing.
std::optional<StateKind> kindNamed(std::string_view name);

/// Has each state of the kind a profile?
bool hasProfile(StateKind kind);

template <typename Item> using ByFolder = std::map<Folder, std::vector<const Item*>>;

/// `items` in their order, by folder; those that the manifest keeps are left out. `entryOf(item)`
/// has members name, kind and profile. Internal, as folderOf.
template <typename Item, typename EntryOf>
Result<ByFolder<Item>> byFolder(const std::vector<Item>& items, EntryOf entryOf) {
  ByFolder<Item> folders;
  for (const Item& item : items) {
    const auto& entry = entryOf(item);
    auto folder = folderOf(entry.kind, entry.profile);
    if (!folder.ok())
      return folder.takeError().withContext(fmt::format("state '{}'", entry.name));
    if (*folder)
      folders[std::move(**folder)].push_back(&item);
  }
  return folders;
}
template <typename Item> Result<ByFolder<Item>> byFolder(const std::vector<Item>& items) {
  return byFolder(items, [](const Item& item) -> const Item& { return item; });
}

} // namespace titan::checkpoint
