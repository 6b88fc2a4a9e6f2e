#include "frontend/nn/Builder.h"
#include "frontend/nn/Layers.h"
#include "frontend/nn/Models.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace titan::nn {
namespace {

Recipe fresh() {
  Recipe recipe;
  recipe.model.init = "fresh";
  recipe.batch.micro = recipe.batch.global = 2;
  return recipe;
}

std::string refusal(const ModelFunction& build, const Recipe& recipe = fresh()) {
  MLIRContext context;
  auto module = buildModule(context, "m", recipe, build);
  if (module.ok())
    return "";
  EXPECT_EQ(module.error().code(), ErrorCode::BadInput);
  return module.error().message();
}

/// The refusal of a layer on an input of f32 of shape [2, sample...], in the scope "a.b".
std::string refusalOf(const Shape& sample, const std::function<Tensor(Scope, Tensor)>& layer) {
  return refusal([&](Model& model) {
    Tensor x = model.input("x", DType::F32, sample);
    model.output("y", layer(model.root().child("a").child("b"), x));
  });
}

TEST(Builder, ShapesThatDoNotFitAreNamedWithThePath) {
  struct {
    Shape sample;
    std::function<Tensor(Scope, Tensor)> layer;
    std::string_view says;
  } cases[] = {
      {{3},
       [](Scope s, Tensor x) { return add(s, x, linear(s, x, 4)); },
       "add of [2, 3] and [2, 4]: shapes must be equal, or the second the end of the first"},
      {{3}, [](Scope s, Tensor x) { return linear(s, x, 0); }, "linear to 0 outputs"},
      {{3},
       [](Scope s, Tensor x) { return project(s, x, s.parameter("w", {5, 4}, Init::ones())); },
       "projection of [2, 3] by a matrix of [5, 4]: 3 inputs against 4"},
      {{3},
       [](Scope s, Tensor x) { return lookUp(s, x, x); },
       "look-up in [2, 3] at [2, 3] floats, where integers are expected"},
      {{3},
       [](Scope s, Tensor x) { return embedding(s, x, 5, 4); },
       "look-up in [5, 4] at [2, 3] floats, where integers are expected"},
      {{3},
       [](Scope s, Tensor x) { return reshape(s, x, {4, -1}); },
       "reshape of [2, 3] (6 elements) to [4, -1]"},
      {{3},
       [](Scope s, Tensor x) { return transpose(s, x, {0, 0}); },
       "transpose of [2, 3] by [0, 0], which is no order of its dimensions"},
      {{3},
       [](Scope s, Tensor x) { return slice(s, x, 1, 2, 2); },
       "slice of 2 elements from 2 along dimension 1 of [2, 3]"},
      {{3},
       [](Scope s, Tensor x) { return slice(s, x, 2, 0, 1); },
       "slice along dimension 2 of [2, 3]"},
      {{3},
       [](Scope s, Tensor x) { return concat(s, {x, linear(s, x, 2)}, 0); },
       "concat of [2, 3] and [2, 2] along dimension 0"},
      {{3}, [](Scope s, Tensor) { return concat(s, {}, 0); }, "concat of nothing"},
      {{3},
       [](Scope s, Tensor x) { return sum(s, x, {1, -1}); },
       "sum over [1, -1] of [2, 3]: a dimension is there twice"},
      {{3},
       [](Scope s, Tensor x) { return dropout(s, x, 1); },
       "dropout of p = 1, which must be in [0, 1)"},
      {{3},
       [](Scope s, Tensor x) { return rotary(s, x); },
       "rotary positions of [2, 3], where [N, T, H, D] with an even D is expected"},
      {{4, 2, 3},
       [](Scope s, Tensor x) { return rotary(s, x); },
       "rotary positions of [2, 4, 2, 3], where [N, T, H, D] with an even D is expected"},
      {{3},
       [](Scope s, Tensor x) { return attention(s, x, x, x); },
       "attention of [2, 3], [2, 3] and [2, 3], where [N, T, H, D], [N, S, G, D] and "
       "[N, S, G, E] are expected"},
      {{4, 3, 2},
       [](Scope s, Tensor x) {
         Tensor key = slice(s, x, 2, 0, 2);
         return attention(s, x, key, key);
       },
       "attention: 2 heads of keys do not divide 3 heads of queries"},
      {{4, 3, 2},
       [](Scope s, Tensor x) { return attention(s, x, x, x, {.dropout = 1.5}); },
       "attention with dropout of p = 1.5, which must be in [0, 1)"},
      {{6},
       [](Scope s, Tensor x) { return groupNorm(s, x, 4); },
       "groupNorm: 6 channels in 4 groups"},
      {{3},
       [](Scope s, Tensor x) { return maxPool(s, x, {2}); },
       "maxPool of [2, 3], where [N, space..., C] is expected"},
      {{5, 3},
       [](Scope s, Tensor x) { return maxPool(s, x, {2, 2}); },
       "maxPool of [2, 5, 3] by windows of [2, 2]: [2, 2] has 2 numbers for 1 dimensions of space"},
      {{5, 3},
       [](Scope s, Tensor x) { return averagePool(s, x, {2}, {.padding = {2}}); },
       "averagePool: padding of 2 for a window of 2: at most half of it"},
      {{5, 3},
       [](Scope s, Tensor x) { return convolution(s, x, 4, {7}); },
       "convolution of [2, 5, 3] by windows of [7]: a window covers 7 elements, and there are 5 "
       "with padding"},
      {{5, 3},
       [](Scope s, Tensor x) { return convolution(s, x, 4, {3}, {.strides = {0}}); },
       "convolution of [2, 5, 3] by windows of [3]: windows, strides and dilations must be "
       "positive, and padding not negative"},
      {{5, 3},
       [](Scope s, Tensor x) { return convolution(s, x, 4, {3}, {.groups = 2}); },
       "convolution of 3 to 4 channels in 2 groups"},
  };
  for (const auto& [sample, layer, says] : cases)
    EXPECT_EQ(refusalOf(sample, layer), fmt::format("m: a.b: {}", says));
}

TEST(Builder, BatchStatisticsNeedTwoElements) {
  Recipe recipe = fresh();
  recipe.batch.micro = recipe.batch.global = 1;
  EXPECT_EQ(refusal(
                [](Model& model) {
                  Tensor x = model.input("x", DType::F32, {3});
                  model.output("y", batchNorm(model.root().child("bn"), x));
                },
                recipe),
            "m: bn: batchNorm of [1, 3]: one element for each channel, of which there is no "
            "statistic");
}

TEST(Builder, LayersOfFloatsRefuseIntegers) {
  EXPECT_EQ(refusal([](Model& model) {
              Tensor ids = model.input("ids", DType::I64, {4});
              model.output("y", relu(model.root().child("act"), ids));
            }),
            "m: act: relu of [2, 4] integers, where a tensor of floats is expected");
}

TEST(Builder, TheFirstErrorCounts) {
  EXPECT_EQ(refusal([](Model& model) {
              Tensor x = model.input("x", DType::F32, {4});
              Tensor wrong = reshape(model.root().child("first"), x, {3});
              model.output("y", linear(model.root().child("second"), wrong, 0));
            }),
            "m: first: reshape of [2, 4] (8 elements) to [3]");
}

TEST(Builder, NamesAreTakenOnce) {
  EXPECT_EQ(refusalOf({3}, [](Scope s, Tensor x) { return linear(s, linear(s, x, 3), 3); }),
            "m: 'a.b.weight': two tensors of this name");
  EXPECT_EQ(refusalOf({3},
                      [](Scope s, Tensor x) {
                        (void)s.parameter("weight", {3, 3}, Init::ones(), {"head.weight"});
                        return s.builder().parameter({"head.weight", {}}, {3}, Init::ones());
                      }),
            "m: 'head.weight': two tensors of this name");
  EXPECT_EQ(refusalOf({3}, [](Scope s, Tensor x) { return relu(s.child("c.d"), x); }),
            "m: a.b: 'c.d' is no segment of a path: it is empty or has a dot");
  EXPECT_EQ(refusal([](Model& model) {
              (void)model.input("x", DType::F32, {3});
              model.output("y", model.input("x", DType::F32, {3}));
            }),
            "m: input 'x' of shape [2, 3]: there is one of this name already");
  EXPECT_EQ(refusal([](Model& model) {
              Tensor x = model.input("x", DType::F32, {3});
              model.output("y", x);
              model.output("y", x);
            }),
            "m: output 'y': there is one of this name already");
}

TEST(Builder, SizesAreChecked) {
  EXPECT_EQ(refusalOf({3},
                      [](Scope s, Tensor) {
                        return s.parameter("w", {int64_t(1) << 30, int64_t(1) << 30}, Init::ones());
                      }),
            "m: 'a.b.w': more than 1099511627776 elements");
  EXPECT_EQ(refusalOf({3}, [](Scope s, Tensor) { return s.parameter("w", {3, 0}, Init::ones()); }),
            "m: 'a.b.w' of shape [3, 0] is empty");
  EXPECT_EQ(refusal([](Model& model) { model.output("y", model.input("x", DType::F32, {0})); }),
            "m: input 'x' of shape [2, 0] is empty");
  EXPECT_EQ(refusal([](Model& model) { model.output("y", model.input("x", DType::BF16, {1})); }),
            "m: input 'x' of shape [2, 1]: BF16 is no type of inputs, which are F32, I64 or I32");
  EXPECT_EQ(
      refusalOf({3}, [](Scope s, Tensor) { return s.buffer("b", {1}, Init::ones(), DType::I32); }),
      "m: 'a.b.b': I32 is no type of buffers, which are F32 or I64");
}

TEST(Builder, TheRecipeIsCheckedAgainstTheModel) {
  const auto build = [](Model& model) {
    Tensor x = model.input("x", DType::F32, {model.dim("width", 4)});
    model.output("y", linear(model.root().child("fc"), x, 3));
  };
  Recipe recipe = fresh();
  recipe.model.dims = {{"seq", 4}};
  EXPECT_EQ(refusal(build, recipe),
            "m: model.dims: no input has a dimension 'seq'; there are: width");
  recipe.model.dims = {{"width", 0}};
  EXPECT_EQ(refusal(build, recipe), "m: model.dims: width = 0: must be positive");
  recipe = fresh();
  recipe.model.frozen = {"fc.*", "head.*"};
  EXPECT_EQ(refusal(build, recipe),
            "m: model.frozen: 'head.*' matches no parameter; --write-recipe lists them");
  recipe = fresh();
  recipe.model.init = "model";
  EXPECT_EQ(refusal(build, recipe),
            "m: model.init = \"model\": there is no file with weights: start fresh, or from a "
            "checkpoint with --init");
  EXPECT_EQ(refusal([](Model& model) { (void)model.input("x", DType::F32, {1}); }),
            "m: the model has no output");
}

TEST(Builder, RulesOfTheRecipeComeFirst) {
  Recipe recipe = fresh();
  recipe.model.initRules = {{.match = "*.bias", .dist = "constant", .value = 3}};
  recipe.model.frozen = {"fc.weight"};
  MLIRContext context;
  auto module = buildModule(context, "m", recipe, [](Model& model) {
    Tensor x = model.input("x", DType::F32, {4});
    model.output("y", linear(model.root().child("fc"), x, 3));
  });
  ASSERT_TRUE(module.ok()) << module.error().message();
  const auto state = [&](StringRef name) { return (*module)->lookupSymbol<ir::StateOp>(name); };
  EXPECT_EQ(state("fc.bias").getInit(), ir::RuleInitAttr::get(&context, "constant", 3, 0));
  EXPECT_EQ(state("fc.weight").getInit(), ir::RuleInitAttr::get(&context, "normal", 0, 0.5));
  EXPECT_TRUE(state("fc.bias").getTrainable());
  EXPECT_FALSE(state("fc.weight").getTrainable());
}

TEST(KnownModels, WidthsThatDoNotDivide) {
  const auto refuse = [](std::string_view request, std::map<std::string, int64_t> dims = {}) {
    Recipe recipe = fresh();
    recipe.model.dims = std::move(dims);
    return refusal(parseModelRequest(request).take().builder(), recipe);
  };
  EXPECT_EQ(refuse("nn:gpt?width=10,heads=3"), "m: heads = 3 do not divide width = 10");
  EXPECT_EQ(refuse("nn:llama?width=10,heads=3"), "m: heads = 3 do not divide width = 10");
  EXPECT_EQ(refuse("nn:llama?heads=4,groups=3"), "m: groups = 3 do not divide heads = 4");
  EXPECT_EQ(refuse("nn:llama?width=12,heads=4,groups=2"),
            "m: width / heads = 3 is odd: positions turn pairs of elements");
  EXPECT_EQ(refuse("nn:gpt?length=16", {{"seq", 17}}),
            "m: model.dims: seq = 17 is more than length = 16 positions");
  EXPECT_EQ(refuse("nn:llama?length=16", {{"seq", 17}}),
            "m: model.dims: seq = 17 is more than length = 16 positions");
  EXPECT_EQ(refuse("nn:gpt?layers=1,width=4000000,heads=1,vocab=400000"),
            "m: 'transformer.wte.weight': more than 1099511627776 elements");
}

} // namespace
} // namespace titan::nn
