#include "compiler/Pipeline/CheckByExecution.h"

#include "compiler/Lower/Passes.h"
#include "compiler/Memory/Passes.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Schedule/Passes.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/PassFacts.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace titan;

namespace {

/// Takes every relu away. On a module or on each function.
template <typename Op> struct ForgetRelu : PassWrapper<ForgetRelu<Op>, OperationPass<Op>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ForgetRelu)
  StringRef getArgument() const override { return "forget-relu"; }
  void runOnOperation() override {
    this->getOperation()->walk([](ir::ReluOp op) {
      op.getResult().replaceAllUsesWith(op.getOperand());
      op.erase();
    });
  }
};

template <typename Op> struct Nothing : PassWrapper<Nothing<Op>, OperationPass<Op>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Nothing)
  StringRef getArgument() const override { return "nothing"; }
  void runOnOperation() override {}
};

struct CheckByExecution : testing::Test {
  CheckByExecution() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    module = parseSourceString<ModuleOp>(R"mlir(
      func.func @step(%x: tensor<4x3xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "y"}) {
        %0 = titan.relu %x : tensor<4x3xf32>
        return %0 : tensor<4x3xf32>
      }
      func.func @eval(%x: tensor<2xf32> {titan.input = "x"}) -> (tensor<2xf32> {titan.output = "y"}) {
        return %x : tensor<2xf32>
      })mlir",
                                         &context);
  }

  /// The pass that the check names, empty: none.
  std::string run(llvm::function_ref<void(PassManager&)> add) {
    PassManager passes(&context);
    addExecutionCheck(passes, report);
    add(passes);
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return report.mismatch;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  ExecutionReport report;
};

TEST_F(CheckByExecution, NamesTheModulePassThatChangesAResult) {
  EXPECT_EQ(run([](PassManager& passes) {
              passes.addPass(std::make_unique<Nothing<ModuleOp>>());
              passes.addPass(std::make_unique<ForgetRelu<ModuleOp>>());
            }),
            "forget-relu");
  EXPECT_NE(report.difference.find("@step result 0"), std::string::npos) << report.difference;
}

TEST_F(CheckByExecution, NamesTheFunctionPassThatChangesAResult) {
  EXPECT_EQ(run([](PassManager& passes) {
              passes.addNestedPass<func::FuncOp>(std::make_unique<Nothing<func::FuncOp>>());
              passes.addNestedPass<func::FuncOp>(std::make_unique<ForgetRelu<func::FuncOp>>());
              passes.addNestedPass<func::FuncOp>(std::make_unique<Nothing<func::FuncOp>>());
            }),
            "forget-relu");
}

TEST_F(CheckByExecution, AcceptsPassesThatChangeNoResult) {
  EXPECT_EQ(run([](PassManager& passes) {
              passes.addPass(std::make_unique<Nothing<ModuleOp>>());
              passes.addNestedPass<func::FuncOp>(std::make_unique<Nothing<func::FuncOp>>());
            }),
            "");
}

TEST_F(CheckByExecution, SaysWhatWasComparedAndWhatChangedNothing) {
  module = parseSourceString<ModuleOp>(R"mlir(
    func.func @eval(%x: tensor<3xf32> {titan.input = "x"}) -> (tensor<3xf32> {titan.output = "y"}) {
      %0 = titan.neg %x : tensor<3xf32>
      %1 = titan.neg %0 : tensor<3xf32>
      %2 = titan.neg %0 : tensor<3xf32>
      %3 = titan.add %1, %2 : tensor<3xf32>
      return %3 : tensor<3xf32>
    })mlir",
                                       &context);
  run([](PassManager& passes) {
    passes.addPass(createCSEPass());
    passes.addPass(createCSEPass());
    passes.addPass(std::make_unique<Nothing<ModuleOp>>());
  });
  EXPECT_EQ(report.notes(),
            (std::vector<std::string>{"checked by execution: cse", "changed nothing: nothing"}));
}

/// What a pass of the pipeline does wrong.
template <typename Change> struct Wrong : PassWrapper<Wrong<Change>, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Wrong)
  Wrong(StringRef name, Change change) : name(name.str()), change(change) {}
  StringRef getArgument() const override { return name; }
  void runOnOperation() override { change(this->getOperation()); }
  std::string name;
  Change change;
};
template <typename Change> std::unique_ptr<Pass> wrong(StringRef name, Change change) {
  return std::make_unique<Wrong<Change>>(name, change);
}

TEST_F(CheckByExecution, NamesThePassThatDropsAResult) {
  auto dropped = [](ModuleOp module) {
    auto step = module.lookupSymbol<func::FuncOp>("step");
    step.getBody().front().getTerminator()->eraseOperands(0, 1);
    step.setResAttrsAttr(ArrayAttr());
    step.setFunctionType(
        FunctionType::get(module.getContext(), step.getArgumentTypes(), TypeRange()));
  };
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong("dropped", dropped)); }),
            "dropped");
  EXPECT_NE(report.difference.find("@step has 0 results, had 1"), std::string::npos)
      << report.difference;
}

TEST_F(CheckByExecution, NamesThePassThatDropsOrAddsAFunction) {
  auto lost = [](ModuleOp module) { module.lookupSymbol<func::FuncOp>("eval").erase(); };
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong("lost", lost)); }), "lost");
  EXPECT_NE(report.difference.find("lost @eval"), std::string::npos) << report.difference;
  report = {};
  auto renamed = [](ModuleOp module) {
    module.lookupSymbol<func::FuncOp>("step").setName("steps");
  };
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong("renamed", renamed)); }),
            "renamed");
  EXPECT_NE(report.difference.find("@steps is new"), std::string::npos) << report.difference;
}

TEST_F(CheckByExecution, SeesTheSignOfAZero) {
  auto negative = [](ModuleOp module) {
    module.walk([](ir::ReluOp op) {
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      Value minus = ir::NegOp::create(builder, op.getLoc(), op.getResult());
      op.getResult().replaceAllUsesExcept(minus, minus.getDefiningOp());
    });
  };
  module = parseSourceString<ModuleOp>(R"mlir(
    func.func @step(%x: tensor<4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "y"}) {
      %0 = titan.sub %x, %x : tensor<4xf32>
      %1 = titan.relu %0 : tensor<4xf32>
      return %1 : tensor<4xf32>
    })mlir",
                                       &context);
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong("negative", negative)); }),
            "negative");
}

/// Adds in another order: (x + y) + z becomes x + (y + z). Says `facts` of itself.
template <PassFacts facts>
struct AddsInAnotherOrder
    : PassWrapper<AddsInAnotherOrder<facts>, PassWithFacts<OperationPass<ModuleOp>, facts>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AddsInAnotherOrder)
  StringRef getArgument() const override { return "titan-lower-form-kernels"; }
  void runOnOperation() override {
    auto step = this->getOperation().template lookupSymbol<func::FuncOp>("step");
    auto outer =
        step.getBody().front().getTerminator()->getOperand(0).template getDefiningOp<ir::AddOp>();
    auto inner = outer.getLhs().template getDefiningOp<ir::AddOp>();
    OpBuilder builder(outer);
    Value last = ir::AddOp::create(builder, outer.getLoc(), outer.getType(), inner.getRhs(),
                                   outer.getRhs(), ArrayAttr(), ir::PhaseAttr());
    outer->setOperands({inner.getLhs(), last});
  }
};

TEST_F(CheckByExecution, TakesTheWordOfAPassForItsRounding) {
  auto runs = [&]<PassFacts facts>() {
    report = {};
    module = parseSourceString<ModuleOp>(R"mlir(
      func.func @step(%x: tensor<64xf32> {titan.input = "x"}, %y: tensor<64xf32> {titan.input = "y"},
                      %z: tensor<64xf32> {titan.input = "z"}) -> (tensor<64xf32> {titan.output = "s"}) {
        %0 = titan.add %x, %y : tensor<64xf32>
        %1 = titan.add %0, %z : tensor<64xf32>
        return %1 : tensor<64xf32>
      })mlir",
                                         &context);
    return run([&](PassManager& passes) {
      passes.addPass(std::make_unique<AddsInAnotherOrder<facts>>());
    });
  };
  EXPECT_EQ(runs.operator()<PassFacts{.movesRounding = true}>(), "");
  // Its name, or another fact, is no such word; nor did it cut a loss.
  EXPECT_EQ(runs.operator()<PassFacts{}>(), "titan-lower-form-kernels");
  EXPECT_EQ(runs.operator()<PassFacts{.isOptional = true}>(), "titan-lower-form-kernels");
  EXPECT_EQ(runs.operator()<PassFacts{.cutsLoss = true}>(), "titan-lower-form-kernels");
}

TEST(PassFacts, AreThoseOfTheEntry) {
  auto factsOfNew = [](std::unique_ptr<Pass> pass) { return factsOf(*pass); };
  EXPECT_TRUE(factsOfNew(createFormKernels()).movesRounding);
  EXPECT_FALSE(factsOfNew(createFormKernels()).isOptional);
  EXPECT_TRUE(factsOfNew(createReuseInPlace()).isOptional);
  EXPECT_FALSE(factsOfNew(createReuseInPlace()).movesRounding);
  EXPECT_TRUE(factsOfNew(createChunkLoss()).cutsLoss);
  EXPECT_FALSE(factsOfNew(createAssignOffsets()).isOptional);
  EXPECT_FALSE(factsOfNew(createCSEPass()).isOptional);
}

TEST(PassFacts, OnlyOptionalPassesMayBeSkipped) {
  registerAllPasses();
  for (const char* name : {"cse", "canonicalize", "titan-plan-reuse-in-place"})
    EXPECT_TRUE(isOptionalPass(name)) << name;
  for (const char* name : {"titan-lower-form-kernels", "titan-plan-verify-offsets", "no-such-pass",
                           "titan-stage-lower", ""})
    EXPECT_FALSE(isOptionalPass(name)) << name;
  // test/driver/disable-pass.test trains a job without each of them.
  const std::vector<std::string> names = optionalPasses();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_TRUE(llvm::is_contained(names, "titan-lower-fuse-kernels"));
  EXPECT_TRUE(llvm::all_of(names, isOptionalPass));
}

TEST_F(CheckByExecution, ComparesThePlaceOfRandomDecisionsWithoutThem) {
  auto drops = [&] {
    module = parseSourceString<ModuleOp>(R"mlir(
      func.func @step(%x: tensor<64xf32> {titan.input = "x"}) -> (tensor<64xf32> {titan.output = "y"}) {
        %0 = titan.dropout %x p 0.5 stream 1 : tensor<64xf32> to tensor<64xf32>
        %1 = titan.relu %0 : tensor<64xf32>
        return %1 : tensor<64xf32>
      })mlir",
                                         &context);
  };
  auto otherStream = [](ModuleOp module) {
    module.walk([](ir::DropoutOp op) { op.setStream(2); });
  };
  auto noRelu = [](ModuleOp module) {
    module.walk([](ir::ReluOp op) {
      op.getResult().replaceAllUsesWith(op.getOperand());
      op.erase();
    });
  };
  constexpr StringRef placeRandom = "titan-accumulate-place-random";
  drops();
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong("other", otherStream)); }),
            "other");
  report = {};
  drops();
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong(placeRandom, otherStream)); }), "");
  EXPECT_EQ(report.notes().back(),
            "titan-accumulate-place-random: what is dropped changes; the rest "
            "was compared, without dropout");
  report = {};
  drops();
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong(placeRandom, noRelu)); }),
            placeRandom);
}

TEST_F(CheckByExecution, ComparesBuffersWithTheTensorsThatTheyWere) {
  constexpr const char* chain = R"mlir(
    func.func @predict(%x: tensor<64xf32> {titan.input = "x"}) -> (tensor<f32> {titan.output = "y"}) {
      %0 = titan.exp %x : tensor<64xf32>
      %1 = titan.reduce sum %0 [0] : tensor<64xf32> to tensor<f32>
      return %1 : tensor<f32>
    })mlir";
  auto plan = [&](std::unique_ptr<Pass> extra) {
    report = {};
    module = parseSourceString<ModuleOp>(chain, &context);
    return run([&](PassManager& passes) {
      passes.addNestedPass<func::FuncOp>(createFormKernels());
      passes.addNestedPass<func::FuncOp>(createClassifyKernels());
      addPlanPasses(passes);
      if (extra)
        passes.addPass(std::move(extra));
    });
  };
  EXPECT_EQ(plan(nullptr), "");
  EXPECT_NE(report.notes().front().find("titan-plan-form-buffers"), std::string::npos);
  // The temporary over the input: the offset that the bindings have.
  EXPECT_EQ(plan(wrong("overlap",
                       [](ModuleOp module) {
                         module.walk([](kernel::BufferOp op) { op.setOffset(0); });
                       })),
            "overlap");
  EXPECT_NE(report.difference.find("@predict writes to an input"), std::string::npos)
      << report.difference;
}

} // namespace
