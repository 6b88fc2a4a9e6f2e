// The polynomials that stand for functions: errors against libm in f64, and one lane as all.
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace titan::codegen::testing {
namespace {

struct FunctionSpec {
  const char* op;
  double (*reference)(double);
  double low, high;
  double ulps;
};

KernelCase kernelOf(const char* op, int64_t count, const std::string& element = "f32") {
  return KernelCase({.space = {count},
                     .ins = {{element, "(i) -> (i)", {count}}},
                     .outs = {{element, "(i) -> (i)", {count}}},
                     .kernelClass = "flat",
                     .body = "\n^bb0(%x: " + element + "):\n  %y = math." + op +
                             " %x : " + element + "\n  kernel.yield %y : " + element + "\n"});
}

class Functions : public ::testing::TestWithParam<FunctionSpec> {};

TEST_P(Functions, ErrorIsAFewUlps) {
  const FunctionSpec& spec = GetParam();
  constexpr int64_t count = 20001;
  Elements in(count);
  for (int64_t i = 0; i < count; ++i)
    in[i] = static_cast<float>(spec.low + (spec.high - spec.low) * i / (count - 1));
  KernelCase kernel = kernelOf(spec.op, count);
  kernel.setIn(0, in);
  Elements out = decode("f32", kernel.run()[0]);
  for (int64_t i = 0; i < count; ++i) {
    double want = spec.reference(in[i]);
    double ulp = std::ldexp(1.0, std::max(std::ilogb(static_cast<float>(want)), -126) - 23);
    ASSERT_LE(std::abs(out[i] - want), spec.ulps * ulp) << spec.op << "(" << in[i] << ")";
  }
}

TEST_P(Functions, PlaceInTheVectorDoesNotMatter) {
  const FunctionSpec& spec = GetParam();
  constexpr int64_t count = 83;
  Elements in(count);
  for (int64_t i = 0; i < count; ++i)
    in[i] = static_cast<float>(spec.low + (spec.high - spec.low) * i / (count - 1));
  KernelCase kernel = kernelOf(spec.op, count), single = kernelOf(spec.op, 1);
  kernel.setIn(0, in);
  std::string all = kernel.run()[0];
  for (int64_t i = 0; i < count; ++i) {
    single.setIn(0, {in[i]});
    ASSERT_EQ(single.run()[0], all.substr(i * 4, 4)) << spec.op << "(" << in[i] << ")";
  }
}

/// Doubles have no polynomials: every function comes from libm, or from instructions.
class DoubleFunctions : public ::testing::TestWithParam<FunctionSpec> {};

TEST_P(DoubleFunctions, AreThoseOfLibm) {
  const FunctionSpec& spec = GetParam();
  constexpr int64_t count = 1003; // whole vectors, and a rest
  Elements in(count);
  for (int64_t i = 0; i < count; ++i)
    in[i] = spec.low + (spec.high - spec.low) * i / (count - 1);
  KernelCase kernel = kernelOf(spec.op, count, "f64");
  kernel.setIn(0, in);
  Elements out = decode("f64", kernel.run()[0]);
  for (int64_t i = 0; i < count; ++i) {
    double want = spec.reference(in[i]);
    ASSERT_NEAR(out[i], want, spec.ulps * 0x1p-52 * std::abs(want))
        << spec.op << "(" << in[i] << ")";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DoubleFunctions,
    ::testing::Values(
        FunctionSpec{"exp", std::exp, -700, 700, 2}, FunctionSpec{"exp2", std::exp2, -700, 700, 2},
        FunctionSpec{"expm1", std::expm1, -30, 30, 4}, FunctionSpec{"log", std::log, 1e-6, 1e4, 2},
        FunctionSpec{"log1p", std::log1p, -0.9, 100, 2},
        FunctionSpec{"log2", std::log2, 1e-6, 1e4, 2}, FunctionSpec{"tanh", std::tanh, -12, 12, 2},
        FunctionSpec{"erf", std::erf, -5, 5, 2}, FunctionSpec{"erfc", std::erfc, -5, 5, 2},
        FunctionSpec{"sin", std::sin, -50, 50, 2}, FunctionSpec{"cos", std::cos, -50, 50, 2},
        FunctionSpec{"atan", std::atan, -50, 50, 2}, FunctionSpec{"sqrt", std::sqrt, 0, 1e6, 1},
        FunctionSpec{"floor", std::floor, -9, 9, 0}, FunctionSpec{"ceil", std::ceil, -9, 9, 0}),
    [](const auto& info) { return std::string(info.param.op); });

TEST(DoubleFunctions, Expm1IsAccurateNearZero) {
  for (double x : {1e-300, 1e-17, -3e-16, 2e-10, -1e-5, 0.0, -50.0, 709.0, double(-INFINITY),
                   double(INFINITY)}) {
    KernelCase kernel = kernelOf("expm1", 1, "f64");
    kernel.setIn(0, {x});
    double found = decode("f64", kernel.run()[0])[0], want = std::expm1(x);
    EXPECT_TRUE(found == want || std::abs(found - want) <= 4 * 0x1p-52 * std::abs(want))
        << "expm1(" << x << ") = " << found << ", not " << want;
  }
}

/// Pairs whose quotients are up to 2^`exponents`, of either sign.
std::pair<Elements, Elements> dividends(const std::string& element, int64_t count, int exponents) {
  std::mt19937 generator(exponents);
  auto mantissa = [&] {
    const double drawn = 1 + generator() % 65536 / 65536.0 + generator() % 127 * 0x1p-23;
    return generator() % 2 == 0 ? drawn : -drawn;
  };
  auto below = [&](int limit) { return static_cast<int>(generator() % limit); };
  Elements x(count), y(count);
  for (int64_t i = 0; i < count; ++i) {
    const int exponent = below(40) - 20;
    y[i] = std::ldexp(mantissa(), exponent);
    x[i] = std::ldexp(mantissa(), exponent + below(exponents + 3) - 3);
    if (below(4) == 0) // whole quotients, and what is next to one
      x[i] = std::nextafter(static_cast<float>(below(1000) * y[i]), 0.0F + below(3) - 1);
  }
  return {decode(element, encode(element, x)), decode(element, encode(element, y))};
}

void checkRemainders(const std::string& element, const Elements& x, const Elements& y) {
  const auto count = static_cast<int64_t>(x.size());
  const OperandSpec operand{element, "(i) -> (i)", {count}};
  KernelCase kernel({.space = {count},
                     .ins = {operand, operand},
                     .outs = {operand},
                     .kernelClass = "flat",
                     .body = "\n^bb0(%x: " + element + ", %y: " + element +
                             "):\n  %r = arith.remf %x, %y : " + element +
                             "\n  kernel.yield %r : " + element + "\n"});
  kernel.setIn(0, x);
  kernel.setIn(1, y);
  const Elements found = decode(element, kernel.run()[0]);
  for (int64_t i = 0; i < count; ++i) {
    const double want = std::fmod(x[i], y[i]);
    ASSERT_TRUE(std::isnan(want) ? std::isnan(found[i])
                                 : found[i] == want && std::signbit(found[i]) == std::signbit(want))
        << "the remainder of " << x[i] << " by " << y[i] << " is " << want << ", not " << found[i];
  }
}

TEST(Remainder, IsExact) {
  for (const std::string element : {"f32", "f64"})
    for (int exponents : {1, 10, 27, 28, 29, 60}) { // around what f64 does for f32
      SCOPED_TRACE(element + " up to 2^" + std::to_string(exponents));
      for (int64_t count : {4003, 1}) { // whole vectors, and a rest
        const auto [x, y] = dividends(element, count, exponents);
        checkRemainders(element, x, y);
      }
    }
}

TEST(Remainder, LimitsAreKept) {
  for (const std::string element : {"f32", "f64"})
    for (double x : {0.0, -0.0, 1.0, -5.5, 3e38, 1e-45, -1e-40, double(INFINITY), double(NAN)})
      for (double y : {0.0, -0.0, 2.0, -5.5, 3e38, 1e-45, -1e-40, double(INFINITY), double(NAN)}) {
        const auto rounded = [&](double value) {
          return decode(element, encode(element, {value}));
        };
        checkRemainders(element, rounded(x), rounded(y));
      }
}

TEST(Functions, LimitsAreKept) {
  constexpr double infinity = INFINITY;
  for (auto [op, in, want] : {std::tuple{"exp", infinity, infinity},
                              {"exp", -infinity, 0.0},
                              {"exp", 1000.0, infinity},
                              {"exp", -1000.0, 0.0},
                              {"log", 0.0, -infinity},
                              {"log", infinity, infinity},
                              {"expm1", infinity, infinity},
                              {"expm1", -infinity, -1.0},
                              {"expm1", 1e-30, static_cast<double>(1e-30F)},
                              {"expm1", NAN, NAN},
                              {"atan", infinity, static_cast<double>(1.57079633F)},
                              {"atan", -infinity, static_cast<double>(-1.57079633F)},
                              {"atan", 1e-30, static_cast<double>(1e-30F)},
                              {"atan", NAN, NAN},
                              {"sin", -0.0, 0.0},
                              {"sin", 1e-30, static_cast<double>(1e-30F)},
                              {"sin", infinity, NAN},
                              {"cos", NAN, NAN},
                              {"tanh", infinity, 1.0},
                              {"tanh", -infinity, -1.0},
                              {"erf", infinity, 1.0},
                              {"exp", NAN, NAN},
                              {"log", NAN, NAN},
                              {"tanh", NAN, NAN},
                              {"erf", NAN, NAN},
                              {"log", -1.0, NAN}}) {
    KernelCase kernel = kernelOf(op, 1);
    kernel.setIn(0, {static_cast<float>(in)});
    double found = decode("f32", kernel.run()[0])[0];
    EXPECT_TRUE(found == want || (std::isnan(found) && std::isnan(want)))
        << op << "(" << in << ") = " << found;
  }
}

TEST(Functions, AnglesMayBeLarge) {
  for (auto [op, reference] : {std::pair{"sin", +[](double x) { return std::sin(x); }},
                               {"cos", +[](double x) { return std::cos(x); }}})
    for (double magnitude : {1e6, 1e7, 1e8, 1e9}) {
      constexpr int64_t count = 1003;
      Elements in(count);
      for (int64_t i = 0; i < count; ++i)
        in[i] = static_cast<float>(magnitude * (2 * i - count) / count);
      KernelCase kernel = kernelOf(op, count);
      kernel.setIn(0, in);
      const Elements out = decode("f32", kernel.run()[0]);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_NEAR(out[i], reference(in[i]), 1e-5) << op << "(" << in[i] << ")";
    }
}

INSTANTIATE_TEST_SUITE_P(All, Functions,
                         ::testing::Values(FunctionSpec{"exp", std::exp, -87, 88, 2},
                                           FunctionSpec{"expm1", std::expm1, -20, 88, 4},
                                           FunctionSpec{"log", std::log, 1e-6, 1e4, 2},
                                           FunctionSpec{"atan", std::atan, -50, 50, 4},
                                           FunctionSpec{"sin", std::sin, -1e5, 1e5, 2},
                                           FunctionSpec{"cos", std::cos, -1e5, 1e5, 2},
                                           FunctionSpec{"tanh", std::tanh, -12, 12, 6},
                                           FunctionSpec{"erf", std::erf, -5, 5, 5},
                                           FunctionSpec{"log1p", std::log1p, -0.9, 100, 4},
                                           FunctionSpec{"sqrt", std::sqrt, 0, 1e6, 0.51}),
                         [](const auto& info) { return std::string(info.param.op); });

} // namespace
} // namespace titan::codegen::testing
