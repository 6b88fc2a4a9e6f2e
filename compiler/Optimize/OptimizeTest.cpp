// What the update phase does to a whole step: scale, clip, schedule, groups, counters, and steps
// that are skipped.
#include "compiler/Autodiff/Passes.h"
#include "compiler/Autodiff/Rules.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Optimize/Passes.h"
#include "compiler/Support/RecipeAttribute.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace titan;
using namespace titan::interpreter;

namespace {

/// logits = x w^T + b of 4 samples; two microbatches.
constexpr StringLiteral model = R"(
  titan.state @fc.weight : tensor<3x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  titan.state @fc.bias : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<3x2xf32> {titan.state = @fc.weight}, %b: tensor<3xf32> {titan.state = @fc.bias},
                   %x: tensor<2x2xf32> {titan.input = "x"}) -> (tensor<2x3xf32> {titan.output = "logits"}) {
    %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
    %rows = titan.broadcast %b [1] : tensor<3xf32> to tensor<2x3xf32>
    %y = titan.add %p, %rows : tensor<2x3xf32>
    return %y : tensor<2x3xf32>
  })";

class Optimize : public titan::interpreter::testing::ModuleFixture {
protected:
  Optimize() : ModuleFixture(autodiff::registerDerivativeRules) {
    recipe.batch.micro = 2;
    recipe.batch.global = 4;
    recipe.optimizer.kind = "sgd";
    recipe.optimizer.weightDecay = 0;
    arguments.states["fc.weight"] = floats({3, 2}, {0.5, -1, 0.25, 2, -0.75, 1});
    arguments.states["fc.bias"] = floats({3}, {0.1, -0.2, 0.3});
    for (StringRef counter : {StringRef(ir::counter::step), StringRef(ir::counter::updates),
                              StringRef(ir::counter::samples), StringRef(ir::counter::skipped)})
      arguments.states[counter.str()] = integer(10);
    arguments.inputs["x"] = floats({2, 2, 2}, {1, 2, -1, 0.5, 3, -2, 0.25, 1});
    auto targets = RankedTensorType::get({2, 2}, IntegerType::get(&context, 64));
    arguments.inputs["targets"] = Tensor::of(targets, ArrayRef<int64_t>{0, 2, 1, -100});
    arguments.controls["train.seed"] = integer(0);
    arguments.controls["optimizer.lr"] = floats({}, 0.5);
    arguments.controls["optimizer.weight_decay"] = floats({}, 0.0);
    arguments.controls["schedule.warmup_steps"] = integer(0);
    arguments.controls["schedule.steps"] = integer(100);
    arguments.controls["schedule.min_lr_ratio"] = floats({}, 0.0);
  }

  /// @step after *differentiate*, and after *optimize* if `update`.
  Results runStep(bool update = true) {
    OwningOpRef<ModuleOp> module = parse(model);
    setRecipe(*module, recipe);
    PassManager passes(&context);
    addDifferentiatePasses(passes);
    if (update)
      addOptimizePasses(passes);
    EXPECT_TRUE(succeeded(passes.run(*module)));
    FailureOr<Results> results =
        run(module->lookupSymbol<func::FuncOp>("step"), arguments, Engine::F64);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? *results : Results();
  }
  int64_t counter(Results& results, StringRef name) { return results.states[name.str()].integer(); }
  /// Parameters after - before = -rate * gradient of the sum, elementwise.
  void expectPlainUpdate(Results& results, const std::string& name, double rate) {
    Results plain = runStep(/*update=*/false);
    for (int64_t i = 0; i < plain.gradients[name].size(); ++i)
      EXPECT_NEAR(results.states[name].floats()[i],
                  arguments.states[name].floats()[i] - rate * plain.gradients[name].floats()[i],
                  1e-12)
          << name << "[" << i << "]";
  }
  double gradientNorm() {
    Results plain = runStep(/*update=*/false);
    double sum = 0;
    for (auto& [name, gradient] : plain.gradients)
      for (double g : gradient.floats())
        sum += g * g;
    return std::sqrt(sum);
  }

  Recipe recipe;
  Arguments arguments;
};

TEST_F(Optimize, GradientIsThatOfTheMeanOverValidTargets) {
  Results results = runStep(), plain = runStep(/*update=*/false);
  EXPECT_EQ(results.metrics["count"].integer(), 3); // one of four is ignored
  EXPECT_NEAR(results.metrics["loss"].real(), plain.metrics["loss_sum"].real() / 3, 1e-12);
  EXPECT_NEAR(results.metrics["grad_norm"].real(), gradientNorm() / 3, 1e-12);
  EXPECT_EQ(results.metrics["lr"].real(), 0.5);
  expectPlainUpdate(results, "fc.weight", 0.5 / 3);
  expectPlainUpdate(results, "fc.bias", 0.5 / 3);
}

TEST_F(Optimize, ClippingScalesToTheLimitAndNeverUp) {
  recipe.optimizer.clipNorm = 0.125; // exact in f32, as the constant is
  double norm = gradientNorm() / 3;
  ASSERT_GT(norm, 0.125);
  Results clipped = runStep();
  EXPECT_NEAR(clipped.metrics["grad_norm"].real(), norm, 1e-12); // as it was before clipping
  expectPlainUpdate(clipped, "fc.weight", 0.5 / 3 * 0.125 / (norm + 1e-6));
  recipe.optimizer.clipNorm = 100;
  Results whole = runStep();
  expectPlainUpdate(whole, "fc.weight", 0.5 / 3);
}

// The same norm but for rounding, and the same clip factor.
TEST_F(Optimize, ExactNormIsTheNorm) {
  recipe.mesh.reduce = "tree";
  recipe.optimizer.clipNorm = 0.125;
  const double norm = gradientNorm() / 3;
  Results clipped = runStep();
  EXPECT_NEAR(clipped.metrics["grad_norm"].real(), norm, 1e-12);
  expectPlainUpdate(clipped, "fc.weight", 0.5 / 3 * 0.125 / (norm + 1e-6));
}

TEST_F(Optimize, CountersAdvance) {
  Results results = runStep();
  EXPECT_EQ(counter(results, ir::counter::step), 11);
  EXPECT_EQ(counter(results, ir::counter::updates), 11);
  EXPECT_EQ(counter(results, ir::counter::samples), 14);
  EXPECT_EQ(counter(results, ir::counter::skipped), 10);
  EXPECT_EQ(results.metrics["applied"].integer(), 1);
}

TEST_F(Optimize, SkippedStepChangesOnlyStepSamplesAndSkipped) {
  recipe.optimizer.kind = "adamw";
  for (const char* name : {"fc.weight", "fc.bias"})
    for (const char* slot : {".exp_avg", ".exp_avg_sq"}) {
      Tensor value = arguments.states[name];
      for (double& x : value.mutableFloats())
        x = 0.5;
      arguments.states[std::string(name) + slot] = value;
    }
  arguments.controls["optimizer.weight_decay"] = floats({}, 0.1);
  Tensor x = arguments.inputs["x"], targets = arguments.inputs["targets"];
  auto expectSkipped = [&](const char* why) {
    Results results = runStep();
    for (auto& [name, before] : arguments.states)
      if (before.isFloat())
        EXPECT_EQ(results.states[name].floats(), before.floats()) << why << ": " << name;
    EXPECT_EQ(counter(results, ir::counter::step), 11) << why;
    EXPECT_EQ(counter(results, ir::counter::updates), 10) << why;
    EXPECT_EQ(counter(results, ir::counter::samples), 14) << why;
    EXPECT_EQ(counter(results, ir::counter::skipped), 11) << why;
    EXPECT_EQ(results.metrics["applied"].integer(), 0) << why;
  };
  for (const char* reduce : {"fast", "tree"}) {
    recipe.mesh.reduce = reduce;
    arguments.inputs["x"].mutableFloats()[0] = INFINITY;
    expectSkipped("infinite input");
    arguments.inputs["x"].mutableFloats()[0] = NAN;
    expectSkipped("NaN input");
  }
  arguments.inputs["x"] = x;
  llvm::fill(arguments.inputs["targets"].mutableIntegers(), -100);
  expectSkipped("no valid target");
}

TEST_F(Optimize, GroupsDecideRateAndDecay) {
  // p' = p - lr_scale * lr * (g / count + decay * p): the first matching group counts, its decay
  // before no_decay.
  recipe.optimizer.groups = {{"*.weight", 0.5, 0.25}, {"*", 3.0, std::nullopt}};
  arguments.controls["optimizer.weight_decay"] =
      floats({}, 0.125); // for neither: *.bias is no_decay
  Results results = runStep(), plain = runStep(/*update=*/false);
  for (auto [name, scale, decay] :
       {std::tuple{"fc.weight", 0.5, 0.25}, std::tuple{"fc.bias", 3.0, 0.0}})
    for (int64_t i = 0; i < plain.gradients[name].size(); ++i) {
      double p = arguments.states[name].floats()[i], g = plain.gradients[name].floats()[i] / 3;
      EXPECT_NEAR(results.states[name].floats()[i], p - scale * 0.5 * (g + decay * p), 1e-12)
          << name;
    }
}

TEST_F(Optimize, ScheduleReadsTheStepCounterAndRunTimeControls) {
  recipe.schedule.kind = "linear";
  arguments.controls["schedule.warmup_steps"] = integer(20);
  EXPECT_NEAR(runStep().metrics["lr"].real(), 0.5 * 11 / 20, 1e-12); // step 10 of the warm-up
  arguments.controls["schedule.warmup_steps"] = integer(0);
  arguments.controls["schedule.steps"] = integer(40);
  arguments.controls["schedule.min_lr_ratio"] = floats({}, 0.2);
  EXPECT_NEAR(runStep().metrics["lr"].real(), 0.5 * (1 - 0.8 * 0.25), 1e-12);
}

TEST_F(Optimize, FrozenParametersPassThroughWithoutSlots) {
  recipe.optimizer.momentum = 0.9;
  recipe.model.frozen = {"*.bias"};
  arguments.states["fc.weight.momentum_buffer"] = floats({3, 2}, SmallVector<double>(6, 0));
  Results results = runStep();
  EXPECT_EQ(results.states["fc.bias"].floats(), arguments.states["fc.bias"].floats());
  EXPECT_EQ(results.states.count("fc.bias.momentum_buffer"), 0u);
  expectPlainUpdate(results, "fc.weight", 0.5 / 3);
}

std::string averageOf(const std::string& profile, const std::string& name) {
  return "ema." + profile + "." + name;
}

TEST_F(Optimize, AveragesFollowTheUpdate) {
  // Decays that are exact in f32.
  recipe.ema.profiles = {{"slow", {.decay = 0.75}}, {"fast", {.decay = 0.5, .warmup = true}}};
  recipe.model.frozen = {"*.bias"};
  const SmallVector<double> before = {1, 2, 3, 4, 5, 6};
  arguments.states[averageOf("slow", "fc.weight")] = floats({3, 2}, before);
  arguments.states[averageOf("fast", "fc.weight")] = floats({3, 2}, before);
  // By updates applied before: weights of `slow` and of `fast`, whose warm-up ends at 8.
  for (auto [updates, slow, fast] :
       {std::tuple{0, 1.0, 1.0}, std::tuple{1, 0.25, 1 - 2.0 / 11},
        std::tuple{7, 0.25, 1 - 8.0 / 17}, std::tuple{8, 0.25, 0.5}, std::tuple{100, 0.25, 0.5}}) {
    arguments.states[std::string(ir::counter::updates)] = integer(updates);
    Results results = runStep();
    for (auto [profile, weight] : {std::pair{"slow", slow}, std::pair{"fast", fast}})
      for (int64_t i = 0; i < 6; ++i)
        EXPECT_NEAR(results.states[averageOf(profile, "fc.weight")].floats()[i],
                    before[i] + weight * (results.states["fc.weight"].floats()[i] - before[i]),
                    1e-12)
            << profile << " after " << updates << " updates";
    EXPECT_EQ(results.states.count(averageOf("slow", "fc.bias")), 0u) << "a frozen parameter";
  }
}

TEST_F(Optimize, SkippedStepKeepsTheBitsOfAverages) {
  recipe.ema.profiles = {{"slow", {.decay = 0.75}}};
  const SmallVector<double> before = {-0.0, 0.0, INFINITY, 4, 5, 6};
  arguments.states[averageOf("slow", "fc.weight")] = floats({3, 2}, before);
  arguments.states[averageOf("slow", "fc.bias")] = floats({3}, {1, 2, 3});
  arguments.inputs["x"].mutableFloats()[0] = NAN;
  for (int64_t updates : {0, 10}) {
    arguments.states[std::string(ir::counter::updates)] = integer(updates);
    Results results = runStep();
    ASSERT_EQ(results.metrics["applied"].integer(), 0);
    const auto after = results.states[averageOf("slow", "fc.weight")].floats();
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(after[i], before[i]) << i;
    EXPECT_TRUE(std::signbit(after[0]));
  }
}

} // namespace
