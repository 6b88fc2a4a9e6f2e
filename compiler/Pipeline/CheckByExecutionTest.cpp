#include "compiler/Pipeline/CheckByExecution.h"

#include "compiler/Lower/Passes.h"
#include "compiler/Memory/Passes.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/TaggedFunction.h"
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

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// Eight microbatches of one sample on `ranks` ranks: the sum of squares, as the job has it or as a
/// rank has it.
struct CheckRanks : CheckByExecution {
  OwningOpRef<ModuleOp> parse(StringRef function, int64_t ranks) {
    const std::string count = std::to_string(ranks);
    return parseSourceString<ModuleOp>(
        "module attributes {dist.mesh = #dist.mesh<[\"shard\" = " + count +
            "]>, titan.recipe = {batch = {micro = 1 : i64, global = " + std::to_string(2 * ranks) +
            " : i64}, mesh = {axes = [{name = \"shard\", ranks = " + count + " : i64}]}}} {" +
            function.str() + "}",
        &context);
  }
  /// Three rows on two ranks: the last part has one, and padding.
  static constexpr StringLiteral state = R"(
    titan.state @w : tensor<3xf32> {kind = #titan<kind param>, trainable,
        init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #titan.placement<["shard" = shard(0)]>}
  )";
  static std::string ofTheJob(int64_t ranks) {
    const std::string type = "tensor<" + std::to_string(2 * ranks) + "x1xf32>";
    return "func.func @step(%x: " + type +
           R"( {titan.input = "x"}) -> (tensor<f32> {titan.metric = "loss"}) {
      %q = titan.mul %x, %x : )" +
           type + R"(
      %l = titan.reduce sum %q [0, 1] : )" +
           type + R"( to tensor<f32>
      return %l : tensor<f32>
    })";
  }
  static constexpr StringLiteral ofARank = R"(
    func.func @step(%x: tensor<2x1xf32> {titan.input = "x"}) -> (tensor<f32> {titan.metric = "loss"}) {
      %q = titan.mul %x, %x : tensor<2x1xf32>
      %l = titan.reduce sum %q [0, 1] : tensor<2x1xf32> to tensor<f32>
      %s = dist.all_reduce sum %l axes ["shard"] order rank : tensor<f32> to tensor<f32>
      return %s : tensor<f32>
    })";

  /// A pass that puts @step of `text` in the place of that of the module.
  std::unique_ptr<Pass> becomes(StringRef name, StringRef text, int64_t ranks) {
    others.push_back(parse(text, ranks));
    ModuleOp other = *others.back();
    return wrong(name, [other](ModuleOp module) mutable {
      module.lookupSymbol<func::FuncOp>("step").erase();
      module.push_back(other.lookupSymbol<func::FuncOp>("step").clone());
    });
  }
  std::vector<OwningOpRef<ModuleOp>> others;
};

TEST_F(CheckRanks, TheProgramOfARankIsComparedWithTheJob) {
  for (int64_t ranks : {2, 3, 8}) {
    report = {};
    module = parse(ofTheJob(ranks), ranks);
    EXPECT_EQ(
        run([&](PassManager& passes) { passes.addPass(becomes("partition", ofARank, ranks)); }), "")
        << report.difference;
    EXPECT_EQ(report.notes(), std::vector<std::string>{"checked by execution: partition"});
  }
}

TEST_F(CheckRanks, NamesThePassThatForgetsACollective) {
  module = parse(ofTheJob(2), 2);
  std::string text = ofARank.str();
  text.replace(text.find("return %s"), 9, "return %l");
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(becomes("partition", text, 2)); }),
            "partition");
  EXPECT_NE(report.difference.find("@step result 0: rank 1 differs from rank 0"), std::string::npos)
      << report.difference;
}

TEST_F(CheckRanks, LaterPassesKeepEveryBit) {
  std::string text = ofARank.str();
  text.replace(text.find("order rank"), 10, "order tree");
  // Neighbours first is another sum than one after the other.
  auto changes = [&](std::unique_ptr<Pass> pass) {
    report = {};
    module = parse(ofARank, 8);
    return run([&](PassManager& passes) { passes.addPass(std::move(pass)); });
  };
  EXPECT_EQ(changes(becomes("later", text, 8)), "later");
  EXPECT_EQ(changes(becomes("halves", R"(
    func.func @step(%x: tensor<2x1xf32> {titan.input = "x"}) -> (tensor<f32> {titan.metric = "loss"}) {
      %q = titan.mul %x, %x : tensor<2x1xf32>
      %l = titan.reduce sum %q [0, 1] : tensor<2x1xf32> to tensor<f32>
      %e = kernel.empty : tensor<f32>
      %t = dist.start all_reduce ins(%l : tensor<f32>) outs(%e : tensor<f32>) axes ["shard"] order rank
      %s = dist.wait %t ins(%l : tensor<f32>) outs(%e : tensor<f32>) -> (tensor<f32>)
      return %s : tensor<f32>
    })",
                            8)),
            "")
      << report.difference;
}

TEST_F(CheckRanks, AMeshBeforePartitionIsOneRank) {
  module = parse(ofTheJob(2), 2);
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(becomes("same", ofTheJob(2), 2)); }), "");
  module = parse(ofTheJob(2), 2);
  report = {};
  auto negative = [](ModuleOp module) {
    auto step = module.lookupSymbol<func::FuncOp>("step");
    Operation* end = step.getBody().front().getTerminator();
    OpBuilder builder(end);
    end->setOperand(0, ir::NegOp::create(builder, end->getLoc(), end->getOperand(0)));
  };
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong("negative", negative)); }),
            "negative");
}

TEST_F(CheckRanks, PartsOfStatesAreComparedWithTheWhole) {
  constexpr StringRef whole = R"(
    func.func @step(%w: tensor<3xf32> {titan.state = @w}) -> (tensor<3xf32> {titan.state = @w}, tensor<f32> {titan.metric = "sum"}) {
      %e = titan.exp %w : tensor<3xf32>
      %s = titan.reduce sum %w [0] : tensor<3xf32> to tensor<f32>
      return %e, %s : tensor<3xf32>, tensor<f32>
    })";
  constexpr StringRef parts = R"(
    func.func @step(%w: tensor<2xf32> {titan.state = @w}) -> (tensor<2xf32> {titan.state = @w}, tensor<f32> {titan.metric = "sum"}) {
      %e = titan.exp %w : tensor<2xf32>
      %p = dist.all_gather %w axes ["shard"] dims [0] : tensor<2xf32> to tensor<4xf32>
      %full = titan.slice %p offsets [0] strides [1] : tensor<4xf32> to tensor<3xf32>
      %s = titan.reduce sum %full [0] : tensor<3xf32> to tensor<f32>
      return %e, %s : tensor<2xf32>, tensor<f32>
    })";
  auto changes = [&](StringRef text) {
    report = {};
    module = parse((state + whole).str(), 2);
    return run([&](PassManager& passes) {
      passes.addPass(becomes("partition", (state + text).str(), 2));
    });
  };
  EXPECT_EQ(changes(parts), "") << report.difference;
  std::string wrong = parts.str();
  wrong.replace(wrong.find("%full [0] : tensor<3x"), 21, "%p [0] : tensor<4x");
  EXPECT_EQ(changes(wrong), "partition");
  EXPECT_NE(report.difference.find("@step result 1 depends on the padding of a state"),
            std::string::npos)
      << report.difference;
  wrong = parts.str();
  wrong.replace(wrong.find("return %e"), 9, "return %w");
  EXPECT_EQ(changes(wrong), "partition");
  EXPECT_NE(report.difference.find("@step result 0"), std::string::npos) << report.difference;
}

TEST_F(CheckRanks, SaysThatManyRanksAreNotCompared) {
  module = parse(ofTheJob(9), 9);
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(becomes("partition", ofARank, 9)); }),
            "");
  EXPECT_EQ(report.notes(),
            (std::vector<std::string>{"checked by execution: partition",
                                      "partition: more than 8 ranks are not simulated"}));
}

TEST_F(CheckRanks, TheFlagThatStopsIsNewWithTheMesh) {
  module = parse(ofTheJob(2), 2);
  auto addStop = [](ModuleOp module) {
    TaggedFunction step(module.lookupSymbol<func::FuncOp>("step"));
    Builder builder(module.getContext());
    StringAttr name = builder.getStringAttr("stop");
    Value stop =
        step.addArgument(RankedTensorType::get({}, builder.getI64Type()), ir::tag::control, name);
    step.addResult(stop, ir::tag::metric, name);
  };
  constexpr StringRef seed = "titan-shard-seed-placements";
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong(seed, addStop)); }), "")
      << report.difference;
  EXPECT_EQ(report.notes().back(),
            seed.str() + ": the metric that stops all ranks is new; the rest was compared");
  module = parse(ofTheJob(2), 2);
  EXPECT_EQ(run([&](PassManager& passes) { passes.addPass(wrong("another", addStop)); }),
            "another");
}

TEST_F(CheckRanks, ComparesBuffersOnAllRanks) {
  std::string onBuffers = R"(
    func.func @step(%x: memref<2x1xf32> {titan.input = "x"}, %y: memref<2xf32> {titan.output = "y"}) {
      %s = kernel.buffer -1 : memref<2xf32>
      kernel.copy %x to %s : memref<2x1xf32> to memref<2xf32>
      %t = dist.start all_reduce ins(%s : memref<2xf32>) outs(%y : memref<2xf32>) axes ["shard"] order rank
      dist.wait %t ins(%s : memref<2xf32>) outs(%y : memref<2xf32>)
      return
    })";
  auto changes = [&](StringRef text) {
    report = {};
    module = parse(R"(
      func.func @step(%x: tensor<2x1xf32> {titan.input = "x"}) -> (tensor<2xf32> {titan.output = "y"}) {
        %f = titan.reshape %x : tensor<2x1xf32> to tensor<2xf32>
        %y = dist.all_reduce sum %f axes ["shard"] order rank : tensor<2xf32> to tensor<2xf32>
        return %y : tensor<2xf32>
      })",
                   4);
    return run([&](PassManager& passes) { passes.addPass(becomes("buffers", text, 4)); });
  };
  EXPECT_EQ(changes(onBuffers), "") << report.difference;
  onBuffers.replace(onBuffers.find("return"), 6,
                    "kernel.copy %s to %y : memref<2xf32> to memref<2xf32>\nreturn");
  EXPECT_EQ(changes(onBuffers), "buffers");
  EXPECT_NE(report.difference.find("rank 1 differs from rank 0"), std::string::npos)
      << report.difference;
}

} // namespace
