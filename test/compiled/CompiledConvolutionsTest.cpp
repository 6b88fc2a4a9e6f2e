// Drawn convolutions and both of their gradients, from the titan dialect to machine code: the
// numbers of the interpreter where every order of a sum gives the same, close to them elsewhere,
// and the same bits on one thread and on two.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Interpreter/Ranks.h"
#include "compiler/Interpreter/testing/DrawnConvolution.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Pipeline/Register.h"
#include "test/compiled/CompiledStep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

using namespace mlir;
using titan::interpreter::Engine;
using titan::interpreter::Tensor;
using titan::interpreter::Tensors;
using titan::interpreter::testing::DrawnConvolution;
using titan::interpreter::testing::tensorType;

namespace titan {
namespace {

/// Of whole numbers; the sum of products that are -0 is either zero.
constexpr double equalNumbers = 1e-9;

class CompiledConvolutions : public interpreter::testing::ModuleFixture {
protected:
  CompiledConvolutions() : ModuleFixture(registerAllDialects) {
    std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                   fmt::format("titan-convolutions-{}", getpid());
    // Tiles of products and the like are the same functions in many steps.
    options.cache = folder.string();
    options.buildIdentity = "test";
  }
  ~CompiledConvolutions() override { std::filesystem::remove_all(options.cache); }

  /// The three ops with what a model has around them, as the stage *shard* leaves them.
  static std::string drawStep(std::mt19937& generator, const std::string& element,
                              const std::string& cpu) {
    const auto c = DrawnConvolution::draw(generator, /*channels=*/80, /*products=*/500000);
    const auto flip = [&] { return generator() % 2 == 0; };
    const std::string x = tensorType(c.operand, element), w = tensorType(c.kernel, element),
                      y = tensorType(c.result, element), wideX = tensorType(c.operand, "f32"),
                      wideW = tensorType(c.kernel, "f32"), wideY = tensorType(c.result, "f32"),
                      bias = tensorType(c.result.back(), "f32");
    std::string body, last;
    const auto add = [&](const std::string& name, const std::string& op) {
      body += fmt::format("    %{} = {}\n", name, op);
      last = name;
    };
    add("y", c.forward("%x, %w", element, "f32"));
    if (flip()) {
      add("r", fmt::format("titan.broadcast %b [{}] : {} to {}", c.result.size() - 1, bias, wideY));
      add("s", fmt::format("titan.add %y, %r : {}", wideY));
    }
    if (flip())
      add("a", fmt::format("titan.relu %{} : {}", last, wideY));
    const std::string result = last;
    const bool isRounded = element == "bf16";
    if (isRounded)
      add("yn", fmt::format("titan.convert %{} : {} to {}", result, wideY, y));
    add("dx", c.inputGrad("%dy, %w", element, "f32"));
    if (isRounded)
      add("dxn", fmt::format("titan.convert %dx : {} to {}", wideX, x));
    add("dw", c.kernelGrad("%x, %dy", flip() ? "%acc" : "", element, "f32"));
    return fmt::format(
        R"(module attributes {{titan.stage = "shard", titan.model = "convolution", titan.target = {{kind = "cpu", cpu = "{}", features = ""}}, titan.recipe = {{}}}} {{
  func.func @step(%x: {} {{titan.input = "x"}}, %w: {} {{titan.input = "w"}}, %dy: {} {{titan.input = "dy"}}, %b: {} {{titan.input = "b"}}, %acc: {} {{titan.input = "acc"}})
      -> ({} {{titan.output = "y"}}, {} {{titan.output = "dx"}}, {} {{titan.output = "dw"}}) {{
{}    return %{}, %{}, %dw : {}, {}, {}
  }}
}})",
        cpu, x, w, y, bias, wideW, y, x, wideW, body, isRounded ? "yn" : result,
        isRounded ? "dxn" : "dx", y, x, wideW);
  }

  /// Runs both ways on the same arguments.
  void check(func::FuncOp step, titan::testing::CompiledStep& compiled, const Tensors& arguments,
             double tolerance) {
    auto expected = interpreter::run(step, arguments, Engine::F32);
    ASSERT_TRUE(succeeded(expected)) << message;
    const auto one = compiled.run({arguments}, /*threads=*/1);
    const auto two = compiled.run({arguments}, /*threads=*/2);
    ASSERT_TRUE(one.ok() && two.ok());
    const StringRef names[] = {"y", "dx", "dw"};
    for (auto [i, name] : llvm::enumerate(names)) {
      const Tensor &found = one->front()[i], &again = two->front()[i];
      EXPECT_EQ(interpreter::describeDifference((*expected)[i], found, tolerance), "")
          << name.str();
      EXPECT_EQ(interpreter::describeDifference(found, again, /*tolerance=*/0), "")
          << name.str() << " on two threads";
    }
  }

  void check(const std::string& text, double tolerance) {
    auto module = parse(text);
    ASSERT_TRUE(module);
    auto compiled = titan::testing::CompiledStep::compile(*module, options);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message() << ": " << message;
    compiled->spreadOverThreads();
    auto step = module->lookupSymbol<func::FuncOp>("step");
    Tensors whole;
    for (auto [i, type] : llvm::enumerate(step.getArgumentTypes()))
      whole.push_back(titan::testing::wholeNumbers(cast<ShapedType>(type), i));
    check(step, *compiled, whole, equalNumbers);
    check(step, *compiled, interpreter::randomArguments(step), tolerance);
  }

  CodegenOptions options;
};

TEST_F(CompiledConvolutions, Drawn) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 300 && !HasFailure(); ++seed) {
    std::mt19937 generator(seed);
    const bool isNarrow = seed % 2 == 0;
    const std::string text =
        drawStep(generator, isNarrow ? "bf16" : "f32", seed % 3 == 0 ? "x86-64-v3" : "native");
    SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={}\n{}", seed, text));
    check(text, isNarrow ? 1.0 / 128 : 1e-5);
  }
}

} // namespace
} // namespace titan
