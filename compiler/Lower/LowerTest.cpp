// Lowering by execution: what the kernels compute is what the titan ops say, on every op, and where
// rules take turns.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/testing/OpInstances.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Lower/testing/LowerFixture.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using titan::interpreter::Engine;
using titan::interpreter::testing::Instance;
using titan::interpreter::testing::Run;

namespace titan::lower::testing {
namespace {

/// On the arguments of the recorded references, which every op is defined for.
void expectEqualRuns(ModuleOp module, const Instance& instance) {
  const Lowered lowered = Lowered::of(module);
  auto results = [&](ModuleOp of, const Run& run, Engine engine) {
    auto function = of.lookupSymbol<func::FuncOp>(instance.name);
    auto values = interpreter::run(function, run.arguments, engine);
    EXPECT_TRUE(succeeded(values));
    return succeeded(values) ? std::move(*values) : SmallVector<interpreter::Tensor>();
  };
  auto compare = [&](ModuleOp before, ModuleOp after, const Run& run, Engine engine,
                     double tolerance) {
    for (auto [x, y] : llvm::zip_equal(results(before, run, engine), results(after, run, engine)))
      EXPECT_EQ(interpreter::describeDifference(x, y, tolerance), "");
  };
  for (const Run& run : instance.runs) {
    compare(module, *lowered.single, run, Engine::F64, constantsInF32);
    compare(module, *lowered.fused, run, Engine::F64, constantsInF32);
    compare(*lowered.single, *lowered.fused, run, Engine::F32, 0);
    compare(*lowered.single, *lowered.padded, run, Engine::F32, 0);
  }
}

TEST_F(Lower, IntegersAreDividedByZeroAndMinusOne) {
  const std::string text = R"(func.func @f(%x: $T, %y: $T) -> ($T, $T) {
    %least = titan.constant dense<$LEAST> : $T
    %one = titan.constant dense<1> : $T
    %less = titan.sub %y, %one : $T
    %a = titan.div %x, %y : $T
    %b = titan.div %least, %less : $T
    return %a, %b : $T, $T
  })";
  for (auto [type, least] : {std::pair{"i32", "-2147483648"}, {"i8", "-128"}, {"ui8", "255"}}) {
    SCOPED_TRACE(type);
    const std::string tensor = std::string("tensor<6x") + type + ">";
    expectEquivalent(*parse(replaceAll(replaceAll(text, "$T", tensor), "$LEAST", least)));
  }
}

TEST_F(Lower, EveryOpKeepsItsMeaning) {
  interpreter::testing::OpInstances instances(
      interpreter::testing::moduleRegistry(registerLowerInterfaces));
  EXPECT_EQ(instances.findWithout<ir::LowerableOpInterface>(), std::vector<std::string>());
  for (const auto& instance : instances.all()) {
    SCOPED_TRACE(instance.name);
    func::FuncOp function = instance.function;
    // A base comes from the loop's counter: see DropoutInsideOfTheLoopKnowsItsMicrobatch.
    if (llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<IndexType>))
      continue;
    OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
    module->push_back(function->clone());
    if (instance.runs.empty())
      expectEquivalent(*module);
    else
      expectEqualRuns(*module, instance);
  }
}

// Extents around every boundary of the chunk rules, in all positions.
TEST_F(Lower, ReductionsOfAnyExtent) {
  for (int64_t rows : {1, 2, 16, 17, 60, 64, 100, 1031})
    for (std::string kind : {"sum", "max"}) {
      std::string n = std::to_string(rows);
      auto module = parse(
          "func.func @rows(%x: tensor<" + n + "x3xf32>) -> tensor<3xf32> {\n %y = titan.reduce " +
          kind + " %x [0] : tensor<" + n +
          "x3xf32> to tensor<3xf32>\n return %y : tensor<3xf32> }\n" +
          "func.func @middle(%x: tensor<2x" + n +
          "x3xf32>) -> tensor<2x3xf32> {\n %y = titan.reduce " + kind + " %x [1] : tensor<2x" + n +
          "x3xf32> to tensor<2x3xf32>\n return %y : tensor<2x3xf32> }\n" +
          "func.func @outer(%x: tensor<2x" + n +
          "x3xf32>) -> tensor<3xf32> {\n %y = titan.reduce " + kind + " %x [0, 1] : tensor<2x" + n +
          "x3xf32> to tensor<3xf32>\n return %y : tensor<3xf32> }\n" +
          "func.func @all(%x: tensor<20x" + n + "xf32>) -> tensor<f32> {\n %y = titan.reduce " +
          kind + " %x [0, 1] : tensor<20x" + n +
          "xf32> to tensor<f32>\n return %y : tensor<f32> }\n" + "func.func @ends(%x: tensor<" + n +
          "x2x" + n + "xf32>) -> tensor<2xf32> {\n %y = titan.reduce " + kind +
          " %x [0, 2] : tensor<" + n + "x2x" + n +
          "xf32> to tensor<2xf32>\n return %y : tensor<2xf32> }\n");
      SCOPED_TRACE(kind + " over " + n);
      expectEquivalent(*module);
    }
}

TEST_F(Lower, RefusesToSortMoreThanAThreadCan) {
  auto module = parse(R"(
    func.func @f(%x: tensor<524289xf32>) -> (tensor<1xf32>, tensor<1xi64>) {
      %v, %i = titan.top_k %x : (tensor<524289xf32>) -> (tensor<1xf32>, tensor<1xi64>)
      return %v, %i : tensor<1xf32>, tensor<1xi64>
    })");
  std::string said;
  ScopedDiagnosticHandler handler(module->getContext(), [&](Diagnostic& diagnostic) {
    said = diagnostic.str();
    return success();
  });
  PassManager passes(module->getContext());
  addLowerPasses(passes);
  EXPECT_TRUE(failed(passes.run(*module)));
  EXPECT_EQ(said, "'titan.top_k' op has no kernel: it sorts 524289 elements, more than the 524288 "
                  "that one thread can");
}

// As many elements a channel as are summed in chunks, the channel in any place.
TEST_F(Lower, StatisticsOfManyElements) {
  auto module = parse(R"(
    func.func @last(%x: tensor<1031x3xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>) {
      %r:3 = titan.batch_norm %x scale %s bias %b dim 1 epsilon 0.1 momentum 0.1
          : (tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>)
      return %r#0, %r#1, %r#2 : tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>
    }
    func.func @inner(%x: tensor<7x3x20x11xbf16>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<7x3x20x11xbf16> {
      %r:3 = titan.batch_norm %x scale %s bias %b dim 1 epsilon 0.1 momentum 0.1
          : (tensor<7x3x20x11xbf16>, tensor<3xf32>, tensor<3xf32>) -> (tensor<7x3x20x11xbf16>, tensor<3xf32>, tensor<3xf32>)
      return %r#0 : tensor<7x3x20x11xbf16>
    }
    func.func @first(%x: tensor<3x40x17xf64>, %s: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<3x40x17xf64> {
      %r:3 = titan.batch_norm %x scale %s bias %b dim 0 epsilon 0.1 momentum 0.1
          : (tensor<3x40x17xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3x40x17xf64>, tensor<3xf64>, tensor<3xf64>)
      return %r#0 : tensor<3x40x17xf64>
    })");
  expectEquivalent(*module);
}

TEST_F(Lower, LongRowsAreCutIntoPieces) {
  auto module = parse(R"(
    func.func @f(%x: tensor<50000xf32>) -> tensor<f32> {
      %y = titan.reduce sum %x [0] : tensor<50000xf32> to tensor<f32>
      return %y : tensor<f32>
    })");
  expectEquivalent(*module);
  EXPECT_EQ(count<kernel::FusedOp>(*Lowered::of(*module).fused),
            3); // 12 pieces, the rest, their sum
}

// Operands whose dimensions lie in any order: read by leading dimensions or transposed first.
TEST_F(Lower, ContractionsOfAnyLayout) {
  auto module = parse(R"(
    func.func @outer(%a: tensor<5xf32>, %b: tensor<7xf32>) -> tensor<5x7xf32> {
      %c = titan.contract %a, %b batch [] x [] contracting [] x [] : (tensor<5xf32>, tensor<7xf32>) -> tensor<5x7xf32>
      return %c : tensor<5x7xf32>
    }
    func.func @inner(%a: tensor<5xf32>, %b: tensor<5xf32>, %s: tensor<f32>) -> tensor<f32> {
      %c = titan.contract %a, %b acc %s batch [] x [] contracting [0] x [0] : (tensor<5xf32>, tensor<5xf32>, tensor<f32>) -> tensor<f32>
      return %c : tensor<f32>
    }
    func.func @two_contracted(%a: tensor<3x4x5xf32>, %b: tensor<4x5x6xf32>) -> tensor<3x6xf32> {
      %c = titan.contract %a, %b batch [] x [] contracting [1, 2] x [0, 1] : (tensor<3x4x5xf32>, tensor<4x5x6xf32>) -> tensor<3x6xf32>
      return %c : tensor<3x6xf32>
    }
    func.func @strided_batch(%a: tensor<4x3x5xf32>, %b: tensor<3x6x5xf32>) -> tensor<3x4x6xf32> {
      %c = titan.contract %a, %b batch [1] x [0] contracting [2] x [2] : (tensor<4x3x5xf32>, tensor<3x6x5xf32>) -> tensor<3x4x6xf32>
      return %c : tensor<3x4x6xf32>
    }
    func.func @transposed_first(%a: tensor<4x3x5xf32>, %b: tensor<5x6x3xf32>) -> tensor<4x6xf32> {
      %c = titan.contract %a, %b batch [] x [] contracting [1, 2] x [2, 0] : (tensor<4x3x5xf32>, tensor<5x6x3xf32>) -> tensor<4x6xf32>
      return %c : tensor<4x6xf32>
    }
    func.func @heads(%q: tensor<2x4x3x5xf32>, %k: tensor<2x4x3x5xf32>) -> tensor<2x3x4x4xf32> {
      %c = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<2x4x3x5xf32>, tensor<2x4x3x5xf32>) -> tensor<2x3x4x4xf32>
      return %c : tensor<2x3x4x4xf32>
    }
    func.func @double(%a: tensor<3x4xf64>, %b: tensor<4x2xf64>) -> tensor<3x2xf64> {
      %c = titan.contract %a, %b batch [] x [] contracting [1] x [0] : (tensor<3x4xf64>, tensor<4x2xf64>) -> tensor<3x2xf64>
      return %c : tensor<3x2xf64>
    })");
  expectEquivalent(*module);
}

TEST_F(Lower, DropoutInsideOfTheLoopKnowsItsMicrobatch) {
  auto module = parse(R"(
    func.func @f(%xs: tensor<3x4x6xf32>, %zero: tensor<4x6xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<4x6xf32> {
      %r = accum.loop %i in 3 running slices(%x = %xs : tensor<3x4x6xf32>) accumulators(%a = %zero : tensor<4x6xf32>) -> (tensor<4x6xf32>) {
        %c24 = arith.constant 24 : index
        %base = arith.muli %i, %c24 : index
        %d = titan.dropout %x p 5.0e-1 stream 42 seed %seed step %step base %base {window = #titan.window<[12, 6], multiple = 24>}
          : tensor<4x6xf32> to tensor<4x6xf32>
        %e = titan.relu %d : tensor<4x6xf32>
        %s = titan.add %a, %e : tensor<4x6xf32>
        accum.yield %s : tensor<4x6xf32>
      }
      return %r : tensor<4x6xf32>
    })");
  expectEquivalent(*module);
}

TEST_F(Lower, TrainingStep) {
  const std::string text = readFile("test/lower/Inputs/step.mlir");
  for (std::string microbatches : {"1", "3"}) {
    SCOPED_TRACE(microbatches + " microbatches");
    expectEquivalent(*parse(replaceAll(text, "${count}", microbatches)), /*integerBound=*/10);
  }
}

} // namespace
} // namespace titan::lower::testing
