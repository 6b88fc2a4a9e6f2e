// Files come from strangers: chains of any length, and sums of a value with itself, whose paths
// double with each of them, end neither the stack nor the day.
#include "dialects/Titan/Titan.h"
#include "frontend/raise/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace titan::frontend {
namespace {

constexpr int kDeep = 50000; ///< frames of a recursion that no stack of 8 MiB holds
constexpr int kDoublings = 64;

class DeepChain : public ::testing::Test {
protected:
  DeepChain() { context_.loadDialect<func::FuncDialect, ir::TitanDialect>(); }

  /// Lines `%NAME1 = ...`, `%NAME2 = ...`: `count` times `line`, with the value before for `@`.
  static std::string chain(int count, const std::string& name, const std::string& line) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      std::string before = "%" + name + std::to_string(i);
      text += "%" + name + std::to_string(i + 1) + " = ";
      for (char c : line)
        text += c == '@' ? before : std::string(1, c);
      text += "\n";
    }
    return text;
  }

  /// Attention in the open: `mask` computes %mask of queries and keys, an i1 of what is kept or an
  /// f32 to add; `scores` goes on from the masked scores %s0 to `last`.
  static std::string attention(const std::string& mask, bool added, const std::string& scores = "",
                               const std::string& last = "%s0") {
    std::string text = R"(
      titan.state @bias : tensor<3x3xf32> {init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, kind = #titan<kind buffer>}
      func.func @model(%bias: tensor<3x3xf32> {titan.state = @bias, import.initial = dense<[[0.0, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>},
                       %q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x8xf32>,
                       %b0: tensor<3x3xi1>, %a0: tensor<3x3xf32>) -> tensor<2x3x8xf32> {
        %p = titan.contract %q, %k batch [0] x [0] contracting [2] x [2] : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    )" + mask;
    text += added ? R"(
        %m = titan.broadcast %mask [1, 2] : tensor<3x3xf32> to tensor<2x3x3xf32>
        %s0 = titan.add %p, %m : tensor<2x3x3xf32>
    )"
                  : R"(
        %m = titan.broadcast %mask [1, 2] : tensor<3x3xi1> to tensor<2x3x3xi1>
        %inf = titan.constant dense<0xFF800000> : tensor<2x3x3xf32>
        %s0 = titan.select %m, %p, %inf : tensor<2x3x3xi1>, tensor<2x3x3xf32>
    )";
    return text + scores + "%w = titan.softmax " + last + R"( dim 2 : tensor<2x3x3xf32>
        %y = titan.contract %w, %v batch [0] x [0] contracting [2] x [1] : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
        return %y : tensor<2x3x8xf32>
      })";
  }

  OwningOpRef<ModuleOp> raise(const std::string& text, std::unique_ptr<Pass> pass) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context_);
    EXPECT_TRUE(module);
    PassManager passes(&context_);
    passes.addNestedPass<func::FuncOp>(std::move(pass));
    EXPECT_TRUE(module && succeeded(passes.run(*module)));
    return module;
  }

  static ir::AttentionOp attentionOf(ModuleOp module) {
    auto ops = module.lookupSymbol<func::FuncOp>("model").getOps<ir::AttentionOp>();
    return ops.empty() ? ir::AttentionOp() : *ops.begin();
  }

  /// The one attention of `text` after raising; null: it was not raised.
  ir::AttentionOp raisedAttention(const std::string& text) {
    module_ = raise(text, createRaiseAttention());
    return module_ ? attentionOf(*module_) : ir::AttentionOp();
  }

  static std::string last(const std::string& name, int count) {
    return "%" + name + std::to_string(count);
  }
  static std::string sameMask(const std::string& value, const std::string& type) {
    return "%mask = titan.reshape " + value + " : tensor<3x3x" + type + "> to tensor<3x3x" + type +
           ">\n";
  }

  MLIRContext context_;
  OwningOpRef<ModuleOp> module_;
};

TEST_F(DeepChain, ConjunctionsOfMasksAreSplitSoFar) {
  std::string mask =
      chain(kDeep, "b", "titan.and @, %b0 : tensor<3x3xi1>") + sameMask(last("b", kDeep), "i1");
  EXPECT_TRUE(raisedAttention(attention(mask, /*added=*/false)));
  mask = chain(kDeep, "b", "titan.not @ : tensor<3x3xi1>") + sameMask(last("b", kDeep), "i1");
  EXPECT_TRUE(raisedAttention(attention(mask, /*added=*/false)));
}

TEST_F(DeepChain, SumsOfAMaskWithItselfAreSplitSoFar) {
  std::string mask = chain(kDoublings, "a", "titan.add @, @ : tensor<3x3xf32>") +
                     sameMask(last("a", kDoublings), "f32");
  EXPECT_TRUE(raisedAttention(attention(mask, /*added=*/true)));
}

TEST_F(DeepChain, MasksAreEvaluatedHoweverDeep) {
  static_assert(kDeep % 2 == 0);
  std::string mask = "%n0 = titan.neg %bias : tensor<3x3xf32>\n" +
                     chain(kDeep - 1, "n", "titan.neg @ : tensor<3x3xf32>") +
                     sameMask(last("n", kDeep - 1), "f32");
  ir::AttentionOp op = raisedAttention(attention(mask, /*added=*/true));
  ASSERT_TRUE(op);
  EXPECT_TRUE(op.getCausal());
  EXPECT_FALSE(op.getMask());
}

TEST_F(DeepChain, ScoresAreFollowedSoFar) {
  std::string mask = sameMask("%a0", "f32");
  std::string half = "%half = titan.constant dense<0.5> : tensor<2x3x3xf32>\n";
  auto halved = [&](int times) {
    return attention(mask, /*added=*/true,
                     half + chain(times, "s", "titan.mul @, %half : tensor<2x3x3xf32>"),
                     last("s", times));
  };
  EXPECT_TRUE(raisedAttention(halved(8)));
  EXPECT_FALSE(raisedAttention(halved(kDeep)));
  // No path leads to a product, and each step doubles the paths.
  std::string text = attention(mask, /*added=*/true,
                               "%t0 = titan.exp %s0 : tensor<2x3x3xf32>\n" +
                                   chain(kDoublings, "t", "titan.add @, @ : tensor<2x3x3xf32>"),
                               last("t", kDoublings));
  EXPECT_FALSE(raisedAttention(text));
}

TEST_F(DeepChain, ProductsAreTakenApartSoFar) {
  std::string text =
      "func.func @model(%x: tensor<4xf32>, %p0: tensor<4xf32>) -> tensor<4xf32> {\n" +
      chain(kDeep, "p", "titan.mul @, %x : tensor<4xf32>") + "return " + last("p", kDeep) +
      " : tensor<4xf32>\n}";
  EXPECT_TRUE(raise(text, createRaiseActivations()));
}

TEST_F(DeepChain, TablesOfAnglesAreFollowedSoFar) {
  // x cos + join(-second(x), first(x)) sin, with sums of a table with itself for the cosines.
  std::string text = R"(
    func.func @model(%x: tensor<2x5x3x4xf32>, %half: tensor<3x2xf32>) -> tensor<2x5x3x4xf32> {
      %c0 = titan.concat %half, %half dim 1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  )" + chain(kDoublings, "c", "titan.add @, @ : tensor<3x4xf32>") +
                     "%cos = titan.broadcast " + last("c", kDoublings) +
                     R"( [2, 3] : tensor<3x4xf32> to tensor<2x5x3x4xf32>
      %sin = titan.broadcast %c0 [2, 3] : tensor<3x4xf32> to tensor<2x5x3x4xf32>
      %straight = titan.mul %x, %cos : tensor<2x5x3x4xf32>
      %first = titan.slice %x offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x5x3x4xf32> to tensor<2x5x3x2xf32>
      %second = titan.slice %x offsets [0, 0, 0, 2] strides [1, 1, 1, 1] : tensor<2x5x3x4xf32> to tensor<2x5x3x2xf32>
      %n = titan.neg %second : tensor<2x5x3x2xf32>
      %other = titan.concat %n, %first dim 3 : (tensor<2x5x3x2xf32>, tensor<2x5x3x2xf32>) -> tensor<2x5x3x4xf32>
      %turned = titan.mul %other, %sin : tensor<2x5x3x4xf32>
      %y = titan.add %straight, %turned : tensor<2x5x3x4xf32>
      return %y : tensor<2x5x3x4xf32>
    })";
  EXPECT_TRUE(raise(text, createRaiseRotary()));
}

} // namespace
} // namespace titan::frontend
