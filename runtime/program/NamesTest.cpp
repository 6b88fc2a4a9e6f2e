#include "runtime/program/Names.h"

#include "runtime/program/Recipe.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(Names, WrapperSegmentsAreStripped) {
  EXPECT_EQ(stripWrapperSegments("_orig_mod.fc.weight"), "fc.weight");
  EXPECT_EQ(stripWrapperSegments("module._orig_mod.fc.weight"), "fc.weight");
  EXPECT_EQ(stripWrapperSegments("layers.0._fsdp_wrapped_module._checkpoint_wrapped_module.w"),
            "layers.0.w");
  EXPECT_EQ(stripWrapperSegments("submodule.fc.weight"), "submodule.fc.weight");
  EXPECT_EQ(stripWrapperSegments("_orig_mod.module.module.w"), "w");
  EXPECT_EQ(stripWrapperSegments("module"), "module");
  EXPECT_EQ(stripWrapperSegments(""), "");
}

TEST(Names, ModulesMayCallTheirChildrenLikeAWrapper) {
  EXPECT_EQ(stripWrapperSegments("module.layers.0.module.fc.weight"), "layers.0.module.fc.weight");
  EXPECT_EQ(stripWrapperSegments("layers.0.module._orig_mod.fc.weight"),
            "layers.0.module.fc.weight");
  EXPECT_EQ(stripWrapperSegments("module.layers.0.module.fc.weight", ModuleWraps::Anywhere),
            "layers.0.fc.weight");
}

TEST(Glob, Wildcards) {
  EXPECT_TRUE(matchesGlob("*.bias", "layers.0.fc.bias"));
  EXPECT_FALSE(matchesGlob("*.bias", "bias"));
  EXPECT_TRUE(matchesGlob("layers.?.w", "layers.1.w"));
  EXPECT_FALSE(matchesGlob("layers.?.w", "layers.10.w"));
  EXPECT_TRUE(matchesGlob("*a*b*", "xxaxxbxx"));
  EXPECT_TRUE(matchesGlob("", ""));
  EXPECT_TRUE(matchesGlob("**", ""));
  EXPECT_FALSE(matchesGlob("?", ""));
  EXPECT_FALSE(matchesGlob("fc", "fc.weight"));
}

TEST(Glob, Classes) {
  EXPECT_TRUE(matchesGlob("layers.[0-3].w", "layers.2.w"));
  EXPECT_FALSE(matchesGlob("layers.[0-3].w", "layers.4.w"));
  EXPECT_TRUE(matchesGlob("[!a-c]", "d"));
  EXPECT_FALSE(matchesGlob("[!a-c]", "b"));
  EXPECT_TRUE(matchesGlob("[]x]", "]"));
  EXPECT_TRUE(matchesGlob("[a-]", "-"));
  EXPECT_TRUE(matchesGlob("*[12]", "fc1"));
  EXPECT_TRUE(matchesGlob("a[b", "a[b"));
}

TEST(Glob, ManyStarsStayQuick) {
  std::string glob;
  for (int i = 0; i < 50; ++i)
    glob += "*a";
  EXPECT_FALSE(matchesGlob(glob + "b", std::string(5000, 'a')));
}

} // namespace
} // namespace titan
