#include "compiler/Support/RecipeAttribute.h"

#include "dialects/Titan/Titan.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan;

namespace {

class RecipeAttribute : public ::testing::Test {
protected:
  RecipeAttribute() {
    context.loadDialect<ir::TitanDialect>();
    context.getDiagEngine().registerHandler([&](Diagnostic& diagnostic) {
      message = diagnostic.str();
      return success();
    });
  }
  /// The module, printed and parsed again.
  OwningOpRef<ModuleOp> reparse(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream out(text);
    module.print(out);
    return parseSourceString<ModuleOp>(text, &context);
  }

  MLIRContext context;
  std::string message;
};

TEST_F(RecipeAttribute, PrintedModuleCarriesTheWholeRecipe) {
  Recipe recipe;
  recipe.model.dims = {{"seq", 256}};
  recipe.model.frozen = {"layers.0.*", "odd \"name\""};
  recipe.optimizer.lr = 0.1;
  recipe.optimizer.eps = 1e-8;
  recipe.optimizer.groups = {{"*.weight", 0.5, 0.3}, {"*", 2.0, std::nullopt}};
  recipe.batch.micro = 4;
  recipe.batch.global = 64;
  recipe.data.std = {0.25};
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  setRecipe(*module, recipe);
  FailureOr<Recipe> read = getRecipe(*reparse(*module));
  ASSERT_TRUE(succeeded(read)) << message;
  EXPECT_EQ(*read, recipe);
}

TEST_F(RecipeAttribute, WithoutARecipeTheDefaultsHold) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  FailureOr<Recipe> read = getRecipe(*module);
  ASSERT_TRUE(succeeded(read));
  EXPECT_EQ(*read, Recipe());
}

TEST_F(RecipeAttribute, UnknownKeyAndBadValueAreErrors) {
  auto read = [&](StringRef recipe) {
    auto module = parseSourceString<ModuleOp>(
        ("module attributes {titan.recipe = " + recipe + "} {}").str(), &context);
    return getRecipe(*module);
  };
  EXPECT_TRUE(failed(read("{batch = {mikro = 4 : i64}}")));
  EXPECT_NE(message.find("mikro"), std::string::npos) << message;
  EXPECT_TRUE(failed(read("{batch = {micro = 4 : i64, global = 6 : i64}}")));
  EXPECT_NE(message.find("batch.global = 6"), std::string::npos) << message;
}

} // namespace
