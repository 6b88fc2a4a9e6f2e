// Parameters that do not divide, over several steps of an optimizer that makes NaN of zeros: as on
// one rank, whatever stands in the padding of their parts.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/ShardedRun.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Support/RecipeAttribute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace titan;
using namespace titan::interpreter;

namespace {

constexpr int steps = 3;

/// Parameters [10], [1], [7] and [3, 5].
constexpr StringLiteral model = R"(
  titan.state @ten : tensor<10xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  titan.state @one : tensor<1xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  titan.state @seven : tensor<7xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  titan.state @matrix : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  func.func @model(%ten: tensor<10xf32> {titan.state = @ten}, %one: tensor<1xf32> {titan.state = @one}, %seven: tensor<7xf32> {titan.state = @seven},
      %matrix: tensor<3x5xf32> {titan.state = @matrix}, %x: tensor<2x10xf32> {titan.input = "x"}) -> (tensor<2x3xf32> {titan.output = "logits"}) {
    %rows = titan.broadcast %ten [1] : tensor<10xf32> to tensor<2x10xf32>
    %h = titan.mul %x, %rows : tensor<2x10xf32>
    %front = titan.slice %h offsets [0, 0] strides [1, 1] : tensor<2x10xf32> to tensor<2x5xf32>
    %y = titan.contract %front, %matrix batch [] x [] contracting [1] x [1] : (tensor<2x5xf32>, tensor<3x5xf32>) -> tensor<2x3xf32>
    %back = titan.slice %h offsets [0, 3] strides [1, 1] : tensor<2x10xf32> to tensor<2x7xf32>
    %weights = titan.broadcast %seven [1] : tensor<7xf32> to tensor<2x7xf32>
    %weighted = titan.mul %back, %weights : tensor<2x7xf32>
    %sum = titan.reduce sum %weighted [1] : tensor<2x7xf32> to tensor<2xf32>
    %shift = titan.broadcast %sum [0] : tensor<2xf32> to tensor<2x3xf32>
    %squares = titan.mul %shift, %y : tensor<2x3xf32>
    %scalar = titan.reshape %one : tensor<1xf32> to tensor<f32>
    %scale = titan.broadcast %scalar [] : tensor<f32> to tensor<2x3xf32>
    %scaled = titan.mul %squares, %scale : tensor<2x3xf32>
    return %scaled : tensor<2x3xf32>
  })";

class UnevenStates : public titan::interpreter::testing::ModuleFixture {
protected:
  UnevenStates() : ModuleFixture(registerAllDialects) {}

  /// The model with AdamW, decay and clipping, two microbatches a rank, up to `stage`.
  OwningOpRef<ModuleOp> compile(StringRef strategy, int64_t replicate, int64_t shard, Stage stage) {
    OwningOpRef<ModuleOp> module = parse(model);
    Recipe recipe;
    for (const std::string& key :
         {std::string("optimizer.weight_decay=0.1"), std::string("optimizer.eps=0"),
          std::string("optimizer.clip_norm=0.5"), fmt::format("mesh.strategy={}", strategy.str()),
          fmt::format("mesh.axes={{ replicate = {}, shard = {} }}", replicate, shard),
          std::string("batch.micro=2"), fmt::format("batch.global={}", 4 * replicate * shard)}) {
      const Status set = setKey(recipe, key);
      EXPECT_TRUE(set.ok()) << set.error().message();
    }
    setRecipe(*module, recipe);
    PassManager passes(&context);
    addStages(passes, Stage::Import, stage);
    message.clear();
    EXPECT_TRUE(succeeded(passes.run(*module))) << message;
    return module;
  }
  static func::FuncOp stepOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("step"); }

  /// The results as arguments of the next step.
  static void feed(func::FuncOp step, ArrayRef<Tensor> results, MutableArrayRef<Tensor> arguments) {
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      for (unsigned j = 0; j < step.getNumResults(); ++j)
        if (Attribute state = step.getArgAttr(i, ir::tag::state);
            state && state == step.getResultAttr(j, ir::tag::state))
          arguments[i] = results[j];
  }

  /// Steps with parts that are cut anew for each, with NaN behind them.
  Tensors runPoisoned(const ShardedRun& run, Tensors arguments) {
    FailureOr<Tensors> results;
    for (int i = 0; i < steps; ++i) {
      results = run.run(arguments, Engine::F64);
      EXPECT_TRUE(succeeded(results)) << message;
      if (failed(results))
        return {};
      feed(run.function(), *results, arguments);
    }
    return *results;
  }
  /// Steps in which each rank goes on with what it has, padding and all.
  Tensors runOn(ShardedRun run, ArrayRef<Tensor> arguments) {
    run.setPadding(Padding::LargeNumbers);
    FailureOr<Tensors> results =
        run.runEach(arguments, [&](Rank* rank, ArrayRef<Tensor> mine) -> FailureOr<Tensors> {
          Tensors own(mine);
          FailureOr<Tensors> given;
          for (int i = 0; i < steps; ++i) {
            given = interpreter::run(run.function(), own, Engine::F64, rank);
            if (failed(given))
              return failure();
            feed(run.function(), *given, own);
          }
          return given;
        });
    EXPECT_TRUE(succeeded(results)) << message;
    return succeeded(results) ? *results : Tensors();
  }

  void check(StringRef strategy, int64_t replicate, int64_t shard) {
    SCOPED_TRACE(fmt::format("{} on {} x {}", strategy.str(), replicate, shard));
    OwningOpRef<ModuleOp> whole = compile(strategy, replicate, shard, Stage::Accumulate),
                          parts = compile(strategy, replicate, shard, Stage::Shard);
    FailureOr<ShardedRun> job = ShardedRun::create(stepOf(*whole)),
                          ranks = ShardedRun::create(stepOf(*parts));
    ASSERT_TRUE(succeeded(job) && succeeded(ranks)) << message;
    EXPECT_TRUE(ranks->hasPadding());
    // @step of a rank takes the control that stops all, behind all others.
    Tensors arguments = randomArguments(stepOf(*parts), ranks->argumentTypes());
    const ArrayRef<Tensor> ofTheJob =
        ArrayRef(arguments).take_front(stepOf(*whole).getNumArguments());
    const Tensors wanted = runPoisoned(*job, Tensors(ofTheJob)),
                  poisoned = runPoisoned(*ranks, arguments), carried = runOn(*ranks, arguments);
    ASSERT_FALSE(wanted.empty() || poisoned.empty() || carried.empty());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(describeDifference(wanted[i], poisoned[i], 1e-11), "") << "result " << i;
    for (auto [i, one, other] : llvm::enumerate(poisoned, carried))
      EXPECT_EQ(describeDifference(one, other, 0), "") << "result " << i;
    for (double x : wanted.front().floats())
      EXPECT_TRUE(std::isfinite(x));
  }
};

TEST_F(UnevenStates, AreAsOnOneRank) {
  for (int64_t shard : {2, 4, 8})
    for (StringRef strategy : {"zero1", "zero2", "fsdp"})
      check(strategy, 1, shard);
  for (int64_t shard : {2, 4})
    for (StringRef strategy : {"zero1", "hsdp"})
      check(strategy, 2, shard);
}

} // namespace
