// Drawn models on drawn meshes, by drawn strategies: the program of a rank, run on all of them, is
// the job; under mesh.reduce = "tree" it has the bits of one rank. TITAN_TEST_SEED draws others, TITAN_TEST_CASE runs one of them alone.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Schedule/testing/GptModel.h"
#include "compiler/Shard/testing/RandomModel.h"
#include "compiler/Support/RecipeAttribute.h"
#include "runtime/program/Random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>

using namespace mlir;
using namespace titan;
using namespace titan::interpreter;
using titan::shard::testing::Draws;

namespace {

constexpr uint64_t defaultSeed = 20240611;
constexpr int64_t cases = 200, treeCases = 100;

uint64_t numberOf(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// A model with a recipe, as keys of `--set`: those of the mesh, and all others.
struct Case {
  std::string model, kind;
  std::vector<std::string> mesh, keys;
};

constexpr std::pair<int64_t, int64_t> meshes[] = {{2, 1}, {1, 2}, {3, 1}, {1, 3}, {2, 2},
                                                  {1, 4}, {2, 3}, {3, 2}, {1, 5}, {1, 7},
                                                  {2, 4}, {4, 2}, {1, 8}, {8, 1}};

std::string drawStrategy(Draws& draws, int64_t replicate, int64_t shard) {
  constexpr const char* strategies[] = {"ddp", "zero1", "zero2", "fsdp", "fsdp", "hsdp"};
  for (;;) {
    const std::string strategy = draws.oneOf(strategies);
    const bool isHsdp = strategy == "hsdp";
    if (strategy == "ddp" || (shard > 1 && (!isHsdp || replicate > 1)))
      return strategy;
  }
}

/// When ranks sum; `local` are the microbatches of a rank.
std::vector<std::string> drawSync(Draws& draws, int64_t replicate, int64_t local) {
  const int64_t every = draws.number(1, local);
  switch (draws.number(0, 4)) {
  case 0:
    return {"mesh.sync=deferred"};
  case 1:
    return {"mesh.sync=immediate"};
  case 2:
    return {fmt::format("mesh.sync_every={}", local % every == 0 ? every : local)};
  case 3:
    // The other way round sums of shards would be whole again.
    return {replicate > 1 ? "mesh.sync={ shard = \"immediate\", replicate = \"deferred\" }"
                          : "mesh.sync.shard=immediate"};
  default:
    return {};
  }
}

/// What becomes of gathered parameters behind forward.
std::string drawReshard(Draws& draws) {
  constexpr const char* words[] = {"always", "never", "step"};
  return fmt::format("mesh.reshard={}", draws.oneOf(words));
}

std::vector<std::string> drawOptimizer(Draws& draws) {
  std::vector<std::string> keys;
  if (draws.chance(50))
    keys = {"optimizer.kind=adamw",
            fmt::format("optimizer.weight_decay={}", draws.chance(50) ? 0.1 : 0.0)};
  else
    keys = {"optimizer.kind=sgd",
            fmt::format("optimizer.momentum={}", draws.chance(50) ? 0.9 : 0.0)};
  keys.push_back(fmt::format("optimizer.clip_norm={}", draws.chance(50) ? 0.5 : 0.0));
  return keys;
}

void drawModel(Draws& draws, int64_t micro, Case& drawn) {
  // A transformer takes as long as twenty others.
  if (draws.chance(15)) {
    const int64_t heads = draws.number(1, 2);
    drawn.kind = "gpt";
    drawn.model = schedule::testing::gptModel({.layers = 1,
                                               .batch = micro,
                                               .positions = draws.number(2, 3),
                                               .width = heads * draws.number(2, 3),
                                               .heads = heads,
                                               .vocabulary = draws.number(3, 11),
                                               .isTied = draws.chance(60),
                                               .dropout = draws.chance(30) ? 0.25 : 0});
  } else {
    drawn.kind = "mlp";
    drawn.model = shard::testing::randomMlp(draws, micro);
    if (draws.chance(20))
      drawn.keys.emplace_back("model.frozen=[\"layers.0.*\"]");
  }
}

Case draw(Draws& draws) {
  const auto [replicate, shard] = draws.oneOf(meshes);
  const int64_t micro = draws.number(1, 2), local = draws.number(1, 4);
  Case drawn;
  drawn.mesh = {fmt::format("mesh.axes={{ replicate = {}, shard = {} }}", replicate, shard),
                fmt::format("mesh.strategy={}", drawStrategy(draws, replicate, shard))};
  drawn.keys = {fmt::format("batch.micro={}", micro),
                fmt::format("batch.global={}", micro * local * replicate * shard)};
  drawn.mesh.push_back(drawReshard(draws));
  llvm::append_range(drawn.mesh, drawSync(draws, replicate, local));
  llvm::append_range(drawn.keys, drawOptimizer(draws));
  drawModel(draws, micro, drawn);
  return drawn;
}

Case drawTree(Draws& draws) {
  constexpr std::pair<int64_t, int64_t> twos[] = {{2, 1}, {1, 2}, {4, 1}, {1, 4}, {2, 2},
                                                  {2, 4}, {4, 2}, {1, 8}, {8, 1}};
  const auto [replicate, shard] = draws.oneOf(twos);
  const int64_t micro = draws.number(1, 2), local = int64_t{1} << draws.number(0, 2);
  Case drawn;
  drawn.mesh = {fmt::format("mesh.axes={{ replicate = {}, shard = {} }}", replicate, shard),
                fmt::format("mesh.strategy={}", drawStrategy(draws, replicate, shard)),
                drawReshard(draws)};
  const std::vector<std::string> sync = drawSync(draws, replicate, local);
  if (!sync.empty() && !llvm::StringRef(sync.front()).contains("sync_every"))
    drawn.mesh.push_back(sync.front());
  drawn.keys = {"mesh.reduce=tree", fmt::format("batch.micro={}", micro),
                fmt::format("batch.global={}", micro * local * replicate * shard)};
  llvm::append_range(drawn.keys, drawOptimizer(draws));
  drawModel(draws, micro, drawn);
  return drawn;
}

class ShardingProperty : public titan::interpreter::testing::ModuleFixture {
public:
  ShardingProperty() : ModuleFixture(registerAllDialects) {}

  /// `model` as *accumulate* leaves it; null where that fails.
  OwningOpRef<ModuleOp> accumulated(StringRef model, ArrayRef<std::string> keys) {
    OwningOpRef<ModuleOp> module = parse(model);
    Recipe recipe;
    for (const std::string& key : keys) {
      const Status set = setKey(recipe, key);
      EXPECT_TRUE(set.ok()) << set.error().message();
    }
    const Status valid = validate(recipe);
    EXPECT_TRUE(valid.ok()) << valid.error().message();
    setRecipe(*module, recipe);
    return advance(std::move(module), Stage::Import, Stage::Accumulate);
  }
  /// On the mesh of `drawn`.
  OwningOpRef<ModuleOp> accumulated(const Case& drawn) {
    std::vector<std::string> keys = drawn.mesh;
    llvm::append_range(keys, drawn.keys);
    return accumulated(drawn.model, keys);
  }
  OwningOpRef<ModuleOp> advance(OwningOpRef<ModuleOp> module, Stage from, Stage to) {
    PassManager passes(&context);
    addStages(passes, from, to);
    message.clear();
    if (failed(passes.run(*module)))
      return {};
    return module;
  }

  void check(const Case& drawn) {
    OwningOpRef<ModuleOp> job = accumulated(drawn);
    ASSERT_TRUE(job) << message;
    OwningOpRef<ModuleOp> rank = advance(job->clone(), Stage::Accumulate, Stage::Shard);
    ASSERT_TRUE(rank) << message;
    EquivalenceOptions options;
    options.tolerance = 1e-11;
    options.newResults = true; // the metric that stops all ranks
    EXPECT_TRUE(succeeded(checkEquivalent(*job, *rank, options))) << message;
  }

  /// The program of a rank has the bits of that of one rank alone.
  void checkBits(const Case& drawn) {
    OwningOpRef<ModuleOp> one = accumulated(drawn.model, drawn.keys), rank = accumulated(drawn);
    ASSERT_TRUE(one && rank) << message;
    one = advance(std::move(one), Stage::Accumulate, Stage::Shard);
    rank = advance(std::move(rank), Stage::Accumulate, Stage::Shard);
    ASSERT_TRUE(one && rank) << message;
    EquivalenceOptions options;
    options.tolerance = 0;
    options.newResults = true; // the metric that stops all ranks
    EXPECT_TRUE(succeeded(checkEquivalent(*one, *rank, options))) << message;
  }

  void checkAll(int64_t count, Case (*drawOne)(Draws&),
                void (ShardingProperty::*checkOne)(const Case&)) {
    const uint64_t seed = numberOf("TITAN_TEST_SEED", defaultSeed);
    const auto alone = static_cast<int64_t>(numberOf("TITAN_TEST_CASE", count));
    fmt::print("seed {} (TITAN_TEST_SEED)\n", seed);
    for (int64_t i = 0; i < count && !HasFailure(); ++i) {
      if (alone < count && i != alone)
        continue;
      Draws draws(randomKey(seed, static_cast<uint64_t>(i)));
      const Case drawn = drawOne(draws);
      SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={} TITAN_TEST_CASE={}: {}, {}, {}\n{}", seed, i,
                               drawn.kind, fmt::join(drawn.mesh, ", "), fmt::join(drawn.keys, ", "),
                               drawn.model));
      (this->*checkOne)(drawn);
    }
  }
};

TEST_F(ShardingProperty, DrawnProgramsOfRanksAreTheJob) {
  checkAll(cases, draw, &ShardingProperty::check);
}

TEST_F(ShardingProperty, DrawnTreesHaveTheBitsOfOneRank) {
  checkAll(treeCases, drawTree, &ShardingProperty::checkBits);
}

} // namespace
