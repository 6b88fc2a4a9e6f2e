#include "runtime/job/Overrides.h"

#include <algorithm>

namespace titan {
namespace {

std::string_view keyOf(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

} // namespace

bool setsKey(const JobOptions& options, std::string_view key) {
  return std::ranges::any_of(
      options.set, [&](const std::string& assignment) { return keyOf(assignment) == key; });
}

Result<Recipe> recipeOfRun(const Program& program, const JobOptions& options) {
  Result<Recipe> compiled = parseRecipeJson(program.recipe);
  if (!compiled.ok())
    return Error::internal("the job's recipe cannot be read: {}", compiled.error().message());
  Recipe recipe = compiled.take();
  if (recipe.schedule.steps == 0)
    recipe.schedule.steps = recipe.train.steps;
  for (const std::string& assignment : options.set) {
    Recipe changed = recipe;
    TITAN_TRY(
        setKey(changed, assignment)); // first: it knows the unknown keys and the nearest known ones
    if (!isRunTimeKey(keyOf(assignment)))
      return Error::usage("{} is fixed when the job is compiled: compile it again with --set {}",
                          keyOf(assignment), assignment);
    recipe = std::move(changed);
  }
  if (options.command == JobCommand::Train && options.steps)
    recipe.train.steps = *options.steps;
  if (!options.data.empty()) {
    const bool training = options.command == JobCommand::Train ||
                          options.command == JobCommand::Profile ||
                          options.command == JobCommand::Compare;
    (training ? recipe.data.train : recipe.data.eval) = options.data;
  }
  TITAN_TRY(validate(recipe));
  return recipe;
}

} // namespace titan
