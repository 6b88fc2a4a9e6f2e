// Exact sums against integers made of the bits of f32, and against LLVM's rounding of a number that
// is written in full.
#include "dialects/Titan/ExactSum.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

using namespace mlir;
using namespace titan::interpreter;
namespace exact = titan::ir::exact;

namespace {

constexpr unsigned width = 512;

/// `x` in units of 2^-149, from its bits.
APInt integerOf(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
  APInt value(width, exponent == 0 ? fraction : fraction | 0x800000);
  value <<= exponent == 0 ? 0 : exponent - 1;
  return bits >> 31 ? -value : value;
}

/// `sum` * 2^-149 as the nearest f32.
float nearest(const APInt& sum) {
  const std::string text =
      (sum.isNegative() ? "-0x" : "0x") + llvm::toString(sum.abs(), 16, false) + "p-149";
  return llvm::APFloat(llvm::APFloat::IEEEsingle(), text).convertToFloat();
}

class ExactSum : public titan::interpreter::testing::ModuleFixture {
protected:
  Tensor runOn(const std::string& text, const Tensor& argument, Engine engine) {
    OwningOpRef<ModuleOp> module = parse(text);
    FailureOr<SmallVector<Tensor>> results =
        run(module->lookupSymbol<func::FuncOp>("f"), argument, engine);
    EXPECT_TRUE(succeeded(results)) << message;
    return succeeded(results) ? results->front() : Tensor();
  }
  std::vector<int64_t> words(ArrayRef<double> values, Engine engine = Engine::F32) {
    const std::string type = "tensor<" + std::to_string(values.size()) + "xf32>";
    Tensor sum = runOn("func.func @f(%x: " + type +
                           ") -> tensor<10xi64> {\n %y = titan.exact_sum %x : " + type +
                           " to tensor<10xi64>\n return %y : tensor<10xi64> }",
                       floats({static_cast<int64_t>(values.size())}, values), engine);
    return sum.integers().vec();
  }
  double value(ArrayRef<int64_t> words, Engine engine = Engine::F32) {
    auto type = RankedTensorType::get(exact::words, IntegerType::get(&context, 64));
    return runOn("func.func @f(%x: tensor<10xi64>) -> tensor<f32> {\n %y = titan.exact_value %x : "
                 "tensor<10xi64> to tensor<f32>\n return %y : tensor<f32> }",
                 Tensor::of(type, words), engine)
        .real();
  }
  double sum(ArrayRef<double> values, Engine engine = Engine::F32) {
    return value(words(values, engine), engine);
  }

  std::mt19937 random{17};
  /// Any finite f32: all exponents are equally likely.
  float draw() {
    for (;;)
      if (auto x = std::bit_cast<float>(static_cast<uint32_t>(random())); std::isfinite(x))
        return x;
  }
};

TEST_F(ExactSum, WordsAreTheDigitsOfAnElement) {
  for (float x : {0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 1.0f, -1.0f / 3, 0.0f, -0.0f,
                  draw(), draw(), draw(), draw()}) {
    const APInt integer = integerOf(x), magnitude = integer.abs();
    std::vector<int64_t> wanted;
    for (unsigned digit = 0; digit < exact::digits; ++digit) {
      const auto part = static_cast<int64_t>(
          magnitude.extractBitsAsZExtValue(exact::digitBits, digit * exact::digitBits));
      wanted.push_back(integer.isNegative() ? -part : part);
    }
    wanted.push_back(0);
    EXPECT_EQ(words(double(x)), wanted) << x;
  }
}

TEST_F(ExactSum, WordsOfTheWholeAreSumsOfThoseOfItsParts) {
  std::vector<double> values(57);
  for (double& x : values)
    x = draw();
  values[3] = INFINITY;
  values[40] = NAN;
  std::vector<int64_t> first = words(ArrayRef(values).take_front(20)),
                       second = words(ArrayRef(values).drop_front(20));
  for (auto [a, b] : llvm::zip_equal(first, second))
    a += b;
  EXPECT_EQ(words(values), first);
  EXPECT_EQ(first.back(), 2);
}

// Sums of numbers of all sizes, and of numbers of which most cancel.
TEST_F(ExactSum, ValueIsRoundedOnce) {
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> values;
    APInt wanted(width, 0);
    for (int i = 0; i < 1 + trial % 40; ++i) {
      const float x = trial % 2 ? draw() : std::ldexp(draw(), -60);
      values.push_back(x);
      wanted += integerOf(x);
      if (trial % 3 == 0) {
        values.push_back(-std::nextafterf(x, 0));
        wanted += integerOf(-std::nextafterf(x, 0));
      }
    }
    EXPECT_EQ(sum(values), nearest(wanted)) << "trial " << trial;
  }
}

TEST_F(ExactSum, TiesGoToEven) {
  EXPECT_EQ(sum({0x1p24, 1}), 0x1p24);
  EXPECT_EQ(sum({0x1p24, 1, 0x1p-149}), 0x1p24 + 2);
  EXPECT_EQ(sum({0x1p24 + 2, 1}), 0x1p24 + 4);
  EXPECT_EQ(sum({0x1p24 + 2, 1, -0x1p-149}), 0x1p24 + 2);
  EXPECT_EQ(sum({-0x1p24, -1}), -0x1p24);
}

TEST_F(ExactSum, LargestSums) {
  const double most = 0x1.fffffep127;
  EXPECT_EQ(sum({most, most, -most}), most);
  EXPECT_EQ(sum({most, 0x1p102}), most); // below half of a step
  EXPECT_EQ(sum({most, 0x1p103}), INFINITY);
  EXPECT_EQ(sum({-most, -most}), -INFINITY);
  // 2^31 times the largest: what words may hold.
  std::vector<int64_t> many = words(most);
  for (int64_t& word : many)
    word *= exact::mostElements;
  EXPECT_EQ(value(many), INFINITY);
  EXPECT_EQ(value(many, Engine::F64), 0x1.fffffep158);
}

TEST_F(ExactSum, ZeroIsPositiveAndWhatIsNotFiniteIsNaN) {
  EXPECT_FALSE(std::signbit(sum({-0.0, -0.0})));
  EXPECT_FALSE(std::signbit(sum({1.5, -1.5})));
  for (double x : {double(INFINITY), double(-INFINITY), double(NAN)})
    EXPECT_TRUE(std::isnan(sum({1, x})));
  EXPECT_TRUE(std::isnan(sum({INFINITY, -INFINITY})));
}

TEST_F(ExactSum, F64HasMoreDigitsAndTheSameUnit) {
  EXPECT_EQ(sum({1.0 / 3, 1.0 / 3}, Engine::F64), 2.0 / 3);
  EXPECT_EQ(sum({0x1p-149 + 0x1p-180}, Engine::F64), 0x1p-149);
  EXPECT_EQ(sum({0x1p-150, -0x1p-300}, Engine::F64), 0);
  EXPECT_TRUE(std::isnan(sum({0x1p128}, Engine::F64)));
}

} // namespace
