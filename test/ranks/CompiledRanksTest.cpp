// Programs of ranks, as *shard* leaves them, through every stage behind it and on CPU devices that
// meet in one process: each rank ends with the bits that the interpreter gives, and what it
// exchanged is what the ledger says.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/Ranks.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Support/RecipeAttribute.h"
#include "runtime/program/Ledger.h"
#include "runtime/program/Random.h"
#include "test/compiled/CompiledStep.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace mlir;
using titan::interpreter::Tensor;
using titan::interpreter::Tensors;

namespace titan {
namespace {

class CompiledRanks : public interpreter::testing::ModuleFixture {
protected:
  CompiledRanks() : ModuleFixture(registerAllDialects) {}

  /// Compiles `functions`, of one rank of `mesh`, whose loops run `microbatches` times, and runs
  /// @step both ways.
  void expectEqualRuns(const std::string& mesh, int64_t microbatches,
                       const std::string& functions) {
    auto axes = replaceAll(replaceAll(mesh, "\"", ""), ",", " : i64,") + " : i64";
    auto module = parse("module attributes {titan.stage = \"shard\", titan.model = \"small\", "
                        "titan.target = {kind = \"cpu\", cpu = \"x86-64-v3\", features = \"\"}, "
                        "dist.mesh = #dist.mesh<[" +
                        mesh + "]>, titan.recipe = {batch = {micro = 3 : i64, global = " +
                        std::to_string(3 * microbatches) + " : i64}, mesh = {axes = {" + axes +
                        "}}}} {\n" + functions + "\n}");
    ASSERT_TRUE(module);
    auto step = module->lookupSymbol<func::FuncOp>("step");
    const std::vector<MeshAxis> ranks = interpreter::meshAxesOf(step);
    arguments.clear();
    for (int64_t rank = 0; rank < rankCount(ranks); ++rank)
      arguments.push_back(argumentsOf(step, rank));
    std::vector<Tensors> expected(arguments.size());
    ASSERT_TRUE(succeeded(interpreter::runRanks(ranks, [&](interpreter::Rank& rank) {
      FailureOr<Tensors> results =
          interpreter::run(step, arguments[rank.number()], interpreter::Engine::F32, &rank);
      if (succeeded(results))
        expected[rank.number()] = *results;
      return LogicalResult(results);
    }))) << message;

    // With small buckets, and none of the passes on collectives, all but one, or all.
    static const std::string passes[] = {
        "titan-schedule-bucket-collectives", "titan-schedule-split-collectives",
        "titan-schedule-prefetch-gathers", "titan-schedule-overlap-reductions"};
    SmallVector<std::vector<std::string>> subsets = {{passes, std::end(passes)}, {}};
    for (const std::string& pass : passes)
      subsets.push_back({pass});
    setBucket(*module, 100);
    for (const std::vector<std::string>& skipped : subsets) {
      SCOPED_TRACE("without " + llvm::join(skipped, ", "));
      skipPasses(context, skipped);
      expectEqualRun(*module, expected);
      context.registerActionHandler({});
    }
    setBucket(*module, MeshRecipe().bucket);
    expectEqualRun(*module, expected);
  }

  static void setBucket(ModuleOp module, int64_t bytes) {
    FailureOr<Recipe> recipe = getRecipe(module);
    recipe->mesh.bucket = bytes;
    setRecipe(module, *recipe);
  }

  void expectEqualRun(ModuleOp module, ArrayRef<Tensors> expected) {
    Result<testing::CompiledStep> compiled = testing::CompiledStep::compile(module);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message() << ": " << message;
    program = compiled->program();
    Result<std::vector<Tensors>> found = compiled->run(arguments, threads);
    ASSERT_TRUE(found.ok()) << found.error().message();
    for (size_t rank = 0; rank < found->size(); ++rank)
      for (auto [i, both] : llvm::enumerate(llvm::zip_equal(expected[rank], (*found)[rank])))
        EXPECT_EQ(
            interpreter::describeDifference(std::get<0>(both), std::get<1>(both), /*tolerance=*/0),
            "")
            << "rank " << rank << ", result " << i;
    expectLedger(compiled->runs());
  }

  /// What rank `rank` has of the arguments: other whole numbers on each. They may be changed before
  /// it runs.
  virtual Tensors argumentsOf(func::FuncOp step, int64_t rank) {
    Tensors tensors;
    for (auto [i, type] : llvm::enumerate(step.getArgumentTypes()))
      tensors.push_back(testing::wholeNumbers(cast<ShapedType>(type), 100 * rank + i));
    return tensors;
  }

  int64_t copies() const {
    return llvm::count_if(program.findFunction("step")->commands,
                          [](const Command& command) { return command.kind == CommandKind::Copy; });
  }

  Program program;
  int threads = 1; ///< of each rank

private:
  /// Planned is counted; a group moves (r - 1) n bytes of n, an all_reduce twice that.
  void expectLedger(const std::vector<testing::RankRun>& runs) {
    const int64_t ranks = rankCount(program.mesh);
    for (const LedgerRow& row : ledgerOf(program)) {
      if (row.function != "step")
        continue;
      const Collective& collective = program.collectives[row.collectives.front()];
      const int64_t group = groupSize(collective.axes, program.mesh);
      int64_t whole = 0, moved = 0;
      for (const CollectivePiece& piece : collective.pieces)
        whole += piece.wholeBytes();
      for (const testing::RankRun& run : runs) {
        int64_t executions = 0, payload = 0;
        for (uint32_t number : row.collectives) {
          executions += run.traffic[number].executions;
          payload += run.traffic[number].payload;
          moved += run.traffic[number].moved;
        }
        EXPECT_EQ(executions, row.count) << row.source;
        EXPECT_EQ(payload, row.payload) << row.source;
      }
      const int64_t times = collective.kind == CollectiveKind::AllReduce ? 2 : 1;
      EXPECT_EQ(moved, row.count * ranks / group * times * (group - 1) * whole) << row.source;
    }
  }

  std::vector<Tensors> arguments; ///< of each rank
};

/// Two weights of a model, of which each rank on "shard" has rows or columns.
constexpr const char* cutStates = R"(
  titan.state @w : tensor<8x6xf32> {kind = #titan<kind param>, trainable, placement = #titan.placement<["shard" = shard(0)]>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @v : tensor<6x4xf32> {kind = #titan<kind param>, trainable, placement = #titan.placement<["shard" = shard(1)]>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
)";

/// One microbatch %xi: gathers for both passes, and gradients %dw, %dv.
constexpr const char* gatheringBody = R"(
      %full = dist.all_gather %w axes ["shard"] dims [0] {path = ["w"]} : tensor<4x6xf32> to tensor<8x6xf32>
      %h = titan.contract %xi, %full batch [] x [] contracting [1] x [1] {path = ["w"]} : (tensor<3x6xf32>, tensor<8x6xf32>) -> tensor<3x8xf32>
      %wide = dist.all_gather %v axes ["shard"] dims [1] {path = ["v"]} : tensor<6x2xf32> to tensor<6x4xf32>
      %u = titan.contract %xi, %wide batch [] x [] contracting [1] x [0] {path = ["v"]} : (tensor<3x6xf32>, tensor<6x4xf32>) -> tensor<3x4xf32>
      %again = dist.all_gather %w axes ["shard"] dims [0] {path = ["w"], phase = #titan<phase backward>} : tensor<4x6xf32> to tensor<8x6xf32>
      %dx = titan.contract %h, %again batch [] x [] contracting [1] x [0] {path = ["w"], phase = #titan<phase backward>} : (tensor<3x8xf32>, tensor<8x6xf32>) -> tensor<3x6xf32>
      %dw = titan.contract %h, %dx batch [] x [] contracting [0] x [0] {path = ["w"], phase = #titan<phase backward>} : (tensor<3x8xf32>, tensor<3x6xf32>) -> tensor<8x6xf32>
      %dv = titan.contract %xi, %u batch [] x [] contracting [0] x [0] {path = ["v"], phase = #titan<phase backward>} : (tensor<3x6xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
)";

constexpr const char* cutUpdate = R"(
    %w1 = titan.sub %w, %mw {phase = #titan<phase update>} : tensor<4x6xf32>
    %v1 = titan.sub %v, %mv {phase = #titan<phase update>} : tensor<6x2xf32>
    return %w1, %v1 : tensor<4x6xf32>, tensor<6x2xf32>
  }
)";

/// Gathers in the loop, one reduce_scatter behind it, the shards summed over "replicate".
TEST_F(CompiledRanks, DeferredSumsOfShards) {
  const std::string step = R"(
  func.func @step(%w: tensor<4x6xf32> {titan.state = @w}, %v: tensor<6x2xf32> {titan.state = @v}, %x: tensor<Kx3x6xf32> {titan.input = "x"})
      -> (tensor<4x6xf32> {titan.state = @w}, tensor<6x2xf32> {titan.state = @v}) {
    %zw = titan.constant dense<0.0> : tensor<8x6xf32>
    %zv = titan.constant dense<0.0> : tensor<6x4xf32>
    %s:2 = accum.loop %i in K running slices(%xi = %x : tensor<Kx3x6xf32>) accumulators(%a = %zw : tensor<8x6xf32>, %b = %zv : tensor<6x4xf32>) -> (tensor<8x6xf32>, tensor<6x4xf32>) {
      BODY
      %na = titan.add %a, %dw {phase = #titan<phase backward>} : tensor<8x6xf32>
      %nb = titan.add %b, %dv {phase = #titan<phase backward>} : tensor<6x4xf32>
      accum.yield %na, %nb : tensor<8x6xf32>, tensor<6x4xf32>
    }
    %pw, %pv = dist.reduce_scatter sum %s#0, %s#1 axes ["shard"] dims [0, 1] order rank {path = ["w", "v"], phase = #titan<phase backward>}
        : tensor<8x6xf32>, tensor<6x4xf32> to tensor<4x6xf32>, tensor<6x2xf32>
    %mw, %mv = dist.all_reduce sum %pw, %pv axes ["replicate"] order rank {path = ["w", "v"], phase = #titan<phase backward>}
        : tensor<4x6xf32>, tensor<6x2xf32> to tensor<4x6xf32>, tensor<6x2xf32>
)";
  for (int64_t count : {1, 3}) {
    SCOPED_TRACE(count);
    expectEqualRuns(
        "\"replicate\" = 2, \"shard\" = 2", 4 * count,
        cutStates +
            replaceAll(replaceAll(step, "BODY", gatheringBody), "K", std::to_string(count)) +
            cutUpdate);
    EXPECT_EQ(copies(), 2); // each state once a step, to where the others read
    for (const LedgerRow& row : ledgerOf(program))
      EXPECT_EQ(row.count, row.kind == CollectiveKind::AllGather ? count : 1);
  }
}

/// Sums over "shard" behind an inner loop, over "replicate" behind both.
TEST_F(CompiledRanks, SumsInNestedLoops) {
  const std::string step = R"(
  func.func @step(%w: tensor<4x6xf32> {titan.state = @w}, %v: tensor<6x2xf32> {titan.state = @v}, %all: tensor<6x3x6xf32> {titan.input = "x"})
      -> (tensor<4x6xf32> {titan.state = @w}, tensor<6x2xf32> {titan.state = @v}) {
    %zw = titan.constant dense<0.0> : tensor<8x6xf32>
    %zv = titan.constant dense<0.0> : tensor<6x4xf32>
    %zpw = titan.constant dense<0.0> : tensor<4x6xf32>
    %zpv = titan.constant dense<0.0> : tensor<6x2xf32>
    %x = titan.reshape %all : tensor<6x3x6xf32> to tensor<OUTERxINNERx3x6xf32>
    %s:2 = accum.loop %j in OUTER running slices(%xj = %x : tensor<OUTERxINNERx3x6xf32>) accumulators(%c = %zpw : tensor<4x6xf32>, %d = %zpv : tensor<6x2xf32>) -> (tensor<4x6xf32>, tensor<6x2xf32>) {
      %t:2 = accum.loop %i in INNER running slices(%xi = %xj : tensor<INNERx3x6xf32>) accumulators(%a = %zw : tensor<8x6xf32>, %b = %zv : tensor<6x4xf32>) -> (tensor<8x6xf32>, tensor<6x4xf32>) {
        BODY
        %na = titan.add %a, %dw {phase = #titan<phase backward>} : tensor<8x6xf32>
        %nb = titan.add %b, %dv {phase = #titan<phase backward>} : tensor<6x4xf32>
        accum.yield %na, %nb : tensor<8x6xf32>, tensor<6x4xf32>
      }
      %pw = dist.reduce_scatter sum %t#0 axes ["shard"] dims [0] order rank {path = ["w"], phase = #titan<phase backward>} : tensor<8x6xf32> to tensor<4x6xf32>
      %pv = dist.reduce_scatter sum %t#1 axes ["shard"] dims [1] order rank {path = ["v"], phase = #titan<phase backward>} : tensor<6x4xf32> to tensor<6x2xf32>
      %nc = titan.add %c, %pw {phase = #titan<phase backward>} : tensor<4x6xf32>
      %nd = titan.add %d, %pv {phase = #titan<phase backward>} : tensor<6x2xf32>
      accum.yield %nc, %nd : tensor<4x6xf32>, tensor<6x2xf32>
    }
    %mw, %mv = dist.all_reduce sum %s#0, %s#1 axes ["replicate"] order rank {path = ["w", "v"], phase = #titan<phase backward>}
        : tensor<4x6xf32>, tensor<6x2xf32> to tensor<4x6xf32>, tensor<6x2xf32>
)";
  for (int64_t inner : {1, 2, 3, 6}) {
    SCOPED_TRACE(inner);
    const int64_t outer = 6 / inner;
    std::string nest = replaceAll(step, "OUTER", std::to_string(outer));
    nest = replaceAll(replaceAll(nest, "INNER", std::to_string(inner)), "BODY", gatheringBody);
    expectEqualRuns("\"replicate\" = 2, \"shard\" = 2", 24, cutStates + nest + cutUpdate);
    EXPECT_EQ(copies(), 2);
    for (const LedgerRow& row : ledgerOf(program))
      EXPECT_EQ(row.count, row.kind == CollectiveKind::AllGather       ? 6
                           : row.kind == CollectiveKind::ReduceScatter ? outer
                                                                       : 1);
  }
}

/// A sum behind a nest of loops of two: the last microbatch stands behind all of them, and each way
/// to it holds the loops of before.
TEST_F(CompiledRanks, OneSumBehindANest) {
  expectEqualRuns("\"replicate\" = 2", 16, R"(
  func.func @step(%all: tensor<8x3x6xf32> {titan.input = "x"}) -> (tensor<6x6xf32> {titan.output = "g"}) {
    %z = titan.constant dense<0.0> : tensor<6x6xf32>
    %x = titan.reshape %all : tensor<8x3x6xf32> to tensor<2x2x2x3x6xf32>
    %s = accum.loop %h in 2 running slices(%xh = %x : tensor<2x2x2x3x6xf32>) accumulators(%a = %z : tensor<6x6xf32>) -> (tensor<6x6xf32>) {
      %t = accum.loop %i in 2 running slices(%xi = %xh : tensor<2x2x3x6xf32>) accumulators(%b = %z : tensor<6x6xf32>) -> (tensor<6x6xf32>) {
        %u = accum.loop %j in 2 running slices(%xj = %xi : tensor<2x3x6xf32>) accumulators(%c = %z : tensor<6x6xf32>) -> (tensor<6x6xf32>) {
          %y = titan.relu %xj : tensor<3x6xf32>
          %nc = titan.contract %y, %xj acc %c batch [] x [] contracting [0] x [0] {path = ["w"], phase = #titan<phase backward>} : (tensor<3x6xf32>, tensor<3x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
          accum.yield %nc : tensor<6x6xf32>
        }
        %nb = titan.add %b, %u {phase = #titan<phase backward>} : tensor<6x6xf32>
        accum.yield %nb : tensor<6x6xf32>
      }
      %na = titan.add %a, %t {phase = #titan<phase backward>} : tensor<6x6xf32>
      accum.yield %na : tensor<6x6xf32>
    }
    %g = dist.all_reduce sum %s axes ["replicate"] order tree {path = ["w"], phase = #titan<phase backward>} : tensor<6x6xf32> to tensor<6x6xf32>
    return %g : tensor<6x6xf32>
  })");
  const Function& step = *program.findFunction("step");
  const std::vector<int64_t> times = executionsOf(step);
  int64_t repeats = 0, products = 0, places = 0;
  for (auto [command, executions] : llvm::zip_equal(step.commands, times)) {
    repeats += command.kind == CommandKind::Repeat;
    if (command.kind == CommandKind::Library) {
      products += executions;
      ++places;
    }
  }
  EXPECT_EQ(repeats, 3 + 2 + 1);
  EXPECT_EQ(places, 4);
  EXPECT_EQ(products, 8);
}

/// Each rank updates its part of a parameter that all have, along one dimension or another.
TEST_F(CompiledRanks, PartsOfReplicatedParameters) {
  expectEqualRuns("\"replicate\" = 2, \"shard\" = 3", 6, R"(
  titan.state @w : tensor<12x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @v : tensor<2x6x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step(%w: tensor<12x2xf32> {titan.state = @w}, %v: tensor<2x6x3xf32> {titan.state = @v}, %x: tensor<1x12x2xf32> {titan.input = "x"}, %y: tensor<1x2x6x3xf32> {titan.input = "y"})
      -> (tensor<12x2xf32> {titan.state = @w}, tensor<2x6x3xf32> {titan.state = @v}) {
    %dx = titan.reshape %x : tensor<1x12x2xf32> to tensor<12x2xf32>
    %dw = titan.mul %dx, %w {phase = #titan<phase backward>} : tensor<12x2xf32>
    %dy = titan.reshape %y : tensor<1x2x6x3xf32> to tensor<2x6x3xf32>
    %dv = titan.mul %dy, %v {phase = #titan<phase backward>} : tensor<2x6x3xf32>
    %gw = dist.reduce_scatter sum %dw axes ["replicate", "shard"] dims [0] order rank {phase = #titan<phase backward>} : tensor<12x2xf32> to tensor<2x2xf32>
    %pv = dist.reduce_scatter sum %dv axes ["shard"] dims [1] order rank {phase = #titan<phase backward>} : tensor<2x6x3xf32> to tensor<2x2x3xf32>
    %gv = dist.all_reduce sum %pv axes ["replicate"] order rank {phase = #titan<phase backward>} : tensor<2x2x3xf32> to tensor<2x2x3xf32>
    %mw = dist.take_shard %w axes ["replicate", "shard"] dim 0 {phase = #titan<phase update>} : tensor<12x2xf32> to tensor<2x2xf32>
    %nw = titan.sub %mw, %gw {phase = #titan<phase update>} : tensor<2x2xf32>
    %w1 = dist.all_gather %nw axes ["replicate", "shard"] dims [0] {path = ["w"], phase = #titan<phase update>} : tensor<2x2xf32> to tensor<12x2xf32>
    %mv = dist.take_shard %v axes ["shard"] dim 1 {phase = #titan<phase update>} : tensor<2x6x3xf32> to tensor<2x2x3xf32>
    %nv = titan.sub %mv, %gv {phase = #titan<phase update>} : tensor<2x2x3xf32>
    %v1 = dist.all_gather %nv axes ["shard"] dims [1] {path = ["v"], phase = #titan<phase update>} : tensor<2x2x3xf32> to tensor<2x6x3xf32>
    return %w1, %v1 : tensor<12x2xf32>, tensor<2x6x3xf32>
  })");
  EXPECT_EQ(copies(), 0); // from part to source, from there into the state
}

/// A bucket of several types, cut along several dimensions.
TEST_F(CompiledRanks, BucketsOfSeveralTypes) {
  expectEqualRuns("\"replicate\" = 2, \"shard\" = 2", 4, R"(
  func.func @step(%x: tensor<1x4x3x2xf32> {titan.input = "x"}, %y: tensor<1x5x4xbf16> {titan.input = "y"}, %n: tensor<1x4xi64> {titan.input = "n"})
      -> (tensor<4x6x2xf32> {titan.output = "a"}, tensor<5x8xbf16> {titan.output = "b"}, tensor<8xi64> {titan.output = "c"}, tensor<1x3x2xf32> {titan.output = "d"}, tensor<5x1xbf16> {titan.output = "e"}) {
    %xs = titan.reshape %x : tensor<1x4x3x2xf32> to tensor<4x3x2xf32>
    %ys = titan.reshape %y : tensor<1x5x4xbf16> to tensor<5x4xbf16>
    %ns = titan.reshape %n : tensor<1x4xi64> to tensor<4xi64>
    %a, %b, %c = dist.all_gather %xs, %ys, %ns axes ["shard"] dims [1, 1, 0] : tensor<4x3x2xf32>, tensor<5x4xbf16>, tensor<4xi64> to tensor<4x6x2xf32>, tensor<5x8xbf16>, tensor<8xi64>
    %twice = titan.add %xs, %xs {phase = #titan<phase backward>} : tensor<4x3x2xf32>
    %d, %e = dist.reduce_scatter sum %twice, %ys axes ["replicate", "shard"] dims [0, 1] order tree {phase = #titan<phase backward>}
        : tensor<4x3x2xf32>, tensor<5x4xbf16> to tensor<1x3x2xf32>, tensor<5x1xbf16>
    return %a, %b, %c, %d, %e : tensor<4x6x2xf32>, tensor<5x8xbf16>, tensor<8xi64>, tensor<1x3x2xf32>, tensor<5x1xbf16>
  })");
}

/// Rows or columns that do not divide: terms are padded with zeros, what is gathered is cut, and
/// what states hold as padding reaches nothing.
class PaddedRanks : public CompiledRanks {
protected:
  Tensors argumentsOf(func::FuncOp step, int64_t rank) override {
    Tensors tensors = CompiledRanks::argumentsOf(step, rank);
    const int64_t shard = rank % 2;
    if (shard == 1)
      for (int64_t i = 0; i < 4; ++i) // the last row of @w, the last column of @v
        tensors[0].mutableFloats()[2 * 4 + i] = tensors[1].mutableFloats()[3 * i + 2] = NAN;
    return tensors;
  }
};

TEST_F(PaddedRanks, PaddingReachesNothing) {
  expectEqualRuns("\"replicate\" = 1, \"shard\" = 2", 4, R"(
  titan.state @w : tensor<5x4xf32> {kind = #titan<kind param>, trainable, placement = #titan.placement<["shard" = shard(0)]>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @v : tensor<4x5xf32> {kind = #titan<kind param>, trainable, placement = #titan.placement<["shard" = shard(1)]>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step(%w: tensor<3x4xf32> {titan.state = @w}, %v: tensor<4x3xf32> {titan.state = @v}, %x: tensor<2x3x4xf32> {titan.input = "x"})
      -> (tensor<3x4xf32> {titan.state = @w}, tensor<4x3xf32> {titan.state = @v}, tensor<5x4xf32> {titan.output = "y"}, tensor<4x5xf32> {titan.output = "z"}) {
    %zw = titan.constant dense<0.0> : tensor<5x4xf32>
    %zv = titan.constant dense<0.0> : tensor<4x5xf32>
    %s:2 = accum.loop %i in 2 running slices(%xi = %x : tensor<2x3x4xf32>) accumulators(%a = %zw : tensor<5x4xf32>, %b = %zv : tensor<4x5xf32>) -> (tensor<5x4xf32>, tensor<4x5xf32>) {
      %pw = dist.all_gather %w axes ["shard"] dims [0] : tensor<3x4xf32> to tensor<6x4xf32>
      %fw = titan.slice %pw offsets [0, 0] strides [1, 1] : tensor<6x4xf32> to tensor<5x4xf32>
      %pv = dist.all_gather %v axes ["shard"] dims [1] : tensor<4x3xf32> to tensor<4x6xf32>
      %fv = titan.slice %pv offsets [0, 0] strides [1, 1] : tensor<4x6xf32> to tensor<4x5xf32>
      %h = titan.contract %xi, %fw batch [] x [] contracting [1] x [1] : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
      %u = titan.contract %xi, %fv batch [] x [] contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
      %dw = titan.contract %u, %xi batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
      %dv = titan.contract %xi, %h batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
      %na = titan.add %a, %dw {phase = #titan<phase backward>} : tensor<5x4xf32>
      %nb = titan.add %b, %dv {phase = #titan<phase backward>} : tensor<4x5xf32>
      accum.yield %na, %nb : tensor<5x4xf32>, tensor<4x5xf32>
    }
    %aw = titan.pad %s#0 low [0, 0] interior [0, 0] {phase = #titan<phase backward>, value = 0.0 : f64} : tensor<5x4xf32> to tensor<6x4xf32>
    %av = titan.pad %s#1 low [0, 0] interior [0, 0] {phase = #titan<phase backward>, value = 0.0 : f64} : tensor<4x5xf32> to tensor<4x6xf32>
    %gw, %gv = dist.reduce_scatter sum %aw, %av axes ["shard"] dims [0, 1] order rank {phase = #titan<phase backward>}
        : tensor<6x4xf32>, tensor<4x6xf32> to tensor<3x4xf32>, tensor<4x3xf32>
    %w1 = titan.sub %w, %gw {phase = #titan<phase update>} : tensor<3x4xf32>
    %v1 = titan.sub %v, %gv {phase = #titan<phase update>} : tensor<4x3xf32>
    return %w1, %v1, %s#0, %s#1 : tensor<3x4xf32>, tensor<4x3xf32>, tensor<5x4xf32>, tensor<4x5xf32>
  })");
  EXPECT_EQ(copies(), 2); // the states; padded terms are written where others read them
}

/// Arguments of all sizes.
class ExactSums : public CompiledRanks {
protected:
  Tensors argumentsOf(func::FuncOp step, int64_t rank) override {
    Tensors tensors = CompiledRanks::argumentsOf(step, rank);
    for (Tensor& tensor : tensors)
      for (auto [i, x] : llvm::enumerate(tensor.mutableFloats())) {
        x = std::bit_cast<float>(philox4x32_7(rank, i, 0)[0]);
        if (!std::isfinite(x))
          x = -0.0;
      }
    if (notFinite)
      tensors[0].mutableFloats()[rank + 5] = *notFinite;
    return tensors;
  }
  std::optional<double> notFinite; ///< an argument of each rank
};

/// Any number of threads; more elements than f64 adds exactly.
TEST_F(ExactSums, ThreadsChangeNoBit) {
  const auto check = [&](int64_t count, int onThreads) {
    SCOPED_TRACE(std::to_string(count) + " elements, " + std::to_string(onThreads) + " threads");
    threads = onThreads;
    expectEqualRuns("\"replicate\" = 1, \"shard\" = 1", 1,
                    replaceAll(R"(
  func.func @step(%x: tensor<1xCOUNTxf32> {titan.input = "x"}) -> (tensor<10xi64> {titan.output = "words"}, tensor<f32> {titan.output = "value"}) {
    %words = titan.exact_sum %x : tensor<1xCOUNTxf32> to tensor<10xi64>
    %value = titan.exact_value %words : tensor<10xi64> to tensor<f32>
    return %words, %value : tensor<10xi64>, tensor<f32>
  })",
                               "COUNT", std::to_string(count)));
  };
  for (int64_t count : {1, 77, 5000})
    for (int onThreads : {1, 2, 3})
      check(count, onThreads);
  check((1 << 21) + 3, 2);
}

/// Ranks add words, and read the value of the sum.
TEST_F(ExactSums, RanksAddWords) {
  const auto check = [&](const std::string& ranks) {
    SCOPED_TRACE(ranks + " ranks");
    expectEqualRuns("\"replicate\" = 1, \"shard\" = " + ranks, std::stoi(ranks), R"(
  func.func @step(%x: tensor<1x40xf32> {titan.input = "x"}) -> (tensor<10xi64> {titan.output = "words"}, tensor<f32> {titan.output = "value"}) {
    %mine = titan.exact_sum %x {phase = #titan<phase update>} : tensor<1x40xf32> to tensor<10xi64>
    %words = dist.all_reduce sum %mine axes ["shard"] order rank {phase = #titan<phase update>} : tensor<10xi64> to tensor<10xi64>
    %value = titan.exact_value %words {phase = #titan<phase update>} : tensor<10xi64> to tensor<f32>
    return %words, %value : tensor<10xi64>, tensor<f32>
  })");
  };
  for (const char* ranks : {"2", "3", "4"})
    check(ranks);
  for (double number : {INFINITY, -INFINITY, NAN}) {
    notFinite = number;
    check("2");
  }
}

} // namespace
} // namespace titan
