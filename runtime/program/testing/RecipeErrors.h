// Recipes from their text, and what is wrong with them.
#pragma once

#include "runtime/program/Recipe.h"

#include <gtest/gtest.h>

namespace titan {

inline Recipe parsed(std::string_view toml) {
  auto recipe = parseRecipe(toml);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message();
  return recipe.ok() ? recipe.take() : Recipe();
}

/// The error of parsing, with "r.toml" for the file; empty: there is none.
inline std::string parseError(std::string_view toml) {
  const auto recipe = parseRecipe(toml, "r.toml");
  if (recipe.ok())
    return "";
  EXPECT_EQ(recipe.error().code(), ErrorCode::BadInput);
  return recipe.error().message();
}

/// The error of what parses; empty: there is none.
inline std::string validateError(std::string_view toml) {
  const Status status = validate(parsed(toml));
  return status.ok() ? "" : status.error().message();
}

} // namespace titan
