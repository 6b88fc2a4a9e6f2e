// The plan by execution: commands on a poisoned arena give the bits of the functions on tensors.
#include "compiler/Memory/Plan.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Interpreter/testing/OpInstances.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Memory/BufferRun.h"
#include "compiler/Memory/Passes.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Schedule/testing/GptModel.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan::memory;

namespace {

class Plan : public titan::interpreter::testing::ModuleFixture {
protected:
  Plan() : ModuleFixture(titan::registerAllDialects) {}

  OwningOpRef<ModuleOp> parseStep(StringRef microbatches) {
    return parse(replaceAll(readFile("test/lower/Inputs/step.mlir"), "${count}", microbatches));
  }
};

/// Lowers `module`, plans a copy, and runs each function both ways on the same random arguments.
OwningOpRef<ModuleOp> expectPlanKeepsBits(ModuleOp module, bool fuse = true) {
  PassManager lower(module.getContext()), plan(module.getContext());
  if (fuse) {
    titan::addLowerPasses(lower);
  } else {
    lower.nest<func::FuncOp>().addPass(titan::createFormKernels());
    lower.nest<func::FuncOp>().addPass(titan::createClassifyKernels());
  }
  titan::addPlanPasses(plan);
  EXPECT_TRUE(succeeded(lower.run(module)));
  OwningOpRef<ModuleOp> planned = module.clone();
  if (failed(plan.run(*planned))) {
    ADD_FAILURE() << "the plan failed";
    return planned;
  }

  titan::interpreter::RandomOptions random;
  random.integerBound = 10;
  for (auto after : planned->getOps<func::FuncOp>())
    EXPECT_TRUE(succeeded(
        checkEquivalent(module.lookupSymbol<func::FuncOp>(after.getName()), after, random)));
  return planned;
}

template <typename Op> int count(ModuleOp module) {
  int found = 0;
  module.walk([&](Op) { ++found; });
  return found;
}

TEST_F(Plan, TrainingStep) {
  for (std::string microbatches : {"1", "3"})
    for (bool fuse : {true, false}) {
      SCOPED_TRACE(microbatches +
                   (fuse ? " microbatches, fused" : " microbatches, single kernels"));
      auto planned = expectPlanKeepsBits(*parseStep(microbatches), fuse);
      EXPECT_EQ(count<titan::kernel::CopyOp>(*planned),
                0); // states and accumulators are updated in place
      FailureOr<ModulePlan> plan = readPlan(*planned);
      ASSERT_TRUE(succeeded(plan));
      EXPECT_LE(plan->temporaryBytes, 1.02 * plan->functions[0].maxLiveBytes);
    }
}

/// A decoder as the pipeline leaves it: in place, and hardly larger than what is live.
TEST_F(Plan, Gpt) {
  titan::schedule::testing::GptShape shape;
  shape.isDecomposed = true;
  shape.optimizer = "clip_norm = 1.0 : f64";
  for (int64_t microbatches : {1, 2})
    for (bool isTied : {true, false})
      for (int64_t positions : {8, 24}) {
        SCOPED_TRACE(std::to_string(microbatches) + " microbatches of " +
                     std::to_string(positions) + (isTied ? " positions, tied" : " positions"));
        shape.microbatches = microbatches;
        shape.isTied = isTied;
        shape.positions = positions;
        auto module = parse(titan::schedule::testing::gptModel(shape));
        PassManager stages(&context);
        titan::addStages(stages, titan::Stage::Import, titan::Stage::Schedule);
        ASSERT_TRUE(succeeded(stages.run(*module)));
        auto planned = expectPlanKeepsBits(*module);
        EXPECT_EQ(count<titan::kernel::CopyOp>(*planned), 0);
        FailureOr<ModulePlan> plan = readPlan(*planned);
        ASSERT_TRUE(succeeded(plan));
        for (const FunctionPlan& function : plan->functions)
          if (func::FuncOp(function.function).getName() == titan::ir::function::step)
            EXPECT_LE(plan->temporaryBytes, 1.02 * function.maxLiveBytes);
      }
}

TEST_F(Plan, EveryOp) {
  titan::interpreter::testing::OpInstances instances(
      titan::interpreter::testing::moduleRegistry(titan::registerAllDialects));
  for (const auto& instance : instances.all()) {
    func::FuncOp function = instance.function;
    if (llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<IndexType>) ||
        instance.name == "div_integer")
      continue; // an index comes from a loop; random divisors may be 0
    SCOPED_TRACE(instance.name);
    OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
    auto copy = function.clone();
    // An output each: what the functions of a module have.
    Builder builder(function.getContext());
    for (unsigned i = 0; i < copy.getNumResults(); ++i)
      copy.setResultAttr(i, titan::ir::tag::output, builder.getStringAttr("y" + std::to_string(i)));
    for (unsigned i = 0; i < copy.getNumArguments(); ++i)
      copy.setArgAttr(i, titan::ir::tag::input, builder.getStringAttr("x" + std::to_string(i)));
    module->push_back(copy);
    expectPlanKeepsBits(*module);
  }
}

constexpr const char* states = R"(
  titan.state @a : tensor<8xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @b : tensor<8xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
)";

TEST_F(Plan, StatesThatSwapGoAside) {
  auto module = parse(std::string(states) + R"(
    func.func @step(%a: tensor<8xf32> {titan.state = @a}, %b: tensor<8xf32> {titan.state = @b})
        -> (tensor<8xf32> {titan.state = @a}, tensor<8xf32> {titan.state = @b}) {
      return %b, %a : tensor<8xf32>, tensor<8xf32>
    })");
  expectPlanKeepsBits(*module);
}

TEST_F(Plan, AStateThatIsReadLaterIsNotOverwritten) {
  auto module = parse(std::string(states) + R"(
    func.func @step(%a: tensor<8xf32> {titan.state = @a}, %b: tensor<8xf32> {titan.state = @b})
        -> (tensor<8xf32> {titan.state = @a}, tensor<8xf32> {titan.state = @b}, tensor<8xf32> {titan.output = "old"}) {
      %n = titan.exp %a {phase = #titan<phase update>} : tensor<8xf32>
      %r = titan.reduce sum %n [0] {phase = #titan<phase update>} : tensor<8xf32> to tensor<f32>
      %w = titan.broadcast %r [] {phase = #titan<phase update>} : tensor<f32> to tensor<8xf32>
      %m = titan.mul %a, %w {phase = #titan<phase update>} : tensor<8xf32>
      return %n, %m, %a : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
    })");
  expectPlanKeepsBits(*module);
}

TEST_F(Plan, AStateWrittenOutsideOfTheUpdateIsCopiedThere) {
  auto module = parse(std::string(states) + R"(
    func.func @step(%a: tensor<8xf32> {titan.state = @a}) -> (tensor<8xf32> {titan.state = @a}) {
      %n = titan.exp %a : tensor<8xf32>
      return %n : tensor<8xf32>
    })");
  auto planned = expectPlanKeepsBits(*module);
  EXPECT_EQ(count<titan::kernel::CopyOp>(*planned), 1);
}

TEST_F(Plan, OneValueInSeveralPlaces) {
  auto module = parse(std::string(states) + R"(
    func.func @step(%a: tensor<8xf32> {titan.state = @a}, %b: tensor<8xf32> {titan.state = @b})
        -> (tensor<8xf32> {titan.state = @a}, tensor<8xf32> {titan.state = @b}, tensor<8xf32> {titan.output = "y"}) {
      %n = titan.exp %a {phase = #titan<phase update>} : tensor<8xf32>
      return %n, %n, %n : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
    })");
  expectPlanKeepsBits(*module);
}

TEST_F(Plan, AccumulatorsThatCross) {
  auto module = parse(R"(
    func.func @f(%xs: tensor<3x8xf32> {titan.input = "x"}, %p: tensor<8xf32> {titan.input = "p"})
        -> (tensor<8xf32> {titan.output = "u"}, tensor<8xf32> {titan.output = "v"}) {
      %r:2 = accum.loop %i in 3 running slices(%x = %xs : tensor<3x8xf32>) accumulators(%u = %p : tensor<8xf32>, %v = %p : tensor<8xf32>)
          -> (tensor<8xf32>, tensor<8xf32>) {
        %s = titan.add %u, %x : tensor<8xf32>
        %e = titan.exp %s : tensor<8xf32>
        accum.yield %v, %e : tensor<8xf32>, tensor<8xf32>
      }
      return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
    })");
  expectPlanKeepsBits(*module);
}

TEST_F(Plan, ShapeChangesConstantsAndPartsShareBuffers) {
  auto module = parse(R"(
    func.func @f(%x: tensor<2x6xf32> {titan.input = "x"}) -> (tensor<3x8xf32> {titan.output = "y"}, tensor<6xf32> {titan.output = "z"}) {
      %k = titan.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
      %r = titan.reshape %x : tensor<2x6xf32> to tensor<3x4xf32>
      %e = titan.exp %r : tensor<3x4xf32>
      %c = titan.concat %e, %r dim 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
      %b = titan.slice %x offsets [1, 0] strides [1, 1] : tensor<2x6xf32> to tensor<1x6xf32>
      %f = titan.reshape %b : tensor<1x6xf32> to tensor<6xf32>
      %z = titan.add %f, %k : tensor<6xf32>
      return %c, %z : tensor<3x8xf32>, tensor<6xf32>
    }
    func.func @g(%x: tensor<6xf32> {titan.input = "x"}) -> (tensor<6xf32> {titan.output = "y"}, tensor<6xf32> {titan.output = "k"}) {
      %k = titan.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
      %y = titan.mul %x, %k : tensor<6xf32>
      return %y, %k : tensor<6xf32>, tensor<6xf32>
    })");
  auto planned = expectPlanKeepsBits(*module);
  FailureOr<ModulePlan> plan = readPlan(*planned);
  ASSERT_TRUE(succeeded(plan));
  EXPECT_EQ(plan->constants.size(), 1u); // equal constants of two functions are one
}

} // namespace
