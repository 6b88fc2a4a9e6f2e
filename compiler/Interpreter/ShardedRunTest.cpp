// A program of one rank, run on all of them, is the job that it was made of; and each way to get
// that wrong shows.
#include "compiler/Interpreter/ShardedRun.h"
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan::interpreter;

namespace {

/// Sixteen samples in microbatches of two: eight of the job, two of each rank of 2 x 2.
constexpr StringLiteral header = R"(
  module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 16 : i64},
      mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}},
      dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>} {
    titan.state @w : tensor<5x3xf32> {kind = #titan<kind param>, trainable,
        init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #titan.placement<["shard" = shard(0)]>}
    titan.state @b : tensor<5xf32> {kind = #titan<kind param>, trainable,
        init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
)";

/// One microbatch: of %wi [5, 3], %b, %xi and %base the gradients %gw, %gb and the loss %l.
constexpr StringLiteral microbatch = R"(
      %xd = titan.dropout %xi p 0.5 stream 7 seed %seed step %seed base %base
          {window = #titan.window<[16, 3], multiple = 6>} : tensor<2x3xf32> to tensor<2x3xf32>
      %p = titan.contract %xd, %wi batch [] x [] contracting [1] x [1] : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
      %rows = titan.broadcast %b [1] : tensor<5xf32> to tensor<2x5xf32>
      %y = titan.add %p, %rows : tensor<2x5xf32>
      %q = titan.mul %y, %y : tensor<2x5xf32>
      %l = titan.reduce sum %q [0, 1] : tensor<2x5xf32> to tensor<f32>
      %gw = titan.contract %y, %xd batch [] x [] contracting [0] x [0] : (tensor<2x5xf32>, tensor<2x3xf32>) -> tensor<5x3xf32>
      %gb = titan.reduce sum %y [0] : tensor<2x5xf32> to tensor<5xf32>
)";

constexpr StringLiteral ofTheJob = R"(
    func.func @step(%w: tensor<5x3xf32> {titan.state = @w}, %b: tensor<5xf32> {titan.state = @b}, %x: tensor<8x2x3xf32> {titan.input = "x"},
        %seed: tensor<i64> {titan.control = "train.seed"}, %stop: tensor<i64> {titan.control = "stop"})
        -> (tensor<5x3xf32> {titan.state = @w}, tensor<5xf32> {titan.state = @b}, tensor<f32> {titan.metric = "loss"}, tensor<i64> {titan.metric = "stop"}) {
      %zw = titan.constant dense<0.0> : tensor<5x3xf32>
      %zb = titan.constant dense<0.0> : tensor<5xf32>
      %zl = titan.constant dense<0.0> : tensor<f32>
      %c6 = arith.constant 6 : index
      %s:3 = accum.loop %i in 8 running slices(%xi = %x : tensor<8x2x3xf32>)
          accumulators(%aw = %zw : tensor<5x3xf32>, %ab = %zb : tensor<5xf32>, %al = %zl : tensor<f32>) -> (tensor<5x3xf32>, tensor<5xf32>, tensor<f32>) {
        %base = arith.muli %i, %c6 : index
        %wi = titan.neg %w : tensor<5x3xf32>
        MICROBATCH
        %nw = titan.add %aw, %gw : tensor<5x3xf32>
        %nb = titan.add %ab, %gb : tensor<5xf32>
        %nl = titan.add %al, %l : tensor<f32>
        accum.yield %nw, %nb, %nl : tensor<5x3xf32>, tensor<5xf32>, tensor<f32>
      }
      %w1 = titan.sub %w, %s#0 : tensor<5x3xf32>
      %b1 = titan.sub %b, %s#1 : tensor<5xf32>
      return %w1, %b1, %s#2, %stop : tensor<5x3xf32>, tensor<5xf32>, tensor<f32>, tensor<i64>
    }
  })";

/// @w in shards, gathered in each iteration, its gradient reduced at once over `shard` and behind
/// the loop over `replicate`. Five rows on two ranks: three each, of which one is padding.
constexpr StringLiteral ofARank = R"(
    func.func @step(%w: tensor<3x3xf32> {titan.state = @w}, %b: tensor<5xf32> {titan.state = @b}, %x: tensor<2x2x3xf32> {titan.input = "x"},
        %seed: tensor<i64> {titan.control = "train.seed"}, %stop: tensor<i64> {titan.control = "stop"})
        -> (tensor<3x3xf32> {titan.state = @w}, tensor<5xf32> {titan.state = @b}, tensor<f32> {titan.metric = "loss"}, tensor<i64> {titan.metric = "stop"}) {
      %zw = titan.constant dense<0.0> : tensor<3x3xf32>
      %zb = titan.constant dense<0.0> : tensor<5xf32>
      %zl = titan.constant dense<0.0> : tensor<f32>
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c6 = arith.constant 6 : index
      %cp = dist.coordinate "replicate"
      %cs = dist.coordinate "shard"
      %p2 = arith.muli %cp, %c2 : index
      %d = arith.addi %p2, %cs : index
      %n = titan.neg %w : tensor<3x3xf32>
      %s:3 = accum.loop %i in 2 running slices(%xi = %x : tensor<2x2x3xf32>)
          accumulators(%aw = %zw : tensor<3x3xf32>, %ab = %zb : tensor<5xf32>, %al = %zl : tensor<f32>) -> (tensor<3x3xf32>, tensor<5xf32>, tensor<f32>) {
        %i4 = arith.muli %i, %c4 : index
        %m = arith.addi %d, %i4 : index
        %base = arith.muli %m, %c6 : index
        %full = dist.all_gather %n axes ["shard"] dims [0] : tensor<3x3xf32> to tensor<6x3xf32>
        %wi = titan.slice %full offsets [0, 0] strides [1, 1] : tensor<6x3xf32> to tensor<5x3xf32>
        MICROBATCH
        %padded = titan.pad %gw low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<5x3xf32> to tensor<6x3xf32>
        %part = dist.reduce_scatter sum %padded axes ["shard"] dims [0] order rank : tensor<6x3xf32> to tensor<3x3xf32>
        %nw = titan.add %aw, %part : tensor<3x3xf32>
        %nb = titan.add %ab, %gb : tensor<5xf32>
        %nl = titan.add %al, %l : tensor<f32>
        accum.yield %nw, %nb, %nl : tensor<3x3xf32>, tensor<5xf32>, tensor<f32>
      }
      %sw = dist.all_reduce sum %s#0 axes ["replicate"] order rank : tensor<3x3xf32> to tensor<3x3xf32>
      %sb = dist.all_reduce sum %s#1 axes ["replicate", "shard"] order tree : tensor<5xf32> to tensor<5xf32>
      %sums:2 = dist.all_reduce sum %s#2, %stop axes ["replicate", "shard"] order rank : tensor<f32>, tensor<i64> to tensor<f32>, tensor<i64>
      %w1 = titan.sub %w, %sw : tensor<3x3xf32>
      %b1 = titan.sub %b, %sb : tensor<5xf32>
      return %w1, %b1, %sums#0, %sums#1 : tensor<3x3xf32>, tensor<5xf32>, tensor<f32>, tensor<i64>
    }
  })";

class ShardedRunTest : public titan::interpreter::testing::ModuleFixture {
protected:
  static std::string textOf(StringRef function) {
    return replaceAll((header + function).str(), "MICROBATCH", microbatch.str());
  }
  /// The program of a rank with `from` replaced.
  static std::string changed(std::string from, std::string to) {
    std::string text = textOf(ofARank), other = replaceAll(text, from, to);
    EXPECT_NE(text, other) << from;
    return other;
  }
  func::FuncOp step(StringRef text) {
    modules.push_back(parse(text));
    return modules.back()->lookupSymbol<func::FuncOp>("step");
  }
  /// Of `text` with the job; empty: the same.
  std::string difference(StringRef text, EquivalenceOptions options = {}) {
    OwningOpRef<ModuleOp> job = parse(textOf(ofTheJob)), rank = parse(text);
    message.clear();
    EXPECT_EQ(succeeded(checkEquivalent(*job, *rank, options)), message.empty());
    return message;
  }
  void expectDifference(StringRef text, StringRef words) {
    const std::string found = difference(text);
    EXPECT_NE(found.find(words), std::string::npos) << found;
  }
  std::vector<OwningOpRef<ModuleOp>> modules;
};

TEST_F(ShardedRunTest, TheProgramOfARankIsTheJob) {
  EXPECT_EQ(difference(textOf(ofARank)), "");
  // In f32 the sums of ranks and of one loop are rounded apart.
  EquivalenceOptions exact;
  exact.engine = Engine::F32;
  exact.tolerance = 0;
  EXPECT_NE(difference(textOf(ofARank), exact), "");
  exact.tolerance = 1e-5;
  EXPECT_EQ(difference(textOf(ofARank), exact), "");
}

TEST_F(ShardedRunTest, OnlyWhatIsARanksRunsOnAll) {
  EXPECT_EQ(ShardedRun::create(step(textOf(ofTheJob)))->ranks(), 1);
  EXPECT_EQ(ShardedRun::create(step(textOf(ofARank)))->ranks(), 4);
}

TEST_F(ShardedRunTest, ASumThatIsForgottenDiffersBetweenRanks) {
  expectDifference(changed("%w1, %b1, %sums#0", "%w1, %b1, %s#2"),
                   "@step result 2: rank 1 differs from rank 0: element 0 of 1");
  expectDifference(changed("titan.sub %b, %sb", "titan.sub %b, %s#1"),
                   "@step result 1: rank 1 differs from rank 0");
  // Rank 2 holds what rank 0 holds.
  expectDifference(changed("titan.sub %w, %sw", "titan.sub %w, %s#0"),
                   "@step result 0: rank 2 differs from rank 0");
  // Whether one rank is to stop, all must know.
  expectDifference(changed("%sums#0, %sums#1", "%sums#0, %stop"),
                   "@step result 3: rank 3 differs from rank 0: element 0 of 1 is 1.0");
}

TEST_F(ShardedRunTest, ASumOverTooFewRanksDiffers) {
  expectDifference(changed(R"(%s#1 axes ["replicate", "shard"] order tree)",
                           R"(%s#1 axes ["replicate"] order rank)"),
                   "@step result 1: rank 1 differs from rank 0");
}

TEST_F(ShardedRunTest, PaddingThatIsReadShows) {
  expectDifference(changed("%nl = titan.add %al, %l :",
                           "%sum = titan.reduce sum %full [0, 1] : tensor<6x3xf32> to tensor<f32>\n"
                           "%zero = titan.sub %sum, %sum : tensor<f32>\n"
                           "%more = titan.add %l, %zero : tensor<f32>\n"
                           "%nl = titan.add %al, %more :"),
                   "@step result 2 depends on the padding of a state: element 0 of 1");
}

TEST_F(ShardedRunTest, RandomNumbersOfAnotherMicrobatchDiffer) {
  // Those of the rank's own count.
  expectDifference(changed("%base = arith.muli %m", "%base = arith.muli %i"), "@step result 0");
  // Those of microbatches in a row.
  expectDifference(changed("%m = arith.addi %d, %i4", "%d2 = arith.muli %d, %c2 : index\n"
                                                      "%m = arith.addi %d2, %i"),
                   "@step result 0");
}

TEST_F(ShardedRunTest, AShardOfAnotherRankDiffers) {
  std::string text =
      changed("dist.reduce_scatter sum %padded axes [\"shard\"] dims [0] order rank",
              "dist.reduce_scatter sum %padded axes [\"replicate\"] dims [0] order rank");
  expectDifference(replaceAll(text, R"(%s#0 axes ["replicate"])", R"(%s#0 axes ["shard"])"),
                   "@step result 0");
}

/// Every rank runs a program of its own.
TEST_F(ShardedRunTest, ACollectiveThatOneRankLacksIsAnError) {
  const std::pair<const char*, const char*> removed[] = {
      {"dist.all_gather %n axes [\"shard\"] dims [0] : tensor<3x3xf32> to tensor<6x3xf32>",
       "titan.concat %n, %n dim 0 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>"},
      {"dist.reduce_scatter sum %padded axes [\"shard\"] dims [0] order rank :",
       "titan.slice %padded offsets [0, 0] strides [1, 1] :"},
      {"dist.all_reduce sum %s#0 axes [\"replicate\"] order rank : tensor<3x3xf32> to "
       "tensor<3x3xf32>",
       "titan.neg %s#0 : tensor<3x3xf32>"}};
  func::FuncOp usual = step(textOf(ofARank));
  FailureOr<ShardedRun> job = ShardedRun::create(usual);
  ASSERT_TRUE(succeeded(job));
  Tensors arguments = randomArguments(usual, job->argumentTypes());
  EXPECT_TRUE(succeeded(job->run(arguments, Engine::F32))) << message;
  for (auto [collective, local] : removed) {
    SmallVector<func::FuncOp> programs(4, usual);
    programs[1] = step(changed(collective, local));
    message.clear();
    EXPECT_TRUE(failed(job->run(programs, arguments, Engine::F32)));
    StringRef name = StringRef(collective).take_until([](char c) { return c == ' '; });
    EXPECT_NE(message.find("rank 1 is at '"), std::string::npos) << message;
    EXPECT_NE(StringRef(message).split("rank 0 at '").second.find(name), StringRef::npos)
        << message;
  }
}

TEST_F(ShardedRunTest, WhatARankHoldsIsChecked) {
  auto refused = [&](std::string from, std::string to, StringRef words) {
    func::FuncOp function = step(changed(from, to));
    message.clear();
    EXPECT_TRUE(failed(ShardedRun::create(function)));
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  refused("placement = #titan.placement<[\"shard\" = shard(0)]>",
          "placement = #titan.placement<[\"shard\" = shard(1)]>",
          "@step has state @w as 'tensor<3x3xf32>', a rank has 'tensor<5x2xf32>' of it");
  refused("global = 16", "global = 24",
          "argument 2 of @step is 'tensor<2x2x3xf32>', a rank runs 3 microbatches");
  refused("\"shard\", ranks = 2", "\"shard\", ranks = 4",
          "'dist.mesh' has 4 ranks, the recipe's mesh 8");
}

TEST_F(ShardedRunTest, ARankThatReturnsAnotherTypeIsAnError) {
  constexpr StringRef text = R"(
    module attributes {titan.recipe = {mesh = {axes = [{name = "shard", ranks = 2 : i64}]}, batch = {global = 16 : i64}},
        dist.mesh = #dist.mesh<["shard" = 2]>} {
      func.func @step() -> tensor<3xf32> {
        %s = dist.coordinate "shard"
        %y = titan.constant dense<1.0> : tensor<3xf32>
        return %y : tensor<3xf32>
      }
    })";
  func::FuncOp usual = step(text);
  FailureOr<ShardedRun> job = ShardedRun::create(usual);
  ASSERT_TRUE(succeeded(job)) << message;
  SmallVector<func::FuncOp> programs = {usual, step(replaceAll(text.str(), "<3x", "<4x"))};
  EXPECT_TRUE(failed(job->run(programs, {}, Engine::F32)));
  EXPECT_NE(message.find("@step result 0: rank 1 has 'tensor<4xf32>', expected 'tensor<3xf32>'"),
            std::string::npos)
      << message;
}

} // namespace
