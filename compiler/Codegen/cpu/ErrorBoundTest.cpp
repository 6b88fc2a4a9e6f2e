// Bounds of what two machines may differ by: between vectors of two lengths, whose sums have other
// orders, and against the kernel's definition.
#include "compiler/Codegen/kernel/ErrorBound.h"
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/KernelSpec.h"

#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

#include <cmath>

namespace titan::codegen::testing {
namespace {

using Bytes = std::vector<std::string>;

std::unique_ptr<KernelRunner> compile(const std::string& text, const char* arch) {
  auto runner = KernelRunner::compile(text, resolveCpu(arch).take());
  EXPECT_TRUE(runner.ok()) << runner.error().message();
  return runner.ok() ? runner.take() : nullptr;
}

/// Outs of the runner's only kernel, `outs` bytes each.
Bytes run(const KernelRunner& runner, Bytes ins, const std::vector<size_t>& outs) {
  Bytes results;
  for (size_t bytes : outs)
    results.emplace_back(bytes + 64, '\0');
  std::vector<char*> operands;
  for (Bytes* list : {&ins, &results})
    for (std::string& bytes : *list)
      operands.push_back(bytes.data());
  runner.run(0, operands);
  for (size_t i = 0; i < outs.size(); ++i)
    results[i].resize(outs[i]);
  return results;
}

struct Bounds {
  std::vector<unsigned> bounded;
  double largestShare = 0; ///< of what two lengths of vectors differ by
  double largest = 0;      ///< bound, of 1 + |value|
};

/// `ins`: random where there are none.
Bounds check(const KernelSpec& spec, Bytes ins = {}) {
  Bounds found;
  const std::string text = moduleText(spec);
  const auto wide = compile(text, "native"), narrow = compile(text, "x86-64-v2");
  ErrorBounds bounds = boundErrors(mlir::cast<kernel::FusedOp>(wide->kernels()[0].op));
  found.bounded.assign(bounds.bounded.begin(), bounds.bounded.end());
  auto elements = [](const OperandSpec& operand) {
    return static_cast<size_t>(elementCount(operand.shape));
  };
  std::vector<size_t> sizes;
  for (const OperandSpec& in : llvm::ArrayRef(spec.ins).drop_front(ins.size()))
    ins.push_back(encode(in.element, randomElements(in, static_cast<unsigned>(ins.size()))));
  for (const OperandSpec& out : spec.outs)
    sizes.push_back(encode(out.element, Elements(elements(out))).size());
  const Bytes a = run(*wide, ins, sizes), b = run(*narrow, ins, sizes);
  for (size_t out = 0; out < sizes.size(); ++out)
    if (!llvm::is_contained(bounds.bounded, out)) {
      EXPECT_EQ(a[out], b[out]) << "out " << out << " has no bound";
    }
  if (!bounds.op)
    return found;
  std::string printed;
  llvm::raw_string_ostream(printed) << *bounds.module;
  std::vector<size_t> all = sizes;
  for (unsigned out : bounds.bounded)
    all.push_back(elements(spec.outs[out]) * sizeof(float));
  const Bytes both = run(*compile(printed, "native"), ins, all);
  for (size_t i = 0; i < bounds.bounded.size(); ++i) {
    const unsigned out = bounds.bounded[i];
    const std::string& element = spec.outs[out].element;
    const Elements x = decode(element, a[out]), y = decode(element, b[out]),
                   bound = decode("f32", both[sizes.size() + i]);
    EXPECT_EQ(both[out], a[out]) << "beside bounds the values stay";
    for (size_t e = 0; e < bound.size(); ++e) {
      EXPECT_LE(std::abs(x[e] - y[e]), bound[e]) << "out " << out << ", element " << e;
      found.largestShare = std::max(found.largestShare, std::abs(x[e] - y[e]) / bound[e]);
      found.largest = std::max(found.largest, bound[e] / (1 + std::abs(x[e])));
    }
  }
  return found;
}

/// Of [m, n] through the identity, and of its rows.
OperandSpec whole(const char* element, int64_t m, int64_t n) {
  return {element, "(r, c) -> (r, c)", {m, n}};
}
OperandSpec rows(const char* element, int64_t m) { return {element, "(r, c) -> (r)", {m}}; }

TEST(ErrorBound, ArithmeticOnInputsHasNone) {
  const Bounds found = check({.space = {5, 70},
                              .ins = {whole("f32", 5, 70), rows("f32", 5)},
                              .outs = {whole("f32", 5, 70), whole("bf16", 5, 70)},
                              .kernelClass = "flat",
                              .body = R"(
    ^bb0(%v: f32, %w: f32):
      %p = arith.mulf %v, %w : f32
      %s = arith.subf %p, %v : f32
      %q = arith.divf %s, %w : f32
      %a = math.absf %q : f32
      %t = math.sqrt %a : f32
      %b = arith.truncf %t : f32 to bf16
      kernel.yield %t, %b : f32, bf16
)"});
  EXPECT_TRUE(found.bounded.empty());
}

TEST(ErrorBound, OfSumsInAnotherOrder) {
  const Bounds found = check({.space = {4, 1000},
                              .ins = {whole("f32", 4, 1000)},
                              .outs = {rows("f32", 4), whole("f32", 4, 1000), rows("f32", 4)},
                              .kernelClass = "row",
                              .body = R"(
    ^bb0(%v: f32):
      %sum = kernel.reduce add %v over [1] : f32
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %sum : f32
      kernel.yield %sum, %d, %max : f32, f32, f32
)"});
  EXPECT_EQ(found.bounded, (std::vector<unsigned>{0, 1})) << "the largest is the largest";
  EXPECT_GT(found.largestShare, 0);
  EXPECT_LT(found.largest, 2e-2);
}

// Their roundings go in one direction.
TEST(ErrorBound, OfSumsOfEqualTerms) {
  for (int64_t n : {128, 512, 4096, 16384}) {
    const Bounds found = check({.space = {4, n},
                                .ins = {whole("f32", 4, n)},
                                .outs = {rows("f32", 4)},
                                .kernelClass = "row",
                                .body = R"(
    ^bb0(%v: f32):
      %sum = kernel.reduce add %v over [1] : f32
      kernel.yield %sum : f32
)"},
                               {encode("f32", Elements(4 * n, 0.1))});
    EXPECT_GT(found.largestShare, 0) << n;
  }
}

TEST(ErrorBound, OfRootsQuotientsAndFunctions) {
  const Bounds found = check({.space = {4, 300},
                              .ins = {whole("f32", 4, 300)},
                              .outs = {whole("f32", 4, 300), whole("bf16", 4, 300)},
                              .kernelClass = "row",
                              .body = R"(
    ^bb0(%v: f32):
      %one = arith.constant 1.0 : f32
      %square = arith.mulf %v, %v : f32
      %sum = kernel.reduce add %square over [1] : f32
      %root = math.sqrt %sum : f32
      %x = arith.divf %v, %root : f32
      %e = math.exp %x : f32
      %total = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %total : f32
      %log = math.log %p : f32
      %t = math.tanh %log : f32
      %f = math.fma %t, %x, %one : f32
      %b = arith.truncf %f : f32 to bf16
      kernel.yield %f, %b : f32, bf16
)"});
  EXPECT_EQ(found.bounded, (std::vector<unsigned>{0, 1}));
  EXPECT_GT(found.largestShare, 0);
  EXPECT_LT(found.largest, 0x1p-6) << "a place of bf16";
}

TEST(ErrorBound, OfWhatAComparisonChooses) {
  // Where the sum is not far from the limit, either side may come out.
  const Bounds found = check({.space = {64, 33},
                              .ins = {whole("f32", 64, 33), rows("f32", 64)},
                              .outs = {rows("f32", 64), rows("i64", 64)},
                              .kernelClass = "row",
                              .body = R"(
    ^bb0(%v: f32, %w: f32):
      %sum = kernel.reduce add %v over [1] : f32
      %above = arith.cmpf ogt, %sum, %w : f32
      %s = arith.select %above, %sum, %w : f32
      %n = arith.extui %above : i1 to i64
      kernel.yield %s, %n : f32, i64
)"});
  EXPECT_EQ(found.bounded, (std::vector<unsigned>{0, 1}));
  EXPECT_LT(found.largest, 1e-3) << "no sum is that close";
}

TEST(ErrorBound, GrowsWithTheTerms) {
  EXPECT_EQ(sumTolerance(1), 0x1p-20);
  EXPECT_EQ(sumTolerance(16), 0x1p-20);
  EXPECT_EQ(sumTolerance(128), 0x1p-17);
  EXPECT_EQ(sumTolerance(4096), 0x1p-15);
  EXPECT_EQ(sumTolerance(int64_t{1} << 20), 0x1p-12);
}

} // namespace
} // namespace titan::codegen::testing
