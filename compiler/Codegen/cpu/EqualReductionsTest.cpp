// Many equal reductions are a loop over them: their values, their bits and their code.
#include "compiler/Codegen/cpu/CpuTarget.h"
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <functional>

using namespace mlir;

namespace titan::codegen::testing {
namespace {

/// The text of %t#, from the in %x# and from what all share: %w, a row, and %k, a scalar.
using Term = std::function<std::string(unsigned)>;

std::string square(unsigned) { return "%t# = arith.mulf %x#, %x# : f32"; }

/// Sums of the terms of `count` ins along rows, each by itself. Scalars lie between the ins.
KernelSpec manySums(unsigned count, int64_t rows, int64_t length, const Term& term) {
  const std::string row = "(r, c) -> (r, c)", one = "(r, c) -> ()";
  KernelSpec spec{.space = {rows, length},
                  .ins = {{"f32", row, {rows, length}}, {"f32", one, {}}},
                  .outs = {},
                  .kernelClass = "row",
                  .body = {}};
  std::string arguments = "%w: f32, %k: f32", body, yielded, types;
  for (unsigned i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), separator = i == 0 ? "" : ", ";
    spec.ins.push_back({"f32", row, {rows, length}});
    arguments += ", %x" + n + ": f32";
    if (i % 3 == 0) {
      spec.ins.push_back({"f32", one, {}});
      arguments += ", %b" + n + ": f32";
    }
    std::string sum = term(i) +
                      "\n%s# = kernel.reduce add %t# over [1] : f32\n%y# = arith.addf %s#, " +
                      (i % 3 == 0 ? "%b#" : "%k") + " : f32\n";
    for (size_t at; (at = sum.find('#')) != std::string::npos;)
      sum.replace(at, 1, n);
    // The last in comes first, as where a chain of sums was fused.
    body = sum + body;
    spec.outs.push_back({"f32", "(r, c) -> (r)", {rows}});
    yielded += separator + "%y" + n;
    types += separator + "f32";
  }
  spec.body = "\n    ^bb0(" + arguments + "):\n" + body + "      kernel.yield " + yielded + " : " +
              types + "\n";
  return spec;
}

/// Loads in the code of a kernel.
int64_t loadsOf(const KernelSpec& spec) {
  DialectRegistry registry;
  registry.insert<kernel::KernelDialect, func::FuncDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(moduleText(spec), &context);
  std::unique_ptr<CpuTarget> target = CpuTarget::createCpu({"cpu", "x86-64-v3"}, &context).take();
  OwningOpRef<ModuleOp> emitted = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder = OpBuilder::atBlockBegin(emitted->getBody());
  module->walk([&](kernel::FusedOp op) {
    EXPECT_TRUE(succeeded(emitFusedKernel(builder, op, "kernel", target->shape())));
  });
  int64_t loads = 0;
  emitted->walk([&](vector::LoadOp) { ++loads; });
  emitted->walk([&](LLVM::LoadOp load) { loads += isa<VectorType>(load.getType()); });
  return loads;
}

TEST(EqualReductions, RowsOfEveryLength) {
  for (std::string_view arch : {"native", "x86-64-v3"})
    for (int64_t length : {1, 3, 8, 31, 33, 384, 5000})
      for (unsigned count : {3, 4, 13})
        KernelCase(manySums(count, 3, length, square), arch).check(1e-5);
}

TEST(EqualReductions, BitsOfEachAlone) {
  constexpr unsigned count = 9;
  for (int64_t length : {10, 384, 5001}) {
    const KernelSpec spec = manySums(count, 2, length, square);
    const std::vector<std::string> together = KernelCase(spec).run();
    KernelCase alone(manySums(1, 2, length, square));
    for (unsigned i = 0, in = 2; i < count; ++i, ++in) {
      // KernelCase draws an in's elements by its number.
      alone.setIn(2, randomElements(spec.ins[in], in + 1));
      const unsigned addend = i % 3 == 0 ? ++in : 1;
      alone.setIn(3, randomElements(spec.ins[addend], addend + 1));
      EXPECT_EQ(alone.run()[0], together[i]) << "sum " << i << " of rows of " << length;
    }
  }
}

TEST(EqualReductions, CodeDoesNotGrow) {
  EXPECT_EQ(loadsOf(manySums(40, 1, 384, square)), loadsOf(manySums(5, 1, 384, square)));
}

TEST(EqualReductions, OfTwoKinds) {
  const Term term = [](unsigned i) {
    return i % 2 == 0 ? square(i) : "%t# = arith.addf %x#, %k : f32";
  };
  KernelCase(manySums(12, 3, 100, term)).check(1e-5);
  EXPECT_EQ(loadsOf(manySums(40, 1, 384, term)), loadsOf(manySums(10, 1, 384, term)));
}

// A row that all of them read is read once.
TEST(EqualReductions, OfASharedRowStayTogether) {
  const Term term = [](unsigned) { return "%t# = arith.mulf %x#, %w : f32"; };
  KernelCase(manySums(12, 3, 100, term)).check(1e-5);
  EXPECT_GT(loadsOf(manySums(12, 1, 384, term)), loadsOf(manySums(5, 1, 384, term)));
}

TEST(EqualReductions, OtherNumbersAreOtherReductions) {
  const Term term = [](unsigned i) {
    return "%f# = arith.constant " + std::to_string(i) +
           ".5 : f32\n%t# = arith.mulf %x#, %f# : f32";
  };
  KernelCase(manySums(7, 3, 100, term)).check(1e-5);
}

// The maxima are equal; the sums behind them are not, because each reads a maximum of its own.
TEST(EqualReductions, BehindOthers) {
  const Term term = [](unsigned) {
    return "%m# = kernel.reduce max %x# over [1] : f32\n%t# = arith.subf %x#, %m# : f32";
  };
  for (int64_t length : {7, 384})
    KernelCase(manySums(7, 3, length, term)).check(1e-4);
}

} // namespace
} // namespace titan::codegen::testing
