// The recipe as JSON: the form that the compiled job carries.
#include "runtime/program/RecipeSchema.h"

namespace titan {

std::string toJson(const Recipe& recipe) {
  return recipe::toDocument(recipe).dump(-1, ' ', false, recipe::Json::error_handler_t::replace);
}

Result<Recipe> parseRecipeJson(std::string_view json) {
  const recipe::Json document =
      recipe::Json::parse(json, /*callback=*/nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return Error::badInput("the recipe's JSON cannot be parsed");
  Recipe recipe;
  TITAN_TRY(recipe::assign(recipe, document));
  return recipe;
}

} // namespace titan
