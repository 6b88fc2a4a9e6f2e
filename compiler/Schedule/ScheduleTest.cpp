// Schedules by execution: whatever is reordered, cut or computed twice, a step gives the same bits
// (cut losses: the same up to rounding), and its plan fits.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Pipeline/MeasurePlan.h"
#include "compiler/Schedule/ChunkLoss.h"
#include "compiler/Schedule/MemoryReasons.h"
#include "compiler/Schedule/Rematerialize.h"
#include "compiler/Schedule/testing/ScheduleFixture.h"
#include "compiler/Support/RecipeAttribute.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan;
using namespace titan::schedule;
using titan::schedule::testing::GptShape;

namespace {

class Schedule : public titan::schedule::testing::ScheduleFixture {
protected:
  /// A product [64, 64] of each of six microbatches; `loop` gives %g, made of them.
  OwningOpRef<ModuleOp> parseStep(const std::string& loop, const std::string& attributes = "") {
    std::string text = replaceAll(R"(
      module attributes {$ATTRIBUTES} {
      func.func @step(%x: tensor<6x8x64xf32> {titan.input = "x"}) -> tensor<64x64xf32> {
        %z = titan.constant dense<0.0> : tensor<64x64xf32>
        $LOOP
        %n = titan.neg %g {phase = #titan<phase update>} : tensor<64x64xf32>
        return %n : tensor<64x64xf32>
      }})",
                                  "$LOOP", loop);
    text = replaceAll(text, "$ATTRIBUTES", attributes);
    text = replaceAll(text, "$BODY", R"(
          %h = titan.exp %xi : tensor<8x64xf32>
          %d = titan.contract %h, %xi batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>}
              : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>)");
    return parse(replaceAll(text, "$T", "tensor<64x64xf32>"));
  }
  static func::FuncOp stepOf(ModuleOp module) {
    return module.lookupSymbol<func::FuncOp>(ir::function::step);
  }
  static void expectEqual(ModuleOp before, ModuleOp after, double tolerance) {
    interpreter::EquivalenceOptions options;
    options.engine = tolerance == 0 ? interpreter::Engine::F32 : interpreter::Engine::F64;
    options.tolerance = tolerance;
    options.random.integerBound = 8;
    EXPECT_TRUE(succeeded(interpreter::checkEquivalent(before, after, options)));
  }
};

std::vector<GptShape> shapes() {
  std::vector<GptShape> all;
  for (int64_t microbatches : {1, 3})
    for (double dropout : {0.0, 0.25})
      for (bool isTied : {true, false}) {
        GptShape shape;
        shape.microbatches = microbatches;
        shape.dropout = dropout;
        shape.isTied = isTied;
        all.push_back(shape);
      }
  return all;
}

TEST_F(Schedule, OrderAndInliningKeepBits) {
  for (const GptShape& shape : shapes()) {
    auto before = make(shape, Stage::Shard);
    OwningOpRef<ModuleOp> after = before->clone();
    advance(*after, Stage::Shard, Stage::Schedule);
    int loops = 0;
    after->walk([&](accum::LoopOp) { ++loops; });
    EXPECT_EQ(loops, shape.microbatches > 1);
    expectEqual(*before, *after, 0);
  }
}

TEST_F(Schedule, RecomputationKeepsBits) {
  for (const GptShape& shape : shapes()) {
    auto before = make(shape, Stage::Schedule);
    const int64_t peak = MemoryModel(stepOf(*before), MachineModel()).run().peak();
    for (int64_t percent : {90, 75, 50, 1}) {
      OwningOpRef<ModuleOp> after = before->clone();
      MemoryModel model(stepOf(*after), MachineModel());
      Recomputation choice = chooseRecomputation(model, peak * percent / 100);
      EXPECT_EQ(choice.fits, choice.timeline.peak() <= peak * percent / 100);
      EXPECT_TRUE(choice.evicted.any());
      rematerialize(model, choice, /*withRemarks=*/false);
      EXPECT_TRUE(succeeded(verify(*after)));
      // What the model said of the choice is what it says of the result.
      MemoryModel again(stepOf(*after), MachineModel());
      EXPECT_NEAR(again.run().peak(), choice.timeline.peak(), 0.05 * peak) << percent << " %";
      expectEqual(*before, *after, 0);
    }
  }
}

TEST_F(Schedule, AnInnerLoopSumsWhereTheOuterOneDoes) {
  auto flat = parseStep(R"(
      %g = accum.loop %i in 6 running slices(%xi = %x : tensor<6x8x64xf32>) accumulators(%a = %z : $T) -> ($T) {
        $BODY
        %b = titan.add %a, %d : $T
        accum.yield %b : $T
      })");
  auto nested = parseStep(R"(
      %xs = titan.reshape %x : tensor<6x8x64xf32> to tensor<2x3x8x64xf32>
      %g = accum.loop %i in 2 running slices(%xo = %xs : tensor<2x3x8x64xf32>) accumulators(%o = %z : $T) -> ($T) {
        %s = accum.loop %j in 3 running slices(%xi = %xo : tensor<3x8x64xf32>) accumulators(%a = %o : $T) -> ($T) {
          $BODY
          %b = titan.add %a, %d : $T
          accum.yield %b : $T
        }
        accum.yield %s : $T
      })");
  EXPECT_EQ(MemoryModel(stepOf(*nested), MachineModel()).run().peak(),
            MemoryModel(stepOf(*flat), MachineModel()).run().peak());
  expectEqual(*flat, *nested, 0);
}

/// Its products have the room of those of the loop, and it goes on with the loop's sum.
TEST_F(Schedule, AnIterationBehindItsLoopNeedsNoMore) {
  const std::string ranks = R"(dist.mesh = #dist.mesh<["shard" = 2]>)", sum = R"(
      %g = dist.all_reduce sum %s axes ["shard"] order rank {phase = #titan<phase backward>} : $T to $T)";
  auto whole = parseStep(R"(
      %s = accum.loop %i in 6 running slices(%xi = %x : tensor<6x8x64xf32>) accumulators(%a = %z : $T) -> ($T) {
        $BODY
        %b = titan.add %a, %d : $T
        accum.yield %b : $T
      })" + sum,
                         ranks);
  auto peeled = parseStep(R"(
      %first = titan.slice %x offsets [0, 0, 0] strides [1, 1, 1] : tensor<6x8x64xf32> to tensor<5x8x64xf32>
      %t = accum.loop %i in 5 running slices(%xi = %first : tensor<5x8x64xf32>) accumulators(%a = %z : $T) -> ($T) {
        $BODY
        %b = titan.add %a, %d : $T
        accum.yield %b : $T
      } {accum.peeled}
      %row = titan.slice %x offsets [5, 0, 0] strides [1, 1, 1] : tensor<6x8x64xf32> to tensor<1x8x64xf32>
      %xi = titan.reshape %row : tensor<1x8x64xf32> to tensor<8x64xf32>
      $BODY
      %s = titan.add %t, %d : $T)" +
                              sum,
                          ranks);
  EXPECT_EQ(MemoryModel(stepOf(*peeled), MachineModel()).run().peak(),
            MemoryModel(stepOf(*whole), MachineModel()).run().peak());
}

TEST_F(Schedule, AStackIsLiveInTheWholeLoop) {
  auto module = parseStep(R"(
      %all = accum.loop %i in 6 running stacked = 1 slices(%xi = %x : tensor<6x8x64xf32>) -> (tensor<6x64x64xf32>) {
        $BODY
        accum.yield %d : $T
      }
      %g = titan.reduce sum %all [0] : tensor<6x64x64xf32> to $T)");
  MemoryModel model(stepOf(*module), MachineModel());
  const Timeline timeline = model.run();
  for (int64_t live : ArrayRef(timeline.live).take_front(2)) // the ops of the body
    EXPECT_GE(live, 6 * 64 * 64 * 4);
}

TEST_F(Schedule, ADeepModelIsRecomputedBlockByBlock) {
  GptShape shape;
  shape.layers = 8;
  shape.positions = 256;
  shape.width = 64; // where products cost more than passes over memory
  auto module = make(shape, Stage::Schedule);
  MemoryModel model(stepOf(*module), MachineModel());
  const int64_t peak = model.run().peak();
  Recomputation choice = chooseRecomputation(model, peak / 2);
  EXPECT_TRUE(choice.fits);
  // Cheap ops first: a little memory costs no product.
  EXPECT_LT(chooseRecomputation(model, peak * 9 / 10).timeline.flops, choice.timeline.flops / 4);
}

TEST_F(Schedule, CutLossesKeepTheirMeaning) {
  for (const GptShape& shape : shapes())
    for (int64_t chunks : {2, 4, 16}) {
      auto before = make(shape, Stage::Schedule);
      OwningOpRef<ModuleOp> after = before->clone();
      chunkLosses(stepOf(*after), chunks, /*withRemarks=*/false);
      int losses = 0;
      stepOf(*after).walk([&](ir::CrossEntropyOp) { ++losses; });
      EXPECT_EQ(losses, chunks);
      EXPECT_TRUE(succeeded(verify(*after)));
      expectEqual(*before, *after, 1e-9);
    }
}

/// The products stand for attention where nothing lowers it.
GptShape plannable() {
  GptShape shape;
  shape.layers = 4;
  shape.positions = 32;
  shape.vocabulary = 256;
  shape.isDecomposed = true;
  return shape;
}

TEST_F(Schedule, APlanFitsTheLimit) {
  for (int64_t microbatches : {1, 2}) {
    GptShape shape = plannable();
    shape.microbatches = microbatches;
    auto shard = make(shape, Stage::Shard);
    OwningOpRef<ModuleOp> free = shard->clone();
    advance(*free, Stage::Shard, Stage::Schedule);
    FailureOr<int64_t> bytes = measurePlan(*free);
    ASSERT_TRUE(succeeded(bytes));
    const int64_t temporaries = *bytes - permanentBytes(*free);
    for (int percent : {95, 80, 65}) {
      OwningOpRef<ModuleOp> fitted = shard->clone();
      FailureOr<Recipe> recipe = getRecipe(*fitted);
      recipe->memory.limit = *bytes - temporaries * (100 - percent) / 100;
      setRecipe(*fitted, *recipe);
      advance(*fitted, Stage::Shard, Stage::Schedule);
      FailureOr<int64_t> needed = measurePlan(*fitted);
      ASSERT_TRUE(succeeded(needed));
      EXPECT_LE(*needed, recipe->memory.limit) << percent << " %";
      expectEqual(*shard, *fitted, 1e-9);
      // And the job can be made: no later stage finds it too large.
      advance(*fitted, Stage::Schedule, Stage::Plan);
    }
  }
}

TEST_F(Schedule, TheModelIsCloseToThePlan) {
  GptShape shape = plannable();
  shape.width = 64;
  shape.batch = 4;
  for (int64_t microbatches : {1, 2}) {
    shape.microbatches = microbatches;
    auto module = make(shape, Stage::Schedule);
    FailureOr<int64_t> bytes = measurePlan(*module);
    ASSERT_TRUE(succeeded(bytes));
    const int64_t temporaries = *bytes - permanentBytes(*module);
    EXPECT_NEAR(MemoryModel(stepOf(*module), MachineModel()).run().peak(), temporaries,
                0.2 * temporaries);
  }
}

TEST_F(Schedule, FullRecomputesEverythingThatLowersThePeak) {
  GptShape shape = plannable();
  auto kept = make(shape, Stage::Schedule);
  shape.memory = "remat = \"full\"";
  auto full = make(shape, Stage::Schedule);
  FailureOr<int64_t> before = measurePlan(*kept), after = measurePlan(*full);
  ASSERT_TRUE(succeeded(before) && succeeded(after));
  EXPECT_LT(*after, *before);
  int barriers = 0;
  full->walk([&](ir::BarrierOp) { ++barriers; });
  EXPECT_GT(barriers, 0);
  expectEqual(*kept, *full, 1e-9);
}

} // namespace
