// The polynomials that stand for functions: errors against libm in f64, and one lane as all.
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include <gtest/gtest.h>

#include <cmath>

namespace titan::codegen::testing {
namespace {

struct FunctionSpec {
  const char* op;
  double (*reference)(double);
  double low, high;
  double ulps;
};

class Functions : public ::testing::TestWithParam<FunctionSpec> {};

KernelCase kernelOf(const char* op, int64_t count) {
  return KernelCase({.space = {count},
                     .ins = {{"f32", "(i) -> (i)", {count}}},
                     .outs = {{"f32", "(i) -> (i)", {count}}},
                     .kernelClass = "flat",
                     .body = std::string("\n^bb0(%x: f32):\n  %y = math.") + op +
                             " %x : f32\n  kernel.yield %y : f32\n"});
}

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

TEST(Functions, LimitsAreKept) {
  constexpr double infinity = INFINITY;
  for (auto [op, in, want] : {std::tuple{"exp", infinity, infinity},
                              {"exp", -infinity, 0.0},
                              {"exp", 1000.0, infinity},
                              {"exp", -1000.0, 0.0},
                              {"log", 0.0, -infinity},
                              {"log", infinity, infinity},
                              {"tanh", infinity, 1.0},
                              {"tanh", -infinity, -1.0},
                              {"erf", infinity, 1.0},
                              {"exp", NAN, NAN},
                              {"log", NAN, NAN},
                              {"tanh", NAN, NAN},
                              {"erf", NAN, NAN},
                              {"log", -1.0, NAN}}) {
    KernelCase kernel = kernelOf(op, 1);
    kernel.setIn(0, {in});
    double found = decode("f32", kernel.run()[0])[0];
    EXPECT_TRUE(found == want || (std::isnan(found) && std::isnan(want)))
        << op << "(" << in << ") = " << found;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Functions,
                         ::testing::Values(FunctionSpec{"exp", std::exp, -87, 88, 2},
                                           FunctionSpec{"log", std::log, 1e-6, 1e4, 2},
                                           FunctionSpec{"tanh", std::tanh, -12, 12, 6},
                                           FunctionSpec{"erf", std::erf, -5, 5, 5},
                                           FunctionSpec{"log1p", std::log1p, -0.9, 100, 4},
                                           FunctionSpec{"sqrt", std::sqrt, 0, 1e6, 0.51}),
                         [](const auto& info) { return std::string(info.param.op); });

} // namespace
} // namespace titan::codegen::testing
