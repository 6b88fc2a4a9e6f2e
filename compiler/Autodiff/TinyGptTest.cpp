// Small language models through differentiate and accumulate, by the interpreter in f64: attention
// as one op and written out, a tied table, grouped heads, rotary positions, dropout.
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

constexpr int64_t vocabulary = 19, positions = 6;

class TinyGpt : public titan::interpreter::testing::ModuleFixture {
protected:
  TinyGpt() : ModuleFixture(autodiff::registerDerivativeRules) {}

  /// A model of test/Inputs for microbatches of `micro` samples, `global` a step, as *accumulate*
  /// leaves it.
  OwningOpRef<ModuleOp> compile(const std::string& name, int64_t micro, int64_t global) {
    std::string text = replaceAll(readFile(fmt::format("test/Inputs/{}.mlir", name)), "tensor<2x",
                                  fmt::format("tensor<{}x", micro));
    OwningOpRef<ModuleOp> module = parse(text);
    if (!module)
      llvm::report_fatal_error(llvm::Twine("cannot parse ") + name);
    recipe.batch.micro = micro;
    recipe.batch.global = global;
    setRecipe(*module, recipe);
    PassManager passes(&context);
    addDifferentiatePasses(passes);
    addAccumulatePasses(passes);
    EXPECT_TRUE(succeeded(passes.run(*module))) << name;
    return module;
  }

  static func::FuncOp stepOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("step"); }

  /// Random arguments for `step`; tokens and targets from the whole vocabulary.
  static Arguments argumentsOf(func::FuncOp step) { return namedArguments(step, vocabulary); }

  static Results runStep(ModuleOp module, const Arguments& arguments) {
    FailureOr<Results> results = run(stepOf(module), arguments, Engine::F64);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? *results : Results();
  }

  static void expectEqual(const Results& wanted, const Results& found) {
    EXPECT_EQ(wanted.gradients.size(), found.gradients.size());
    for (auto& [name, gradient] : wanted.gradients)
      EXPECT_EQ(describeDifference(gradient, found.gradients.at(name), 1e-11), "") << name;
    for (const char* metric : {"loss_sum", "count"})
      EXPECT_EQ(describeDifference(wanted.metrics.at(metric), found.metrics.at(metric), 1e-12), "")
          << metric;
  }

  /// Central differences of the loss for every fifth element of each parameter.
  void expectGradientsAreDifferences(const std::string& name) {
    OwningOpRef<ModuleOp> module = compile(name, 2, 2);
    Arguments arguments = argumentsOf(stepOf(*module));
    Results results = runStep(*module, arguments);
    EXPECT_GT(results.gradients.size(), 10u);
    for (auto& [parameter, gradient] : results.gradients) {
      double largest = 1;
      for (double x : gradient.floats())
        largest = std::max(largest, std::abs(x));
      for (int64_t i = 0; i < gradient.size(); i += 5) {
        auto lossAt = [&](double change) {
          Arguments moved = arguments;
          moved.states[parameter].mutableFloats()[i] += change;
          return runStep(*module, moved).metrics["loss_sum"].real();
        };
        ASSERT_NEAR(gradient.floats()[i], (lossAt(1e-5) - lossAt(-1e-5)) / 2e-5, 1e-6 * largest)
            << parameter << "[" << i << "]";
      }
    }
  }

  Recipe recipe;
};

TEST_F(TinyGpt, GradientsAreDifferences) {
  expectGradientsAreDifferences("tiny-gpt");
  expectGradientsAreDifferences("tiny-llama");
}

// Dropout of probabilities draws the same numbers inside of attention as of a tensor of its own.
TEST_F(TinyGpt, AttentionIsItsProductsAndSoftmax) {
  OwningOpRef<ModuleOp> fused = compile("tiny-gpt", 2, 4),
                        written = compile("tiny-gpt-decomposed", 2, 4);
  Arguments arguments = argumentsOf(stepOf(*fused));
  expectEqual(runStep(*written, arguments), runStep(*fused, arguments));
}

TEST_F(TinyGpt, MicrobatchesSumToTheWholeBatch) {
  for (const char* name : {"tiny-gpt", "tiny-gpt-decomposed", "tiny-llama"}) {
    OwningOpRef<ModuleOp> whole = compile(name, 4, 4);
    Arguments arguments = argumentsOf(stepOf(*whole));
    Results wanted = runStep(*whole, arguments);
    EXPECT_EQ(wanted.metrics["count"].integer(), 4 * positions);
    for (int64_t micro : {1, 2}) {
      OwningOpRef<ModuleOp> parts = compile(name, micro, 4);
      Arguments split = arguments;
      for (auto& [input, batch] : split.inputs)
        batch = batch.reshaped({4 / micro, micro, positions});
      expectEqual(wanted, runStep(*parts, split));
    }
  }
}

// Neither of its uses builds a gradient then, and nothing below the first block does.
TEST_F(TinyGpt, FrozenTableHasNoGradient) {
  recipe.model.frozen = {"transformer.wte.*", "transformer.wpe.*"};
  OwningOpRef<ModuleOp> module = compile("tiny-gpt", 2, 2);
  module->walk([](titan::ir::EmbeddingGradOp op) { ADD_FAILURE() << "a table's gradient"; });
  Results results = runStep(*module, argumentsOf(stepOf(*module)));
  EXPECT_EQ(results.gradients.count("transformer.wte.weight"), 0u);
  EXPECT_EQ(results.gradients.count("transformer.h.0.ln_1.weight"), 1u);
}

// Another step draws other numbers, so that the dropout above was not idle; eval draws none.
TEST_F(TinyGpt, DropoutChangesWithTheStep) {
  OwningOpRef<ModuleOp> module = compile("tiny-gpt", 2, 2);
  Arguments arguments = argumentsOf(stepOf(*module));
  double first = runStep(*module, arguments).metrics["loss_sum"].real();
  arguments.states[ir::counter::step.str()] = integer(2);
  EXPECT_NE(first, runStep(*module, arguments).metrics["loss_sum"].real());
}

} // namespace
