// Recipes of any content, as TOML, JSON and --set: refused, or written to what reads back.
#include "runtime/program/Recipe.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  const std::string_view text(data, size);
  titan::Recipe recipe;
  (void)titan::setKey(recipe, text);
  (void)titan::parseRecipeJson(text);
  if (const auto parsed = titan::parseRecipe(text); parsed.ok()) {
    (void)titan::validate(*parsed);
    const auto again = titan::parseRecipe(titan::toToml(*parsed));
    const auto json = titan::parseRecipeJson(titan::toJson(*parsed));
    if (!again.ok() || *again != *parsed || !json.ok() || *json != *parsed)
      std::abort();
  }
  return 0;
}
