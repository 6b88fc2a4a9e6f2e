// The stage end to end: what @step, @eval and @predict compute for whole models, by the interpreter
// in f64.
#include "compiler/Accumulate/Passes.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Autodiff/Rules.h"
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Support/RecipeAttribute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace titan;
using namespace titan::interpreter;

namespace {

/// Two layers with dropout between them; the same weight twice if `tied`.
std::string mlp(int64_t micro, bool tied = false) {
  return fmt::format(R"(
    titan.state @fc1.weight : tensor<6x6xf32> {{kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}}
    titan.state @fc1.bias : tensor<6xf32> {{kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}}
    titan.state @fc2.weight : tensor<6x6xf32> {{kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}}
    func.func @model(%w1: tensor<6x6xf32> {{titan.state = @fc1.weight}}, %b1: tensor<6xf32> {{titan.state = @fc1.bias}},
                     %w2: tensor<6x6xf32> {{titan.state = @fc2.weight}}, %x: tensor<{0}x6xf32> {{titan.input = "x"}})
        -> (tensor<{0}x6xf32> {{titan.output = "logits"}}) {{
      %h = titan.contract %x, %w1 batch [] x [] contracting [1] x [1] {{path = ["fc1"]}} : (tensor<{0}x6xf32>, tensor<6x6xf32>) -> tensor<{0}x6xf32>
      %rows = titan.broadcast %b1 [1] {{path = ["fc1"]}} : tensor<6xf32> to tensor<{0}x6xf32>
      %s = titan.add %h, %rows {{path = ["fc1"]}} : tensor<{0}x6xf32>
      %a = titan.tanh %s {{path = ["act"]}} : tensor<{0}x6xf32>
      %d = titan.dropout %a p 0.5 stream 3 {{path = ["drop"]}} : tensor<{0}x6xf32> to tensor<{0}x6xf32>
      %y = titan.contract %d, {1} batch [] x [] contracting [1] x [1] {{path = ["fc2"]}} : (tensor<{0}x6xf32>, tensor<6x6xf32>) -> tensor<{0}x6xf32>
      return %y : tensor<{0}x6xf32>
    }})",
                     micro, tied ? "%w1" : "%w2");
}

class Differentiate : public titan::interpreter::testing::ModuleFixture {
protected:
  Differentiate() : ModuleFixture(autodiff::registerDerivativeRules) {
    recipe.batch.micro = recipe.batch.global = 8;
  }

  OwningOpRef<ModuleOp> compile(const std::string& text, bool accumulate = false) {
    OwningOpRef<ModuleOp> module = parse(text);
    setRecipe(*module, recipe);
    PassManager passes(&context);
    addDifferentiatePasses(passes);
    if (accumulate)
      addAccumulatePasses(passes);
    succeeded = mlir::succeeded(passes.run(*module));
    return module;
  }
  /// Random arguments for @step or another function.
  static Arguments argumentsOf(func::FuncOp function) { return namedArguments(function, 6); }
  Results runFunction(ModuleOp module, StringRef name, const Arguments& arguments) {
    FailureOr<Results> results =
        run(module.lookupSymbol<func::FuncOp>(name), arguments, Engine::F64);
    EXPECT_TRUE(mlir::succeeded(results)) << message;
    return mlir::succeeded(results) ? *results : Results();
  }
  void expectGradientsAreDifferences(ModuleOp module) {
    Arguments arguments = argumentsOf(module.lookupSymbol<func::FuncOp>("step"));
    Results results = runFunction(module, "step", arguments);
    for (auto& [name, gradient] : results.gradients)
      for (int64_t i = 0; i < gradient.size(); ++i) {
        auto lossAt = [&](double change) {
          Arguments moved = arguments;
          moved.states[name].mutableFloats()[i] += change;
          return runFunction(module, "step", moved).metrics["loss_sum"].real();
        };
        ASSERT_NEAR(gradient.floats()[i], (lossAt(1e-5) - lossAt(-1e-5)) / 2e-5, 1e-6)
            << name << "[" << i << "]";
      }
  }

  Recipe recipe;
  bool succeeded = false;
};

TEST_F(Differentiate, GradientsOfEveryLossAreDifferences) {
  for (const char* kind : {"cross_entropy", "mse", "l1", "bce_with_logits"}) {
    recipe.loss.kind = kind;
    OwningOpRef<ModuleOp> module = compile(mlp(8));
    ASSERT_TRUE(succeeded) << kind << ": " << message;
    expectGradientsAreDifferences(*module);
  }
}

TEST_F(Differentiate, TwiceUsedParameterSumsItsGradients) {
  recipe.loss.labelSmoothing = 0.1;
  OwningOpRef<ModuleOp> module = compile(mlp(8, /*tied=*/true));
  ASSERT_TRUE(succeeded) << message;
  Results results =
      runFunction(*module, "step", argumentsOf(module->lookupSymbol<func::FuncOp>("step")));
  EXPECT_EQ(results.gradients.size(), 2u); // fc2.weight does not reach the loss
  expectGradientsAreDifferences(*module);
}

TEST_F(Differentiate, MicrobatchesSumToTheWholeBatch) {
  OwningOpRef<ModuleOp> whole = compile(mlp(8), /*accumulate=*/true);
  ASSERT_TRUE(succeeded) << message;
  recipe.batch.micro = 2;
  OwningOpRef<ModuleOp> parts = compile(mlp(2), /*accumulate=*/true);
  ASSERT_TRUE(succeeded) << message;

  Arguments arguments = argumentsOf(whole->lookupSymbol<func::FuncOp>("step"));
  Results wanted = runFunction(*whole, "step", arguments);
  for (auto& [name, batch] : arguments.inputs) {
    SmallVector<int64_t> shape = {4, 2};
    llvm::append_range(shape, batch.shape().drop_front(2));
    batch = batch.reshaped(shape);
  }
  Results found = runFunction(*parts, "step", arguments);
  for (auto& [name, gradient] : wanted.gradients)
    EXPECT_EQ(describeDifference(gradient, found.gradients[name], 1e-12), "") << name;
  for (const char* metric : {"loss_sum", "count"})
    EXPECT_EQ(describeDifference(wanted.metrics[metric], found.metrics[metric], 1e-12), "");
}

// The adjoint of the sum is a constant, so the adjoint's dropout has no operand that says where the
// batch is.
TEST_F(Differentiate, AdjointOfDropoutDrawsWhatDropoutDrew) {
  recipe.loss.kind = "output";
  recipe.batch.micro = 2;
  OwningOpRef<ModuleOp> module = compile(R"(
    titan.state @w : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
    func.func @model(%w: tensor<3xf32> {titan.state = @w}, %x: tensor<2x3xf32> {titan.input = "x"})
        -> (tensor<f32> {titan.output = "loss"}) {
      %rows = titan.broadcast %w [1] : tensor<3xf32> to tensor<2x3xf32>
      %p = titan.mul %rows, %x : tensor<2x3xf32>
      %d = titan.dropout %p p 0.5 stream 3 : tensor<2x3xf32> to tensor<2x3xf32>
      %s = titan.reduce sum %d [0, 1] : tensor<2x3xf32> to tensor<f32>
      return %s : tensor<f32>
    })",
                                         /*accumulate=*/true);
  ASSERT_TRUE(succeeded) << message;
  expectGradientsAreDifferences(*module);
}

TEST_F(Differentiate, FrozenParametersAndWhatOnlyTheyNeedHaveNoGradient) {
  recipe.model.frozen = {"fc1.*"};
  OwningOpRef<ModuleOp> module = compile(mlp(8));
  ASSERT_TRUE(succeeded) << message;
  Results results =
      runFunction(*module, "step", argumentsOf(module->lookupSymbol<func::FuncOp>("step")));
  ASSERT_EQ(results.gradients.size(), 1u);
  EXPECT_EQ(results.gradients.begin()->first, "fc2.weight");
  // Backward is the gradient of the loss and one product: nothing before fc2.
  int products = 0;
  module->walk([&](ir::ContractOp op) { products += ir::getPhase(op) == ir::Phase::Backward; });
  EXPECT_EQ(products, 1);
}

TEST_F(Differentiate, EvalCountsValidRowsOnly) {
  recipe.loss.ignoreIndex = 5;
  OwningOpRef<ModuleOp> module = compile(mlp(8));
  ASSERT_TRUE(succeeded) << message;
  Arguments arguments = argumentsOf(module->lookupSymbol<func::FuncOp>("eval"));
  // A row at a time, by differences of prefixes, from the logits that @predict gives.
  Tensor logits = runFunction(*module, "predict", arguments).outputs["logits"];
  ArrayRef<int64_t> targets = arguments.inputs["targets"].integers();
  int64_t count = 0, correct = 0;
  for (int64_t rows = 0; rows <= 8; ++rows) {
    if (rows > 0 && targets[rows - 1] != 5) {
      ArrayRef<double> row = logits.floats().slice((rows - 1) * 6, 6);
      ++count;
      correct += std::max_element(row.begin(), row.end()) - row.begin() == targets[rows - 1];
    }
    arguments.controls["valid_rows"] = integer(rows);
    Results results = runFunction(*module, "eval", arguments);
    EXPECT_EQ(results.metrics["count"].integer(), count);
    EXPECT_EQ(results.metrics["correct"].integer(), correct);
    EXPECT_EQ(results.metrics["loss_sum"].real() > 0, count > 0);
  }
}

TEST_F(Differentiate, OutputLossCountsMicrobatches) {
  recipe.loss.kind = "output";
  recipe.batch.micro = 2;
  const std::string model = R"(
    titan.state @w : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
    func.func @model(%w: tensor<3xf32> {titan.state = @w}, %x: tensor<2x3xf32> {titan.input = "x"})
        -> (tensor<f32> {titan.output = "loss"}) {
      %rows = titan.broadcast %w [1] : tensor<3xf32> to tensor<2x3xf32>
      %p = titan.mul %rows, %x : tensor<2x3xf32>
      %e = titan.exp %p : tensor<2x3xf32>
      %s = titan.reduce sum %e [0, 1] : tensor<2x3xf32> to tensor<f32>
      return %s : tensor<f32>
    })";
  OwningOpRef<ModuleOp> module = compile(model);
  ASSERT_TRUE(succeeded) << message;
  expectGradientsAreDifferences(*module);
  Arguments arguments = argumentsOf(module->lookupSymbol<func::FuncOp>("step"));
  EXPECT_EQ(runFunction(*module, "step", arguments).metrics["count"].integer(), 4);
  Arguments eval = argumentsOf(module->lookupSymbol<func::FuncOp>("eval"));
  eval.controls["valid_rows"] = integer(1);
  EXPECT_EQ(runFunction(*module, "eval", eval).metrics["count"].integer(), 0);
}

} // namespace
