// What references cannot show: engines, randomness, loops, kernels, and the equivalence check
// itself.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Kernel/Kernel.h"
#include "runtime/program/Random.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace titan::interpreter;

namespace {

class Interpreter : public titan::interpreter::testing::ModuleFixture {
protected:
  /// The function @f of a module with this text.
  func::FuncOp parse(StringRef text) {
    modules.push_back(ModuleFixture::parse(text));
    return modules.back()->lookupSymbol<func::FuncOp>("f");
  }
  Tensor runOne(func::FuncOp function, ArrayRef<Tensor> arguments, Engine engine = Engine::F64) {
    FailureOr<SmallVector<Tensor>> results = run(function, arguments, engine);
    EXPECT_TRUE(succeeded(results)) << message;
    return succeeded(results) ? results->front() : Tensor();
  }
  std::vector<OwningOpRef<ModuleOp>> modules;
};

TEST_F(Interpreter, F32EngineRoundsEveryValueF64EngineNone) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<1xf32>) -> tensor<1xbf16> {
      %y = titan.convert %x : tensor<1xf32> to tensor<1xbf16>
      return %y : tensor<1xbf16>
    })");
  const double third = 1.0 / 3;
  EXPECT_EQ(runOne(f, floats({1}, third), Engine::F64).real(), third);
  EXPECT_EQ(runOne(f, floats({1}, third), Engine::F32).real(), 0.333984375); // bf16 nearest
}

TEST_F(Interpreter, NarrowIntegersWrap) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<1xi8>) -> tensor<1xi8> {
      %y = titan.add %x, %x : tensor<1xi8>
      return %y : tensor<1xi8>
    })");
  Tensor x(cast<ShapedType>(f.getArgumentTypes()[0]));
  x.mutableIntegers()[0] = 100;
  EXPECT_EQ(runOne(f, x).integer(), -56);
}

TEST_F(Interpreter, MaximumPropagatesNaNFromEitherSide) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
      %z = titan.max %x, %y : tensor<2xf32>
      return %z : tensor<2xf32>
    })");
  Tensor z = runOne(f, {floats({2}, {NAN, 1}), floats({2}, {1, NAN})});
  EXPECT_TRUE(std::isnan(z.floats()[0]) && std::isnan(z.floats()[1]));
}

TEST_F(Interpreter, EqualElementsAreSortedByIndexAndNaNIsTheLargest) {
  auto indicesBy = [&](const std::string& order) {
    func::FuncOp f = parse("func.func @f(%x: tensor<8xf32>) -> tensor<8xi64> {\n"
                           "  %v, %i = titan.top_k %x " +
                           order +
                           " : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi64>)\n"
                           "  return %i : tensor<8xi64>\n}");
    Tensor x = Tensor::of(cast<ShapedType>(f.getArgumentTypes()[0]),
                          ArrayRef<double>{0, NAN, -0.0, INFINITY, 3, -INFINITY, -NAN, 3});
    return runOne(f, x).integers().vec();
  };
  EXPECT_EQ(indicesBy(""), (std::vector<int64_t>{1, 6, 3, 4, 7, 0, 2, 5}));
  EXPECT_EQ(indicesBy("smallest"), (std::vector<int64_t>{5, 0, 2, 4, 7, 3, 1, 6}));
}

TEST_F(Interpreter, DropoutIsKeyedByTheGlobalElementIndex) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<3x4xf32>, %seed: tensor<i64>, %step: tensor<i64>, %base: index) -> tensor<3x4xf32> {
      %y = titan.dropout %x p 0.25 stream 7 seed %seed step %step base %base
          {window = #titan.window<[3, 8], multiple = 1>} : tensor<3x4xf32> to tensor<3x4xf32>
      return %y : tensor<3x4xf32>
    })");
  Tensor ones = Tensor::splat(cast<ShapedType>(f.getArgumentTypes()[0]), 1);
  Tensor second = Tensor::scalar(IndexType::get(&context), 4);
  Tensor y = runOne(f, {ones, integer(11), integer(5), second});
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t column = 0; column < 4; ++column) {
      bool keeps = titan::dropoutKeeps(titan::randomKey(11, 7), 5, row * 8 + 4 + column,
                                       titan::keepThreshold(0.25));
      EXPECT_DOUBLE_EQ(y.floats()[row * 4 + column], keeps ? 1 / 0.75 : 0);
    }
}

TEST_F(Interpreter, SharedDimensionsHaveOneDecision) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<3x2x4xf32>, %seed: tensor<i64>, %step: tensor<i64>, %base: index) -> tensor<3x2x4xf32> {
      %y = titan.dropout %x p 0.25 stream 7 shared [1] seed %seed step %step base %base
          {window = #titan.window<[6, 1, 4], multiple = 1>} : tensor<3x2x4xf32> to tensor<3x2x4xf32>
      return %y : tensor<3x2x4xf32>
    })");
  Tensor ones = Tensor::splat(cast<ShapedType>(f.getArgumentTypes()[0]), 1);
  Tensor second = Tensor::scalar(IndexType::get(&context), 12);
  Tensor y = runOne(f, {ones, integer(11), integer(5), second});
  for (int64_t i = 0; i < y.size(); ++i) {
    bool keeps = titan::dropoutKeeps(titan::randomKey(11, 7), 5, 12 + i / 8 * 4 + i % 4,
                                     titan::keepThreshold(0.25));
    EXPECT_DOUBLE_EQ(y.floats()[i], keeps ? 1 / 0.75 : 0);
  }
}

TEST_F(Interpreter, RandomNumbersAreKeyedByTheGlobalElementIndex) {
  for (StringRef kind : {"uniform", "normal"}) {
    func::FuncOp f = parse((Twine("func.func @f(%seed: tensor<i64>, %step: tensor<i64>, "
                                  "%base: index) -> tensor<3x4xf32> {\n"
                                  "  %y = titan.random ") +
                            kind +
                            " stream 7 seed %seed step %step base %base "
                            "{window = #titan.window<[3, 9], multiple = 1>} : tensor<3x4xf32>\n"
                            "  return %y : tensor<3x4xf32>\n}")
                               .str());
    Tensor y = runOne(f, {integer(11), integer(5), Tensor::scalar(IndexType::get(&context), 4)});
    const uint64_t key = titan::randomKey(11, 7);
    for (int64_t i = 0; i < y.size(); ++i) {
      const uint64_t element = i / 4 * 9 + 4 + i % 4;
      EXPECT_FLOAT_EQ(static_cast<float>(y.floats()[i]), kind == "normal"
                                                             ? titan::normalDraw(key, 5, element)
                                                             : titan::uniformDraw(key, 5, element));
    }
  }
}

TEST_F(Interpreter, LoopSumsTermsOrCarriesAccumulators) {
  StringRef unordered = R"(
    func.func @f(%x: tensor<3x2xf32>) -> tensor<2xf32> {
      %s = accum.loop %i in 3 unordered slices(%xi = %x : tensor<3x2xf32>) -> (tensor<2xf32>) {
        %y = titan.mul %xi, %xi : tensor<2xf32>
        accum.yield %y : tensor<2xf32>
      }
      return %s : tensor<2xf32>
    })";
  StringRef running = R"(
    func.func @f(%x: tensor<3x2xf32>) -> tensor<2xf32> {
      %zero = titan.constant dense<0.0> : tensor<2xf32>
      %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
        %y = titan.mul %xi, %xi : tensor<2xf32>
        %b = titan.add %a, %y : tensor<2xf32>
        accum.yield %b : tensor<2xf32>
      }
      return %s : tensor<2xf32>
    })";
  Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  for (StringRef text : {unordered, running}) {
    Tensor sum = runOne(parse(text), x);
    EXPECT_EQ(sum.floats()[0], 35);
    EXPECT_EQ(sum.floats()[1], 56);
  }
}

TEST_F(Interpreter, ATreeAddsNeighboursFirstAndStartsEachSumAtZero) {
  std::string text = R"(
    func.func @f(%x: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
      %s, %r = accum.loop %i in 4 ORDER stacked = 1 slices(%xi = %x : tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
        accum.yield %xi, %xi : tensor<f32>, tensor<f32>
      }
      return %s, %r : tensor<f32>, tensor<4xf32>
    })";
  // From 2^24 on f32 has even integers only.
  Tensor large = floats({4}, {16777216, 1, 1, 1}), nothing = floats({4}, {-0.0, -0.0, -0.0, -0.0});
  auto sum = [&](StringRef order, const Tensor& x) {
    func::FuncOp f = parse(replaceAll(text, "ORDER", order.str()));
    auto results = titan::interpreter::run(f, x, Engine::F32);
    EXPECT_TRUE(succeeded(results));
    EXPECT_EQ((*results)[1].floats(), x.floats());
    return (*results)[0].real();
  };
  EXPECT_EQ(sum("unordered", large), 16777216);
  EXPECT_EQ(sum("tree", large), 16777218);
  EXPECT_TRUE(std::signbit(sum("unordered", nothing)));
  EXPECT_FALSE(std::signbit(sum("tree", nothing)));
}

constexpr StringLiteral softmaxKernel = R"(
  func.func @f(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
    %o = kernel.empty : tensor<3x5xf32>
    %y = kernel.fused row [3, 5] ins(%x : tensor<3x5xf32>) outs(%o : tensor<3x5xf32>)
        maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>] -> (tensor<3x5xf32>) {
    ^bb0(%v: f32):
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %sum : f32
      kernel.yield %p : f32
    }
    return %y : tensor<3x5xf32>
  })";

TEST_F(Interpreter, FusedKernelIsTheOpItCameFrom) {
  parse("func.func @f(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {\n"
        "  %y = titan.softmax %x dim 1 : tensor<3x5xf32>\n  return %y : tensor<3x5xf32>\n}");
  parse(softmaxKernel);
  EXPECT_TRUE(succeeded(checkEquivalent(*modules[0], *modules[1]))) << message;
}

TEST_F(Interpreter, FusedKernelReadsAndWritesThroughItsMaps) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<2x3xf32>, %b: tensor<3xf32>, %o: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %y = kernel.fused transpose [2, 3] ins(%x, %b : tensor<2x3xf32>, tensor<3xf32>) outs(%o : tensor<3x4xf32>)
          maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (c, r * 2 + 1)>] -> (tensor<3x4xf32>) {
      ^bb0(%v: f32, %w: f32):
        %i = kernel.index 1
        %j = arith.index_cast %i : index to i64
        %k = arith.sitofp %j : i64 to f32
        %s = arith.addf %v, %w : f32
        %t = math.fma %k, %w, %s : f32
        kernel.yield %t : f32
      }
      return %y : tensor<3x4xf32>
    })");
  Tensor y = runOne(f, {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3}, {10, 20, 30}),
                        floats({3, 4}, SmallVector<double>(12, -1))});
  const double wanted[] = {-1, 11, -1, 14, -1, 42, -1, 45, -1, 93, -1, 96};
  EXPECT_EQ(y.floats(), ArrayRef(wanted));
}

TEST_F(Interpreter, LibraryCallIsTheContractionWithItsEpilogue) {
  parse(R"(
    func.func @f(%x: tensor<4x6xf32>, %w: tensor<3x6xf32>, %b: tensor<3xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32> {
      %p = titan.contract %x, %w acc %c batch [] x [] contracting [1] x [1] : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
      %rows = titan.broadcast %b [1] : tensor<3xf32> to tensor<4x3xf32>
      %s = titan.add %p, %rows : tensor<4x3xf32>
      %y = titan.relu %s : tensor<4x3xf32>
      return %y : tensor<4x3xf32>
    })");
  parse(R"(
    func.func @f(%x: tensor<4x6xf32>, %w: tensor<3x6xf32>, %b: tensor<3xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32> {
      %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
          strideC = 0, transposeA = false, transposeB = true, accumulate = true, bias = true, relu = true, tileM = 4, tileN = 3>
          ins(%x, %w, %b : tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
      return %y : tensor<4x3xf32>
    })");
  EquivalenceOptions options;
  options.engine = Engine::F32;
  options.tolerance = 0;
  EXPECT_TRUE(succeeded(checkEquivalent(*modules[0], *modules[1], options))) << message;
}

TEST_F(Interpreter, UnspecifiedContentsAreNaN) {
  func::FuncOp f = parse("func.func @f() -> tensor<2xf32> {\n"
                         "  %o = kernel.empty : tensor<2xf32>\n  return %o : tensor<2xf32>\n}");
  EXPECT_TRUE(std::isnan(runOne(f, {}).floats()[0]));
}

TEST_F(Interpreter, EquivalenceFindsTheFirstElementThatDiffers) {
  parse("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = titan.exp %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}");
  parse("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %c = titan.constant dense<[0.0, 0.0, 1.0e-6, 0.0]> : tensor<4xf32>\n"
        "  %e = titan.exp %x : tensor<4xf32>\n  %y = titan.add %e, %c : tensor<4xf32>\n"
        "  return %y : tensor<4xf32>\n}");
  EXPECT_TRUE(failed(checkEquivalent(*modules[0], *modules[1])));
  EXPECT_NE(message.find("@f result 0: element 2 of 4"), std::string::npos) << message;
}

TEST_F(Interpreter, WithoutToleranceEveryBitCounts) {
  auto describe = [&](double before, double after, double tolerance) {
    return describeDifference(floats({1}, before), floats({1}, after), tolerance);
  };
  const double nan = std::nan("");
  EXPECT_EQ(describe(1, 1, 0), "");
  EXPECT_EQ(describe(nan, nan, 0), "");
  EXPECT_NE(describe(0.0, -0.0, 0), "");
  EXPECT_NE(describe(1, std::nextafter(1, 2), 0), "");
  EXPECT_EQ(describe(0.0, -0.0, 1e-9), "");
  EXPECT_EQ(describe(1, std::nextafter(1, 2), 1e-9), "");
  EXPECT_NE(describe(1, nan, 1e-9), "");
}

TEST_F(Interpreter, AnElementTypeIsPartOfAResult) {
  Builder builder(&context);
  Tensor wide = Tensor::scalar(builder.getF32Type(), 1.0);
  Tensor narrow = Tensor::scalar(builder.getBF16Type(), 1.0);
  EXPECT_EQ(describeDifference(wide, narrow, 1e-9), "is tensor<bf16>, was tensor<f32>");
}

TEST_F(Interpreter, EquivalenceMatchesArgumentsAndResultsByTag) {
  parse("func.func @f(%x: tensor<2xf32> {titan.input = \"x\"}, %y: tensor<2xf32> {titan.input = "
        "\"y\"})"
        " -> (tensor<2xf32> {titan.output = \"d\"}, tensor<2xf32> {titan.output = \"s\"}) {\n"
        "  %d = titan.sub %x, %y : tensor<2xf32>\n  %s = titan.add %x, %y : tensor<2xf32>\n"
        "  return %d, %s : tensor<2xf32>, tensor<2xf32>\n}");
  parse("func.func @f(%y: tensor<2xf32> {titan.input = \"y\"}, %x: tensor<2xf32> {titan.input = "
        "\"x\"})"
        " -> (tensor<2xf32> {titan.output = \"s\"}, tensor<2xf32> {titan.output = \"d\"}) {\n"
        "  %d = titan.sub %x, %y : tensor<2xf32>\n  %s = titan.add %x, %y : tensor<2xf32>\n"
        "  return %s, %d : tensor<2xf32>, tensor<2xf32>\n}");
  EXPECT_TRUE(succeeded(checkEquivalent(*modules[0], *modules[1]))) << message;
}

TEST_F(Interpreter, ErrorsNameWhatIsMissing) {
  func::FuncOp f =
      parse("titan.state @w : tensor<2xf32> {kind = #titan<kind param>, trainable,"
            " init = #titan.init_rule<\"constant\", 0.0 : f64, 0.0 : f64>}\n"
            "func.func @f(%w: tensor<2xf32> {titan.state = @w})"
            " -> (tensor<2xf32> {titan.output = \"y\"}) {\n  return %w : tensor<2xf32>\n}");
  EXPECT_TRUE(failed(run(f, Arguments(), Engine::F64)));
  EXPECT_EQ(message, "@f needs state 'w'");
  Arguments arguments;
  arguments.states["w"] = floats({3}, {1, 2, 3});
  EXPECT_TRUE(failed(run(f, arguments, Engine::F64)));
  EXPECT_EQ(message, "state 'w' is 'tensor<3xf32>', @f takes 'tensor<2xf32>'");
  arguments.states["w"] = floats({2}, {1, 2});
  FailureOr<Results> results = run(f, arguments, Engine::F64);
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ(results->outputs["y"].floats()[1], 2);
}

TEST_F(Interpreter, RowsOutsideOfATensorAreAnError) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<4x2xf32>) -> tensor<3x2xf32> {
      %first = arith.constant 2 : index
      %y = kernel.rows %x[%first] : tensor<4x2xf32> to tensor<3x2xf32>
      return %y : tensor<3x2xf32>
    })");
  EXPECT_TRUE(failed(run(f, floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), Engine::F64)));
  EXPECT_NE(message.find("takes rows [2, 5) of 4"), std::string::npos) << message;
}

TEST_F(Interpreter, TargetsOutsideOfTheClassesAreAnError) {
  func::FuncOp f = parse(R"(
    func.func @f(%x: tensor<1x3xf32>) -> tensor<1xf32> {
      %t = titan.constant dense<3> : tensor<1xi64>
      %y = titan.cross_entropy %x, %t ignore_index -100 label_smoothing 0.0 : (tensor<1x3xf32>, tensor<1xi64>) -> tensor<1xf32>
      return %y : tensor<1xf32>
    })");
  EXPECT_TRUE(failed(run(f, floats({1, 3}, {1, 2, 3}), Engine::F64)));
  EXPECT_NE(message.find("target 3 is not one of 3 classes"), std::string::npos) << message;
}

} // namespace
