// Collectives between ranks that have different data: each kind, order, type and set of axes.
#include "compiler/Interpreter/Ranks.h"
#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "runtime/program/Collective.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace titan::interpreter;

namespace {

class Ranks : public titan::interpreter::testing::ModuleFixture {
protected:
  /// The function @f of a module on `mesh` with this text.
  func::FuncOp parse(StringRef mesh, StringRef text) {
    modules.push_back(ModuleFixture::parse(
        ("module attributes {dist.mesh = #dist.mesh<[" + mesh + "]>} {\n" + text + "\n}").str()));
    return modules.back()->lookupSymbol<func::FuncOp>("f");
  }

  /// What each rank returns, where rank r runs programs[r] on arguments(r); nothing where they do
  /// not meet.
  std::vector<Tensors> run(ArrayRef<func::FuncOp> programs,
                           llvm::function_ref<Tensors(int64_t)> arguments,
                           Engine engine = Engine::F32) {
    std::vector<Tensors> results(programs.size());
    LogicalResult ran = runRanks(meshAxesOf(programs.front()), [&](Rank& rank) {
      const int64_t r = rank.number();
      FailureOr<Tensors> mine = titan::interpreter::run(programs[r], arguments(r), engine, &rank);
      if (succeeded(mine))
        results[r] = *mine;
      return LogicalResult(mine);
    });
    if (failed(ran))
      return {};
    return results;
  }

  /// All ranks run the same.
  std::vector<Tensors> run(func::FuncOp program, llvm::function_ref<Tensors(int64_t)> arguments,
                           Engine engine = Engine::F32) {
    const int64_t ranks = titan::rankCount(meshAxesOf(program));
    auto results = run(SmallVector<func::FuncOp>(ranks, program), arguments, engine);
    EXPECT_EQ(static_cast<int64_t>(results.size()), ranks) << message;
    return results;
  }

  /// Different numbers on each rank.
  static Tensors draw(func::FuncOp program, int64_t rank) {
    Tensors tensors;
    for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
      tensors.push_back(randomTensor(cast<ShapedType>(type), 100 * rank + i, {}));
    return tensors;
  }
  std::vector<Tensors> runOnDraws(func::FuncOp program) {
    return run(program, [&](int64_t rank) { return draw(program, rank); });
  }

  std::vector<OwningOpRef<ModuleOp>> modules;
};

constexpr StringRef twoByThree = R"("replicate" = 2, "shard" = 3)";
constexpr StringRef four = R"("shard" = 4)";

std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.size(); ++i)
    numbers.push_back(tensor.number(i));
  return numbers;
}

TEST_F(Ranks, EachHasItsCoordinates) {
  func::FuncOp f = parse(twoByThree, R"(func.func @f() -> (index, index) {
    %p = dist.coordinate "replicate"
    %s = dist.coordinate "shard"
    return %p, %s : index, index
  })");
  auto results = run(f, [](int64_t) { return Tensors(); });
  for (int64_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(results[rank][0].integer(), rank / 3);
    EXPECT_EQ(results[rank][1].integer(), rank % 3);
  }
}

/// Rank r of 2 x 3 has the row [10 r, 10 r + 1].
TEST_F(Ranks, GatherJoinsTheGroupAlongTheDim) {
  auto gathered = [&](StringRef axes, int64_t dim, StringRef type) {
    func::FuncOp f =
        parse(twoByThree, ("func.func @f(%x: tensor<1x2xf32>) -> " + type +
                           " {\n %y = dist.all_gather %x axes " + axes + " dims [" + Twine(dim) +
                           "] : tensor<1x2xf32> to " + type + "\n return %y : " + type + "\n}")
                              .str());
    return run(
        f, [&](int64_t rank) -> Tensors { return {floats({1, 2}, {10. * rank, 10. * rank + 1})}; });
  };
  auto columns = gathered(R"(["replicate"])", 1, "tensor<1x4xf32>");
  EXPECT_EQ(elements(columns[1][0]), (std::vector<double>{10, 11, 40, 41}));
  EXPECT_EQ(elements(columns[4][0]), (std::vector<double>{10, 11, 40, 41}));
  auto rows = gathered(R"(["shard"])", 0, "tensor<3x2xf32>");
  EXPECT_EQ(elements(rows[5][0]), (std::vector<double>{30, 31, 40, 41, 50, 51}));
  auto all = gathered(R"(["replicate", "shard"])", 0, "tensor<6x2xf32>");
  EXPECT_EQ(elements(all[0][0]),
            (std::vector<double>{0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51}));
}

TEST_F(Ranks, ABucketIsItsTensorsOneByOne) {
  func::FuncOp f = parse(twoByThree, R"(
    func.func @f(%x: tensor<3x2xf32>, %n: tensor<i64>) -> (tensor<3x2xf32>, tensor<i64>) {
      %s:2 = dist.all_reduce sum %x, %n axes ["shard"] order rank : tensor<3x2xf32>, tensor<i64> to tensor<3x2xf32>, tensor<i64>
      return %s#0, %s#1 : tensor<3x2xf32>, tensor<i64>
    })");
  // 2^53 + 1 is no f64: integers are added as such.
  constexpr int64_t large = (int64_t(1) << 53) + 1;
  auto results = run(f, [&](int64_t rank) -> Tensors {
    return {Tensor::splat(cast<ShapedType>(f.getArgumentTypes()[0]), rank),
            integer(rank == 3 ? large : rank)};
  });
  EXPECT_EQ(elements(results[2][0]), std::vector<double>(6, 0 + 1 + 2));
  EXPECT_EQ(results[2][1].integer(), 0 + 1 + 2);
  EXPECT_EQ(elements(results[3][0]), std::vector<double>(6, 3 + 4 + 5));
  EXPECT_EQ(results[4][1].integer(), large + 4 + 5);
}

/// The sum of terms[r] of rank r.
class Sums : public Ranks {
protected:
  double sum(StringRef order, StringRef element, ArrayRef<double> terms,
             Engine engine = Engine::F32) {
    std::string type = ("tensor<1x" + element + ">").str();
    func::FuncOp f =
        parse(four, ("func.func @f(%x: " + type + ") -> " + type +
                     " {\n %y = dist.all_reduce sum %x axes [\"shard\"] order " + order + " : " +
                     type + " to " + type + "\n return %y : " + type + "\n}")
                        .str());
    auto results = run(
        f,
        [&](int64_t rank) -> Tensors {
          return {Tensor::splat(cast<ShapedType>(f.getArgumentTypes()[0]), terms[rank])};
        },
        engine);
    for (const Tensors& result : results)
      EXPECT_EQ(result[0].real(), results[0][0].real());
    return results[0][0].real();
  }
};

// From 2^24 on f32 has even integers only.
constexpr double edge = 16777216;

TEST_F(Sums, OrderRankAddsOneAfterTheOther) {
  EXPECT_EQ(sum("rank", "f32", {edge, 1, 1, 1}), edge);
  EXPECT_EQ(sum("rank", "f32", {1, 1, 1, edge}), edge + 4); // 3 + 2^24 is half-way, to even
  EXPECT_TRUE(std::signbit(sum("rank", "f32", {-0., -0., -0., -0.})));
}

TEST_F(Sums, OrderTreeAddsNeighboursFirstAndLeavesToZero) {
  EXPECT_EQ(sum("tree", "f32", {edge, 1, 1, 1}), edge + 2);
  EXPECT_EQ(sum("tree", "f32", {1, edge, 1, 1}), edge + 2);
  EXPECT_FALSE(std::signbit(sum("tree", "f32", {-0., -0., -0., -0.})));
}

TEST_F(Sums, AreRoundedAsTheirTypeSays) {
  EXPECT_EQ(sum("rank", "f64", {edge, 1, 1, 1}), edge + 3);
  EXPECT_EQ(sum("rank", "f32", {edge, 1, 1, 1}, Engine::F64), edge + 3);
  // From 256 on bf16 has even integers only: in bf16 256 + 1 would be 256. In f32 it is 259, which
  // is half-way, to even.
  EXPECT_EQ(sum("rank", "bf16", {256, 1, 1, 0}), 258);
  EXPECT_EQ(sum("rank", "bf16", {256, 1, 1, 1}), 260);
  EXPECT_EQ(sum("tree", "bf16", {256, 1, 1, 0}), 258);
  // Added in f32, not exactly: 2^-16 is lost.
  EXPECT_EQ(sum("rank", "bf16", {256, 1, 0x1p-16, 0}), 256);
  EXPECT_EQ(sum("rank", "bf16", {256, 1, 0x1p-15, 0}), 258);
}

/// The text of @f on 2 x 3 with `body`, which computes %a and %b of %x.
std::string twoResults(StringRef body) {
  return ("func.func @f(%x: tensor<6x12xf32>) -> (tensor<6x12xf32>, tensor<6x12xf32>) {\n" + body +
          "\n return %a, %b : tensor<6x12xf32>, tensor<6x12xf32>\n}")
      .str();
}

struct Cut {
  const char* axes;
  int64_t dim;
  const char* part;
};
constexpr Cut cuts[] = {{R"(["replicate"])", 0, "tensor<3x12xf32>"},
                        {R"(["shard"])", 1, "tensor<6x4xf32>"},
                        {R"(["replicate", "shard"])", 0, "tensor<1x12xf32>"},
                        {R"(["replicate", "shard"])", 1, "tensor<6x2xf32>"}};

TEST_F(Ranks, ScatteredAndGatheredSumsAreWholeSums) {
  for (const Cut& cut : cuts) {
    std::string body = replaceAll(replaceAll(replaceAll(R"(
      %p = dist.reduce_scatter sum %x axes AXES dims [DIM] order rank : tensor<6x12xf32> to PART
      %a = dist.all_gather %p axes AXES dims [DIM] : PART to tensor<6x12xf32>
      %b = dist.all_reduce sum %x axes AXES order rank : tensor<6x12xf32> to tensor<6x12xf32>)",
                                                        "AXES", cut.axes),
                                             "DIM", std::to_string(cut.dim)),
                                  "PART", cut.part);
    for (const Tensors& result : runOnDraws(parse(twoByThree, twoResults(body))))
      EXPECT_EQ(elements(result[0]), elements(result[1])) << body;
  }
}

TEST_F(Ranks, GatherUndoesTakeShard) {
  for (const Cut& cut : cuts) {
    std::string body = replaceAll(replaceAll(replaceAll(R"(
      %b = dist.all_reduce sum %x axes ["replicate", "shard"] order rank : tensor<6x12xf32> to tensor<6x12xf32>
      %p = dist.take_shard %b axes AXES dim DIM : tensor<6x12xf32> to PART
      %a = dist.all_gather %p axes AXES dims [DIM] : PART to tensor<6x12xf32>)",
                                                        "AXES", cut.axes),
                                             "DIM", std::to_string(cut.dim)),
                                  "PART", cut.part);
    for (const Tensors& result : runOnDraws(parse(twoByThree, twoResults(body))))
      EXPECT_EQ(elements(result[0]), elements(result[1])) << body;
  }
}

struct Whole {
  const char* op;     ///< after its name
  const char* halves; ///< the same after dist.start, around `outs`
  const char* type;
};
const Whole wholes[] = {
    {R"(all_gather %x axes ["shard"] dims [1])", R"(axes ["shard"] dims [1])", "tensor<6x36xf32>"},
    {R"(reduce_scatter sum %x axes ["replicate", "shard"] dims [0] order rank)",
     R"(axes ["replicate", "shard"] dims [0] order rank)", "tensor<1x12xf32>"},
    {R"(all_reduce sum %x axes ["replicate"] order tree)", R"(axes ["replicate"] order tree)",
     "tensor<6x12xf32>"}};

/// @f computes the collective as one op and as halves, around which `between` uses %e.
std::string bothForms(const Whole& whole, StringRef between = "") {
  StringRef op = whole.op, name = op.take_until([](char c) { return c == ' '; });
  std::string type = whole.type;
  return ("func.func @f(%x: tensor<6x12xf32>) -> (" + type + ", " + type + ") {\n %a = dist." + op +
          " : tensor<6x12xf32> to " + type + "\n %e = titan.constant dense<1.0> : " + type +
          "\n %t = dist.start " + name + " ins(%x : tensor<6x12xf32>) outs(%e : " + type + ") " +
          whole.halves + "\n " + between +
          "\n %w = dist.wait %t ins(%x : tensor<6x12xf32>) outs(%e : " + type + ") -> (" + type +
          ")\n return %a, " + (between.empty() ? "%w" : "%b") + " : " + type + ", " + type + "\n}")
      .str();
}

TEST_F(Ranks, HalvesAreTheWhole) {
  for (const Whole& whole : wholes)
    for (const Tensors& result : runOnDraws(parse(twoByThree, bothForms(whole))))
      EXPECT_EQ(elements(result[0]), elements(result[1])) << whole.op;
}

TEST_F(Ranks, WhatIsReadBeforeItsWaitIsNaN) {
  for (const Whole& whole : wholes) {
    func::FuncOp f = parse(
        twoByThree, bothForms(whole, ("%b = titan.add %e, %e : " + StringRef(whole.type)).str()));
    for (const Tensors& result : runOnDraws(f))
      for (double x : result[1].floats())
        EXPECT_TRUE(std::isnan(x)) << whole.op;
  }
}

TEST_F(Ranks, ACollectiveThatOneRankLacksNamesBothPlaces) {
  constexpr StringRef sum = R"( %s = dist.all_reduce sum %a axes ["shard"] order rank : T to T)";
  for (const Whole& whole : wholes) {
    std::string with =
        replaceAll((R"(func.func @f(%x: tensor<6x12xf32>) { %a = dist.)" + StringRef(whole.op) +
                    " : tensor<6x12xf32> to T\n" + sum + "\n return\n}")
                       .str(),
                   "T", whole.type);
    std::string without = replaceAll((R"(func.func @f(%x: tensor<6x12xf32>) {
      %a = titan.constant dense<0.0> : T)" +
                                      sum + "\n return\n}")
                                         .str(),
                                     "T", whole.type);
    SmallVector<func::FuncOp> programs(6, parse(twoByThree, with));
    programs[4] = parse(twoByThree, without);
    message.clear();
    EXPECT_TRUE(run(programs, [&](int64_t r) { return draw(programs[r], r); }).empty());
    std::string name = StringRef(whole.op).take_until([](char c) { return c == ' '; }).str();
    EXPECT_NE(message.find("rank 4 is at '"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 0 at '"), std::string::npos) << message;
    EXPECT_NE(message.find("dist." + name), std::string::npos) << message;
    EXPECT_NE(message.find("dist.all_reduce sum %"), std::string::npos) << message;
  }
}

TEST_F(Ranks, ACollectiveThatOneRankLacksAtTheEndNamesTheOther) {
  constexpr StringRef with = R"(func.func @f(%x: tensor<4xf32>) {
    %s = dist.all_reduce sum %x axes ["shard"] order rank : tensor<4xf32> to tensor<4xf32>
    return
  })";
  constexpr StringRef without = "func.func @f(%x: tensor<4xf32>) {\n return\n}";
  SmallVector<func::FuncOp> programs(4, parse(four, with));
  programs[3] = parse(four, without);
  EXPECT_TRUE(run(programs, [&](int64_t r) { return draw(programs[r], r); }).empty());
  EXPECT_NE(message.find("rank 0 is at '"), std::string::npos) << message;
  EXPECT_NE(message.find("', rank 3 has ended"), std::string::npos) << message;
  programs.assign(4, parse(four, without));
  programs[2] = parse(four, with);
  EXPECT_TRUE(run(programs, [&](int64_t r) { return draw(programs[r], r); }).empty());
  EXPECT_NE(message.find("rank 2 is at '"), std::string::npos) << message;
  EXPECT_NE(message.find("', rank 0 has ended"), std::string::npos) << message;
}

/// Other axes, another order, other dims: ranks would wait for ever, or take the wrong bytes.
TEST_F(Ranks, CollectivesThatDifferDoNotMeet) {
  auto of = [&](StringRef collective) {
    return parse(
        twoByThree,
        ("func.func @f(%x: tensor<6x6xf32>) {\n %s = dist." + collective + "\n return\n}").str());
  };
  const std::pair<StringRef, StringRef> pairs[] = {
      {R"(all_reduce sum %x axes ["shard"] order rank : tensor<6x6xf32> to tensor<6x6xf32>)",
       R"(all_reduce sum %x axes ["replicate"] order rank : tensor<6x6xf32> to tensor<6x6xf32>)"},
      {R"(all_reduce sum %x axes ["replicate"] order tree : tensor<6x6xf32> to tensor<6x6xf32>)",
       R"(all_reduce sum %x axes ["replicate"] order rank : tensor<6x6xf32> to tensor<6x6xf32>)"},
      {R"(all_gather %x axes ["shard"] dims [0] : tensor<6x6xf32> to tensor<18x6xf32>)",
       R"(all_gather %x axes ["shard"] dims [1] : tensor<6x6xf32> to tensor<6x18xf32>)"}};
  for (auto [usual, other] : pairs) {
    SmallVector<func::FuncOp> programs(6, of(usual));
    programs[5] = of(other);
    message.clear();
    EXPECT_TRUE(run(programs, [&](int64_t r) { return draw(programs[r], r); }).empty());
    EXPECT_NE(message.find("rank 5 is at '"), std::string::npos) << message;
  }
}

TEST_F(Ranks, ARankThatFailsEndsAll) {
  func::FuncOp f = parse(four, R"(func.func @f(%x: tensor<1xi64>) -> tensor<1xi64> {
    %a = dist.all_reduce sum %x axes ["shard"] order rank : tensor<1xi64> to tensor<1xi64>
    %y = arith.divsi %a, %x : tensor<1xi64>
    %b = dist.all_reduce sum %y axes ["shard"] order rank : tensor<1xi64> to tensor<1xi64>
    return %b : tensor<1xi64>
  })");
  auto arguments = [&](int64_t zero) {
    return [&, zero](int64_t rank) -> Tensors {
      return {Tensor::splat(cast<ShapedType>(f.getArgumentTypes()[0]), rank == zero ? 0 : 1)};
    };
  };
  const SmallVector<func::FuncOp> programs(4, f);
  for (int64_t rank = 0; rank < 4; ++rank) {
    message.clear();
    EXPECT_TRUE(run(programs, arguments(rank)).empty());
    EXPECT_NE(message.find("divides the integer 3 by zero"), std::string::npos) << message;
  }
  EXPECT_EQ(run(f, arguments(-1))[3][0].integer(), 16);
}

TEST_F(Ranks, OneRankAloneHasNoneToMeet) {
  func::FuncOp f = parse(four, R"(func.func @f() -> index {
    %s = dist.coordinate "shard"
    return %s : index
  })");
  EXPECT_TRUE(failed(titan::interpreter::run(f, ArrayRef<Tensor>(), Engine::F32)));
  EXPECT_NE(message.find("'dist.coordinate' op has no meaning on one rank alone"),
            std::string::npos)
      << message;
}

/// In a loop ranks meet once an iteration.
TEST_F(Ranks, MeetInLoops) {
  func::FuncOp f = parse(four, R"(func.func @f(%x: tensor<3x2xf32>) -> tensor<2xf32> {
    %zero = titan.constant dense<0.0> : tensor<2xf32>
    %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
      %y = dist.all_reduce sum %xi axes ["shard"] order rank : tensor<2xf32> to tensor<2xf32>
      %z = titan.mul %y, %y : tensor<2xf32>
      %b = titan.add %a, %z : tensor<2xf32>
      accum.yield %b : tensor<2xf32>
    }
    return %s : tensor<2xf32>
  })");
  auto results = run(f, [&](int64_t rank) -> Tensors {
    const double r = static_cast<double>(rank);
    return {floats({3, 2}, {r, 1, 1, r, 0, 0})};
  });
  for (const Tensors& result : results)
    EXPECT_EQ(elements(result[0]), (std::vector<double>{6 * 6 + 4 * 4, 4 * 4 + 6 * 6}));
}

} // namespace
