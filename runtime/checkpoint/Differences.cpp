// What differs between the run that wrote a checkpoint and the one that goes on from it.
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StrictJson.h"

#include <set>

namespace titan::checkpoint {
namespace {

constexpr const char* none = "none";

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

/// Without the axes of the mesh, which recipes have written in two ways: meshOf().
Json recipeOf(const ProgramInfo& program) {
  Json recipe = Json::parse(program.recipe, nullptr, /*allow_exceptions=*/false);
  if (!recipe.is_object())
    return Json::object();
  if (recipe.contains("mesh") && recipe["mesh"].is_object())
    recipe["mesh"].erase("axes");
  return recipe;
}

/// A checkpoint of version 1 says it in its recipe alone.
std::vector<MeshAxis> meshOf(const ProgramInfo& program) {
  if (!program.mesh.empty())
    return program.mesh;
  Result<Recipe> recipe = parseRecipeJson(program.recipe);
  return recipe.ok() ? recipe->mesh.axes : std::vector<MeshAxis>();
}

std::string textOf(const std::vector<MeshAxis>& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis.name, axis.ranks);
  return text;
}

/// Does a run on `target` make this choice? The process's choices have no device.
bool isChosenOn(const std::string& target, std::string_view routine) {
  const size_t dot = routine.find('.');
  return dot == std::string_view::npos || routine.substr(0, dot) == target;
}

/// As two texts, without what only one side knows.
std::pair<std::string, std::string> choicesOf(const std::string& routine, const Libraries& saved,
                                              const Libraries& current) {
  const auto before = saved.find(routine), now = current.find(routine);
  if (before == saved.end() || now == current.end()) {
    const bool isKnown = routine.find('.') != std::string::npos;
    if (!isKnown)
      return {};
    return {before == saved.end() ? none : before->second.library,
            now == current.end() ? none : now->second.library};
  }
  const bool known = !before->second.version.empty() && !now->second.version.empty();
  const auto text = [&](const LibraryChoice& choice) {
    const bool other = before->second.library != now->second.library;
    return (known || other) && !choice.version.empty() ? choice.library + " " + choice.version
                                                       : choice.library;
  };
  return {text(before->second), text(now->second)};
}

} // namespace

std::vector<std::string> describeDifferences(const ProgramInfo& saved, const ProgramInfo& current) {
  std::vector<std::string> notes;
  collectDifferences(recipeOf(saved), recipeOf(current), "", notes);
  const auto compare = [&](std::string_view what, const std::string& before,
                           const std::string& now) {
    if (before != now)
      notes.push_back(fmt::format("{} was '{}', is '{}': the bits of the continued run may differ",
                                  what, before, now));
  };
  compare("mesh", textOf(meshOf(saved)), textOf(meshOf(current)));
  compare("target", saved.target, current.target);
  compare("CPU", saved.cpu, current.cpu);
  compare("compiler", saved.compilerVersion, current.compilerVersion);
  if (!saved.kernels.empty() && !current.kernels.empty())
    compare("the kernels' digest", saved.kernels, current.kernels);
  Libraries routines = saved.libraries;
  routines.insert(current.libraries.begin(), current.libraries.end());
  for (const auto& [routine, unused] : routines) {
    if (!isChosenOn(current.target, routine))
      continue;
    const auto [before, now] = choicesOf(routine, saved.libraries, current.libraries);
    compare(routine, before, now);
  }
  return notes;
}

} // namespace titan::checkpoint
