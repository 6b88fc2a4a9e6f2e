// Programs of a rank that holds parts of states, written by hand as the strategies write them: they
// are the job that they were made of, and what reads padding or exchanges too little shows.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Interpreter/ShardedRun.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan::interpreter;

namespace {

/// Sixteen samples in microbatches of two: eight of the job, two of each rank of 2 x 2. A weight
/// and its momentum, placed by WEIGHT and MOMENTUM.
constexpr StringLiteral header = R"(
  module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 16 : i64},
      mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}},
      dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>} {
    titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable,
        init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64> WEIGHT}
    titan.state @m : tensor<3x5xf32> {kind = #titan<kind slot>,
        init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64> MOMENTUM}
)";

/// Of %x [2, 5] and %full [3, 5] the loss %l and the gradient %g.
constexpr StringLiteral microbatch = R"(
      %y = titan.contract %x, %full batch [] x [] contracting [1] x [1] : (tensor<2x5xf32>, tensor<3x5xf32>) -> tensor<2x3xf32>
      %q = titan.mul %y, %y : tensor<2x3xf32>
      %l = titan.reduce sum %q [0, 1] : tensor<2x3xf32> to tensor<f32>
      %g = titan.contract %y, %x batch [] x [] contracting [0] x [0] : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<3x5xf32>
)";

constexpr StringLiteral ofTheJob = R"(
    func.func @step(%w: tensor<3x5xf32> {titan.state = @w}, %m: tensor<3x5xf32> {titan.state = @m}, %xs: tensor<8x2x5xf32> {titan.input = "x"})
        -> (tensor<3x5xf32> {titan.state = @w}, tensor<3x5xf32> {titan.state = @m}, tensor<f32> {titan.metric = "loss"}, tensor<f32> {titan.metric = "norm"}) {
      %z = titan.constant dense<0.0> : tensor<3x5xf32>
      %zl = titan.constant dense<0.0> : tensor<f32>
      %s:2 = accum.loop %i in 8 running slices(%x = %xs : tensor<8x2x5xf32>) accumulators(%a = %z : tensor<3x5xf32>, %al = %zl : tensor<f32>) -> (tensor<3x5xf32>, tensor<f32>) {
        %full = titan.neg %w : tensor<3x5xf32>
        MICROBATCH
        %n = titan.add %a, %g : tensor<3x5xf32>
        %nl = titan.add %al, %l : tensor<f32>
        accum.yield %n, %nl : tensor<3x5xf32>, tensor<f32>
      }
      %squares = titan.mul %s#0, %s#0 : tensor<3x5xf32>
      %norm = titan.reduce sum %squares [0, 1] : tensor<3x5xf32> to tensor<f32>
      %half = titan.constant dense<0.5> : tensor<3x5xf32>
      %old = titan.mul %m, %half : tensor<3x5xf32>
      %m1 = titan.add %old, %s#0 : tensor<3x5xf32>
      %w1 = titan.sub %w, %m1 : tensor<3x5xf32>
      return %w1, %m1, %s#1, %norm : tensor<3x5xf32>, tensor<3x5xf32>, tensor<f32>, tensor<f32>
    }
    func.func @eval(%w: tensor<3x5xf32> {titan.state = @w}, %x: tensor<2x5xf32> {titan.input = "x"}) -> (tensor<f32> {titan.output = "loss"}) {
      %full = titan.neg %w : tensor<3x5xf32>
      MICROBATCH
      return %l : tensor<f32>
    }
  })";

/// The gradient is whole in the loop, and in shards behind it; so is the momentum. Every rank
/// updates its part of the weight. PART, PADDED and PADS are [3, 5] cut along DIM.
constexpr StringLiteral zero = R"(
    func.func @step(%w: tensor<3x5xf32> {titan.state = @w}, %m: PART {titan.state = @m}, %xs: tensor<2x2x5xf32> {titan.input = "x"})
        -> (tensor<3x5xf32> {titan.state = @w}, PART {titan.state = @m}, tensor<f32> {titan.metric = "loss"}, tensor<f32> {titan.metric = "norm"}) {
      %z = titan.constant dense<0.0> : tensor<3x5xf32>
      %zl = titan.constant dense<0.0> : tensor<f32>
      %s:2 = accum.loop %i in 2 running slices(%x = %xs : tensor<2x2x5xf32>) accumulators(%a = %z : tensor<3x5xf32>, %al = %zl : tensor<f32>) -> (tensor<3x5xf32>, tensor<f32>) {
        %full = titan.neg %w : tensor<3x5xf32>
        MICROBATCH
        %n = titan.add %a, %g : tensor<3x5xf32>
        %nl = titan.add %al, %l : tensor<f32>
        accum.yield %n, %nl : tensor<3x5xf32>, tensor<f32>
      }
      %padded = titan.pad %s#0 low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x5xf32> to PADDED
      %ofGroup = dist.reduce_scatter sum %padded axes ["shard"] dims [DIM] order rank : PADDED to PART
      %g = dist.all_reduce sum %ofGroup axes ["replicate"] order rank : PART to PART
      %loss = dist.all_reduce sum %s#1 axes ["replicate", "shard"] order rank : tensor<f32> to tensor<f32>
      %squares = titan.mul %g, %g : PART
      %mine = titan.reduce sum %squares [0, 1] : PART to tensor<f32>
      %norm = dist.all_reduce sum %mine axes ["shard"] order rank : tensor<f32> to tensor<f32>
      %half = titan.constant dense<0.5> : PART
      %old = titan.mul %m, %half : PART
      %m1 = titan.add %old, %g : PART
      %wp = titan.pad %w low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x5xf32> to PADDED
      %part = dist.take_shard %wp axes ["shard"] dim DIM : PADDED to PART
      %new = titan.sub %part, %m1 : PART
      %gathered = dist.all_gather %new axes ["shard"] dims [DIM] : PART to PADDED
      %w1 = titan.slice %gathered offsets [0, 0] strides [1, 1] : PADDED to tensor<3x5xf32>
      return %w1, %m1, %loss, %norm : tensor<3x5xf32>, PART, tensor<f32>, tensor<f32>
    })";

/// The weight in shards, too: gathered in each iteration, its gradient reduced at once over
/// `shard`, behind the loop over `replicate`. The loop is a nest: `shard` divides the inner one.
constexpr StringLiteral fsdp = R"(
    func.func @step(%w: PART {titan.state = @w}, %m: PART {titan.state = @m}, %xs: tensor<2x2x5xf32> {titan.input = "x"})
        -> (PART {titan.state = @w}, PART {titan.state = @m}, tensor<f32> {titan.metric = "loss"}, tensor<f32> {titan.metric = "norm"}) {
      %z = titan.constant dense<0.0> : PART
      %zg = titan.constant dense<0.0> : tensor<3x5xf32>
      %zl = titan.constant dense<0.0> : tensor<f32>
      %nest = titan.reshape %xs : tensor<2x2x5xf32> to tensor<2x1x2x5xf32>
      %s:2 = accum.loop %i in 2 running slices(%xi = %nest : tensor<2x1x2x5xf32>) accumulators(%a = %z : PART, %al = %zl : tensor<f32>) -> (PART, tensor<f32>) {
        %t:2 = accum.loop %j in 1 running slices(%x = %xi : tensor<1x2x5xf32>) accumulators(%b = %zg : tensor<3x5xf32>, %bl = %al : tensor<f32>) -> (tensor<3x5xf32>, tensor<f32>) {
          %n = titan.neg %w : PART
          %gathered = dist.all_gather %n axes ["shard"] dims [DIM] : PART to PADDED
          %full = titan.slice %gathered offsets [0, 0] strides [1, 1] : PADDED to tensor<3x5xf32>
          MICROBATCH
          %nb = titan.add %b, %g : tensor<3x5xf32>
          %nl = titan.add %bl, %l : tensor<f32>
          accum.yield %nb, %nl : tensor<3x5xf32>, tensor<f32>
        }
        %padded = titan.pad %t#0 low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x5xf32> to PADDED
        %ofGroup = dist.reduce_scatter sum %padded axes ["shard"] dims [DIM] order rank : PADDED to PART
        %na = titan.add %a, %ofGroup : PART
        accum.yield %na, %t#1 : PART, tensor<f32>
      }
      %g = dist.all_reduce sum %s#0 axes ["replicate"] order rank : PART to PART
      %loss = dist.all_reduce sum %s#1 axes ["replicate", "shard"] order rank : tensor<f32> to tensor<f32>
      %squares = titan.mul %g, %g : PART
      %mine = titan.reduce sum %squares [0, 1] : PART to tensor<f32>
      %norm = dist.all_reduce sum %mine axes ["shard"] order rank : tensor<f32> to tensor<f32>
      %half = titan.constant dense<0.5> : PART
      %old = titan.mul %m, %half : PART
      %m1 = titan.add %old, %g : PART
      %w1 = titan.sub %w, %m1 : PART
      return %w1, %m1, %loss, %norm : PART, PART, tensor<f32>, tensor<f32>
    }
    func.func @eval(%w: PART {titan.state = @w}, %x: tensor<2x5xf32> {titan.input = "x"}) -> (tensor<f32> {titan.output = "loss"}) {
      %n = titan.neg %w : PART
      %gathered = dist.all_gather %n axes ["shard"] dims [DIM] : PART to PADDED
      %full = titan.slice %gathered offsets [0, 0] strides [1, 1] : PADDED to tensor<3x5xf32>
      MICROBATCH
      return %l : tensor<f32>
    })";

/// Five rows on 2 x 2: `shard` cuts them in three, `replicate` these in two, so that ranks (0, 0),
/// (1, 0), (0, 1), (1, 1) have 2, 1, 2, 0 of them. What lies between the parts of `shard` goes
/// before they are joined.
constexpr StringLiteral rowsOnTwoAxes = R"(
  module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 16 : i64},
      mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}},
      dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>} {
    titan.state @w : tensor<5x3xf32> {kind = #titan<kind param>, trainable,
        init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #titan.placement<["shard" = shard(0), "replicate" = shard(0)]>}
)";
constexpr StringLiteral rowsOfTheJob = R"(
    func.func @step(%w: tensor<5x3xf32> {titan.state = @w}, %x: tensor<8x5x3xf32> {titan.input = "x"})
        -> (tensor<5x3xf32> {titan.state = @w}, tensor<5x3xf32> {titan.output = "w"}) {
      %sum = titan.reduce sum %x [0] : tensor<8x5x3xf32> to tensor<5x3xf32>
      %w1 = titan.sub %w, %sum : tensor<5x3xf32>
      return %w1, %w : tensor<5x3xf32>, tensor<5x3xf32>
    }
  })";
constexpr StringLiteral rowsOfARank = R"(
    func.func @step(%w: tensor<2x3xf32> {titan.state = @w}, %x: tensor<2x5x3xf32> {titan.input = "x"})
        -> (tensor<2x3xf32> {titan.state = @w}, tensor<5x3xf32> {titan.output = "w"}) {
      %term = titan.reduce sum %x [0] : tensor<2x5x3xf32> to tensor<5x3xf32>
      %p6 = titan.pad %term low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<5x3xf32> to tensor<6x3xf32>
      %r3 = dist.reduce_scatter sum %p6 axes ["shard"] dims [0] order rank : tensor<6x3xf32> to tensor<3x3xf32>
      %p4 = titan.pad %r3 low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x3xf32> to tensor<4x3xf32>
      %r2 = dist.reduce_scatter sum %p4 axes ["replicate"] dims [0] order rank : tensor<4x3xf32> to tensor<2x3xf32>
      %g4 = dist.all_gather %w axes ["replicate"] dims [0] : tensor<2x3xf32> to tensor<4x3xf32>
      %g3 = titan.slice %g4 offsets [0, 0] strides [1, 1] : tensor<4x3xf32> to tensor<3x3xf32>
      %g6 = dist.all_gather %g3 axes ["shard"] dims [0] : tensor<3x3xf32> to tensor<6x3xf32>
      %full = titan.slice %g6 offsets [0, 0] strides [1, 1] : tensor<6x3xf32> to tensor<5x3xf32>
      %w1 = titan.sub %w, %r2 : tensor<2x3xf32>
      return %w1, %full : tensor<2x3xf32>, tensor<5x3xf32>
    }
  })";

constexpr StringLiteral ofThree = "tensor<2x5xf32>", paddedToFour = "tensor<4x5xf32>";
constexpr StringLiteral ofFive = "tensor<3x3xf32>", paddedToSix = "tensor<3x6xf32>";

class ShardedStates : public titan::interpreter::testing::ModuleFixture {
protected:
  /// A module of these functions, with the states in shards that are local to them.
  static std::string textOf(StringRef functions, int64_t dim) {
    const std::string placement =
        (", placement = #titan.placement<[\"shard\" = shard(" + Twine(dim) + ")]>").str();
    std::string text = (header + functions).str();
    text = replaceAll(text, "WEIGHT", functions.contains("%w: tensor") ? "" : placement);
    text = replaceAll(text, "MOMENTUM", placement);
    text = replaceAll(text, "MICROBATCH", microbatch.str());
    text = replaceAll(text, "PADDED", (dim == 0 ? paddedToFour : paddedToSix).str());
    text = replaceAll(text, "PART", (dim == 0 ? ofThree : ofFive).str());
    return replaceAll(text, "DIM", std::to_string(dim));
  }
  static std::string ofARank(StringRef functions, int64_t dim) {
    return textOf((functions + "\n}").str(), dim);
  }
  /// Of the program of a rank with the job; empty: the same.
  std::string difference(StringRef job, StringRef rank) {
    OwningOpRef<ModuleOp> before = parse(job), after = parse(rank);
    message.clear();
    EXPECT_EQ(succeeded(checkEquivalent(*before, *after)), message.empty());
    return message;
  }
  /// Of the program of a rank in which `to` stands for `from`.
  std::string differenceWith(StringRef functions, int64_t dim, std::string from, std::string to) {
    const std::string changed = replaceAll(functions.str(), from, to);
    EXPECT_NE(changed, functions) << from;
    return difference(textOf(ofTheJob, dim), ofARank(changed, dim));
  }
};

TEST_F(ShardedStates, TheProgramOfARankIsTheJob) {
  for (StringRef functions : {StringRef(zero), StringRef(fsdp)})
    for (int64_t dim : {0, 1})
      EXPECT_EQ(difference(textOf(ofTheJob, dim), ofARank(functions, dim)), "");
}

TEST_F(ShardedStates, OneDimOnTwoAxesIsCutFromOutsideAndJoinedFromInside) {
  const std::string job = (rowsOnTwoAxes + rowsOfTheJob).str();
  const std::string rank = (rowsOnTwoAxes + rowsOfARank).str();
  EXPECT_EQ(difference(job, rank), "");
  // As if the padding lay behind all parts, and as if `replicate` cut first.
  for (auto [from, to] :
       {std::pair("%g3 = titan.slice %g4 offsets [0, 0] strides [1, 1] : tensor<4x3xf32> to "
                  "tensor<3x3xf32>\n      %g6 = dist.all_gather %g3 axes [\"shard\"] dims [0] : "
                  "tensor<3x3xf32> to tensor<6x3xf32>",
                  "%g6 = dist.all_gather %g4 axes [\"shard\"] dims [0] : tensor<4x3xf32> to "
                  "tensor<8x3xf32>"),
        std::pair("shard(0), \"replicate\" = shard(0)]>", "shard(0)]>")}) {
    std::string other = replaceAll(rank, from, to);
    ASSERT_NE(other, rank);
    if (StringRef(other).contains("tensor<8x3xf32>"))
      other = replaceAll(other, "titan.slice %g6 offsets [0, 0] strides [1, 1] : tensor<6x3xf32>",
                         "titan.slice %g6 offsets [0, 0] strides [1, 1] : tensor<8x3xf32>");
    EXPECT_NE(difference(job, other), "");
  }
}

/// A collective that no rank has: ranks meet, with too little.
TEST_F(ShardedStates, ACollectiveThatAllLackDiffers) {
  const std::string gather = "dist.all_gather %n axes [\"shard\"] dims [DIM] : PART to PADDED";
  const std::string joined = "titan.concat %n, %n dim DIM : (PART, PART) -> PADDED";
  const std::string scatter =
      "dist.reduce_scatter sum %padded axes [\"shard\"] dims [DIM] order rank :";
  const std::string sum = "dist.all_reduce sum %s#0 axes [\"replicate\"] order rank : PART to PART";
  const std::string own = "dist.take_shard %padded axes [\"shard\"] dim DIM :";
  for (int64_t dim : {0, 1}) {
    EXPECT_NE(differenceWith(fsdp, dim, gather, joined), "");
    EXPECT_NE(differenceWith(fsdp, dim, scatter, own), "");
    EXPECT_NE(differenceWith(fsdp, dim, sum, "titan.neg %s#0 : PART"), "");
    EXPECT_NE(differenceWith(zero, dim, scatter, own), "");
    EXPECT_NE(differenceWith(zero, dim,
                             "dist.all_gather %new axes [\"shard\"] dims [DIM] : PART to PADDED",
                             "titan.concat %new, %new dim DIM : (PART, PART) -> PADDED"),
              "");
    // Every rank the part of the first.
    EXPECT_NE(differenceWith(zero, dim, "dist.take_shard %wp axes [\"shard\"] dim DIM :",
                             "titan.slice %wp offsets [0, 0] strides [1, 1] :"),
              "");
  }
}

/// Each rank has squares of its own part; over all ranks those of `replicate` would count twice.
TEST_F(ShardedStates, ANormOverOtherRanksDiffers) {
  for (StringRef axes : {"\"replicate\"", "\"replicate\", \"shard\""}) {
    const std::string found = differenceWith(fsdp, 0, "sum %mine axes [\"shard\"]",
                                             ("sum %mine axes [" + axes + "]").str());
    EXPECT_NE(found.find("@step result 3"), std::string::npos) << found;
  }
}

TEST_F(ShardedStates, EvaluationWithoutItsGatherDiffers) {
  std::string text = fsdp.str();
  const size_t eval = text.find("@eval"), gather = text.find("dist.all_gather", eval);
  text.replace(gather, text.find(" : PART", gather) - gather,
               "titan.pad %n low [0, 0] interior [0, 0] {value = 0.0 : f64}");
  const std::string found = difference(textOf(ofTheJob, 0), ofARank(text, 0));
  EXPECT_NE(found.find("@eval result 0: rank 1 differs from rank 0"), std::string::npos) << found;
}

TEST_F(ShardedStates, PaddingInANormShows) {
  const std::string found = differenceWith(fsdp, 0, "%squares = titan.mul %g, %g",
                                           "%more = titan.add %g, %w : PART\n"
                                           "%less = titan.sub %more, %w : PART\n"
                                           "%squares = titan.mul %less, %less");
  EXPECT_NE(found.find("@step result 3 depends on the padding of a state: element 0 of 1"),
            std::string::npos)
      << found;
}

/// What is not above 100 is neither a number below nor NaN.
TEST_F(ShardedStates, PaddingThatAComparisonHidesShows) {
  const std::string count = "%hundred = titan.constant dense<100.0> : TYPE\n"
                            "%above = titan.compare gt %w, %hundred : TYPE\n"
                            "%none = titan.constant dense<0.0> : TYPE\n"
                            "%chosen = titan.select %above, %hundred, %none : FLAGS, TYPE\n"
                            "%high = titan.reduce sum %chosen [0, 1] : TYPE to tensor<f32>\n";
  auto counted = [&](StringRef functions, StringRef type, StringRef flags, StringRef sum,
                     StringRef more) {
    std::string text = replaceAll(replaceAll(count, "TYPE", type.str()), "FLAGS", flags.str());
    return replaceAll(functions.str(), ("return %w1, %m1, " + sum + ", ").str(),
                      (text + more + "%lost = titan.add " + sum +
                       ", %all : tensor<f32>\nreturn %w1, %m1, %lost, ")
                          .str());
  };
  const std::string job = counted(ofTheJob, "tensor<3x5xf32>", "tensor<3x5xi1>", "%s#1",
                                  "%all = titan.neg %high : tensor<f32>\n");
  const std::string rank =
      counted(fsdp, "tensor<2x5xf32>", "tensor<2x5xi1>", "%loss",
              "%sum = dist.all_reduce sum %high axes [\"shard\"] order rank : tensor<f32> to "
              "tensor<f32>\n%all = titan.neg %sum : tensor<f32>\n");
  EXPECT_NE(difference(textOf(job, 0), ofARank(rank, 0))
                .find("@step result 2 depends on the padding of a state: element 0 of 1"),
            std::string::npos)
      << message;
}

/// Every rank runs a program of its own.
TEST_F(ShardedStates, ACollectiveThatOneRankLacksNamesBothPlaces) {
  const std::tuple<StringRef, std::string, std::string> removed[] = {
      {fsdp, "dist.all_gather %n axes [\"shard\"] dims [DIM] : PART to PADDED",
       "titan.concat %n, %n dim DIM : (PART, PART) -> PADDED"},
      {fsdp, "dist.reduce_scatter sum %padded axes [\"shard\"] dims [DIM] order rank :",
       "dist.take_shard %padded axes [\"shard\"] dim DIM :"},
      {fsdp, "dist.all_reduce sum %s#0 axes [\"replicate\"] order rank : PART to PART",
       "titan.neg %s#0 : PART"},
      {zero, "dist.all_gather %new axes [\"shard\"] dims [DIM] : PART to PADDED",
       "titan.concat %new, %new dim DIM : (PART, PART) -> PADDED"}};
  for (const auto& [functions, collective, local] : removed) {
    OwningOpRef<ModuleOp> usual = parse(ofARank(functions, 1)),
                          other = parse(ofARank(replaceAll(functions.str(), collective, local), 1));
    auto step = usual->lookupSymbol<func::FuncOp>("step");
    FailureOr<ShardedRun> job = ShardedRun::create(step);
    ASSERT_TRUE(succeeded(job)) << message;
    SmallVector<func::FuncOp> programs(4, step);
    programs[2] = other->lookupSymbol<func::FuncOp>("step");
    message.clear();
    EXPECT_TRUE(
        failed(job->run(programs, randomArguments(step, job->argumentTypes()), Engine::F32)));
    StringRef name = StringRef(collective).take_until([](char c) { return c == ' '; });
    EXPECT_NE(message.find("rank 2 "), std::string::npos) << message;
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("rank 0 "), std::string::npos) << message;
  }
}

} // namespace
