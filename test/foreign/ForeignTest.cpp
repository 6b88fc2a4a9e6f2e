// Ops that no pass names go through every stage: what happens to them, and that they mean the same
// before and after each pass.
#include "test/foreign/Foreign.h"
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Pipeline/CheckByExecution.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Schedule/ChunkLoss.h"
#include "compiler/Support/RecipeAttribute.h"
#include "dialects/Accum/Accum.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

using namespace mlir;
using namespace titan;

namespace {

std::string readInput(const std::string& name) {
  std::ifstream file(std::string(TITAN_SOURCE_DIR "/test/foreign/Inputs/") + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::string replaceAll(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// A way to compile the model.
struct Way {
  const char* name;
  const char* compute = "f32";
  bool isLarge = false; ///< many rows and classes, in as little memory as can be
};

constexpr Way ways[] = {{"f32"},
                        {.name = "bf16", .compute = "bf16"},
                        {.name = "large", .isLarge = true},
                        {.name = "large bf16", .compute = "bf16", .isLarge = true}};

class Foreign : public testing::Test {
protected:
  Foreign() {
    DialectRegistry registry;
    registerAllDialects(registry);
    foreign::registerForeign(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  /// `model` as it is after `stage`.
  OwningOpRef<ModuleOp> compile(std::string model, const Way& way, Stage stage,
                                ExecutionReport* report = nullptr) {
    if (way.isLarge)
      for (auto [from, to] :
           {std::pair("<8x", "<32x"), {"x5xf32>", "x320xf32>"}, {"<5xf32>", "<320xf32>"}})
        model = replaceAll(model, from, to);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(model, &context);
    auto recipe = parseRecipe(readInput("train.toml"));
    EXPECT_TRUE(module && recipe.ok());
    recipe->batch.micro = way.isLarge ? 32 : 8;
    recipe->batch.global = 2 * recipe->batch.micro;
    recipe->precision.compute = way.compute;
    recipe->memory.remat = way.isLarge ? "full" : "auto";
    setRecipe(*module, *recipe);
    PassManager passes(&context);
    if (report)
      addExecutionCheck(passes, *report);
    addStages(passes, Stage::Import, stage);
    EXPECT_TRUE(succeeded(passes.run(*module))) << way.name;
    return module;
  }

  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream);
    return text;
  }

  template <typename Op> static SmallVector<Op> all(Operation* root) {
    SmallVector<Op> ops;
    root->walk([&](Op op) { ops.push_back(op); });
    return ops;
  }

  MLIRContext context;
  const std::string model = readInput("mlp.mlir");
};

TEST_F(Foreign, EveryPassKeepsTheMeaning) {
  for (const Way& way : ways) {
    ExecutionReport report;
    compile(model, way, Stage::Plan, &report);
    EXPECT_EQ(report.mismatch, "") << way.name << ": " << report.difference;
    std::string compared = report.notes().empty() ? "" : report.notes().front();
    for (const char* pass : {"titan-shard-fold-contractions", "titan-accumulate-place-random",
                             "titan-lower-form-kernels", "titan-plan-form-buffers"})
      EXPECT_NE(compared.find(pass), std::string::npos) << way.name << ": " << compared;
  }
}

TEST_F(Foreign, AProductBecomesWhatAContractionBecomes) {
  std::string contractions = replaceAll(
      replaceAll(model, "foreign.product %x, %w1 transposed",
                 "titan.contract %x, %w1 batch [] x [] contracting [1] x [1]"),
      "foreign.product %f, %w2", "titan.contract %f, %w2 batch [] x [] contracting [1] x [0]");
  for (const Way& way : ways) {
    auto products = compile(model, way, Stage::Plan);
    EXPECT_EQ(print(*products), print(*compile(contractions, way, Stage::Plan))) << way.name;
  }
}

TEST_F(Foreign, AProductSaysWhatTheModelAsksFor) {
  // 12-48-5 on 16 rows, and no gradient of the data: whatever is recomputed or cut.
  for (const Way& way : ways) {
    const int64_t rows = way.isLarge ? 64 : 16, classes = way.isLarge ? 320 : 5, features = 12;
    auto module = compile(model, way, Stage::Plan);
    auto step = module->lookupSymbol<func::FuncOp>("step");
    auto counted = step->getAttrOfType<IntegerAttr>(ir::tag::modelFlops);
    ASSERT_TRUE(counted) << way.name;
    EXPECT_EQ(counted.getInt(), rows * (6 * (features * 48 + 48 * classes) - 2 * features * 48))
        << way.name;
  }
}

TEST_F(Foreign, ProductsContinueTheAccumulators) {
  auto module = compile(model, ways[0], Stage::Shard);
  auto loop = all<accum::LoopOp>(*module).front();
  int continued = 0;
  for (foreign::ProductOp product : all<foreign::ProductOp>(loop))
    continued += product.getAcc() && llvm::is_contained(loop.getAccumulators(), product.getAcc());
  EXPECT_EQ(continued, 2);
}

TEST_F(Foreign, NoiseIsPlacedInTheBatchAndLeftOutOfEvaluation) {
  auto module = compile(model, ways[0], Stage::Accumulate);
  SmallVector<foreign::FlipOp> flips = all<foreign::FlipOp>(*module);
  EXPECT_EQ(flips.size(), 2u); // forward and backward
  for (foreign::FlipOp flip : flips) {
    EXPECT_TRUE(flip->getParentOfType<accum::LoopOp>());
    EXPECT_TRUE(flip.getSeed() && flip.getStep() && flip.getBase());
    EXPECT_EQ(flip.getWindowAttr(), ir::WindowAttr::get(&context, {16, 48}, 8 * 48));
  }
}

TEST_F(Foreign, PrecisionRoundsWhatProductsRead) {
  auto module = compile(model, ways[1], Stage::Differentiate);
  for (foreign::ProductOp product : all<foreign::ProductOp>(*module)) {
    EXPECT_TRUE(getElementTypeOrSelf(product.getA()).isBF16());
    EXPECT_TRUE(getElementTypeOrSelf(product.getB()).isBF16());
    EXPECT_TRUE(getElementTypeOrSelf(product.getType()).isF32());
  }
}

TEST_F(Foreign, AProductIsComputedAgain) {
  auto module = compile(model, ways[2], Stage::Schedule);
  // The chain of a value that is computed again starts at a barrier.
  auto startsChain = [](Operation* op) {
    return llvm::any_of(op->getOperands(),
                        [](Value operand) { return operand.getDefiningOp<ir::BarrierOp>(); });
  };
  EXPECT_TRUE(llvm::any_of(all<foreign::ProductOp>(*module), startsChain));
}

TEST_F(Foreign, TheLossIsCut) {
  auto whole = compile(model, ways[2], Stage::Shard);
  OwningOpRef<ModuleOp> cut = whole->clone();
  auto step = cut->lookupSymbol<func::FuncOp>(ir::function::step);
  schedule::chunkLosses(step, 4, /*withRemarks=*/false);
  EXPECT_EQ(all<ir::CrossEntropyOp>(step).size(), 4u);
  // Its weight's gradient goes on from piece to piece, the other is whole.
  EXPECT_EQ(llvm::count_if(all<foreign::ProductOp>(step),
                           [](foreign::ProductOp op) { return bool(op.getAcc()); }),
            4 + 1);
  interpreter::EquivalenceOptions options;
  options.tolerance = 1e-9;
  EXPECT_TRUE(succeeded(interpreter::checkEquivalent(*whole, *cut, options)));
}

TEST_F(Foreign, NoiseOnTheLogitsIsNotCut) {
  const std::string noisy =
      replaceAll(model, "return %h2",
                 "%n = foreign.flip %h2 p 0.125 stream 4 {path = [\"last\"]} : "
                 "tensor<8x5xf32>\n    return %n");
  auto module = compile(noisy, ways[0], Stage::Shard);
  std::string why;
  EXPECT_TRUE(failed(schedule::LossRegion::find(
      all<ir::CrossEntropyOp>(module->lookupSymbol(ir::function::step)).front(), 4, why)));
  EXPECT_EQ(why, "last: flip reads the logits as a whole");
}

TEST_F(Foreign, NoiseOnTheFeaturesIsBehindWhatIsCut) {
  // With few classes the gradient of the features is larger than the logits, and still no part.
  auto whole = compile(model, ways[0], Stage::Shard);
  OwningOpRef<ModuleOp> cut = whole->clone();
  auto step = cut->lookupSymbol<func::FuncOp>(ir::function::step);
  const size_t flips = all<foreign::FlipOp>(step).size();
  schedule::chunkLosses(step, 4, /*withRemarks=*/false);
  EXPECT_EQ(all<ir::CrossEntropyOp>(step).size(), 4u);
  EXPECT_EQ(all<foreign::FlipOp>(step).size(), flips);
  interpreter::EquivalenceOptions options;
  options.tolerance = 1e-9;
  EXPECT_TRUE(succeeded(interpreter::checkEquivalent(*whole, *cut, options)));
}

} // namespace
