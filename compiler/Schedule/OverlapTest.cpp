// Collectives of decoders on ranks, in buckets and under way while others compute: the bits of
// every subset of the passes, and the bytes that are live.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Pipeline/MeasurePlan.h"
#include "compiler/Schedule/OpCosts.h"
#include "compiler/Schedule/OverlapCollectives.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Schedule/testing/ScheduleFixture.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/RecipeAttribute.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan;
using namespace titan::schedule;
using titan::schedule::testing::GptShape;

namespace {

class Overlap : public titan::schedule::testing::ScheduleFixture {
protected:
  /// A decoder of `microbatches` in all, on ranks as `mesh` says, at *shard*.
  OwningOpRef<ModuleOp> make(int64_t microbatches, const std::string& mesh) {
    GptShape shape;
    shape.batch = 1;
    shape.positions = 4;
    shape.microbatches = microbatches;
    shape.mesh = mesh;
    return ScheduleFixture::make(shape, Stage::Shard);
  }

  /// What *schedule* does of it up to where memory is fitted, with the passes whose bit is set:
  /// bucket, split, prefetch, overlap.
  void schedule(ModuleOp module, unsigned subset = 15) {
    PassManager passes(&context);
    passes.addPass(createInlineSingleIteration());
    passes.addPass(createOrderOps());
    if (subset & 1)
      passes.addPass(createBucketCollectives());
    if (subset & 2)
      passes.addPass(createSplitCollectives());
    if (subset & 4)
      passes.addPass(createPrefetchGathers());
    if (subset & 8)
      passes.addPass(createOverlapReductions());
    passes.addPass(createVerifySchedule());
    EXPECT_TRUE(succeeded(passes.run(module)));
  }

  void expectSameBits(ModuleOp before, ModuleOp after) {
    interpreter::EquivalenceOptions options;
    options.engine = interpreter::Engine::F32;
    options.tolerance = 0;
    options.random.integerBound = 8;
    EXPECT_TRUE(succeeded(interpreter::checkEquivalent(before, after, options))) << message;
  }
};

TEST_F(Overlap, EverySubsetOfPassesKeepsBits) {
  const std::string pairs = "axes = {replicate = 2 : i64, shard = 2 : i64}",
                    two = "axes = {replicate = 1 : i64, shard = 2 : i64}";
  const std::pair<int64_t, std::string> rows[] = {
      {2, two + ", strategy = \"fsdp\", bucket = 3000 : i64"},
      {4, two + ", strategy = \"fsdp\", bucket = 5000 : i64, sync = \"immediate\""},
      {4, two + ", strategy = \"zero1\", bucket = 3000 : i64, prefetch = 2 : i64"},
      {4, pairs + ", strategy = \"hsdp\", bucket = 3000 : i64"},
      {4, two + ", strategy = \"ddp\", bucket = 3000 : i64, sync = \"immediate\""}};
  for (const auto& [microbatches, mesh] : rows) {
    SCOPED_TRACE(mesh);
    auto before = make(microbatches, mesh);
    for (unsigned subset = 0; subset < 16; ++subset) {
      OwningOpRef<ModuleOp> after = before->clone();
      schedule(*after, subset);
      SCOPED_TRACE(subset);
      expectSameBits(*before, *after);
    }
  }
}

/// Ops of a block by number, and the bytes that are live at each.
class LiveBytes {
public:
  explicit LiveBytes(Block& block) : block(block), live(block.getOperations().size() + 1) {
    for (auto [i, op] : llvm::enumerate(block))
      numbers[&op] = i;
  }

  int numberOf(Operation* op) const { return numbers.lookup(block.findAncestorOpInBlock(*op)); }

  /// The last op that reads `value`, also through what shows it in another shape.
  int lastReaderOf(Value value) const {
    int last = 0;
    for (Operation* user : value.getUsers())
      last =
          std::max({last, numberOf(user),
                    isView(user) && user->getNumResults() ? lastReaderOf(user->getResult(0)) : 0});
    return last;
  }

  void add(Operation* from, int last, int64_t bytes) {
    live[numberOf(from)] += bytes;
    live[last + 1] -= bytes;
  }

  int64_t peak() const {
    int64_t now = 0, most = 0;
    for (int64_t change : live)
      most = std::max(most, now += change);
    return most;
  }

private:
  Block& block;
  llvm::DenseMap<Operation*, int> numbers;
  std::vector<int64_t> live;
};

/// The largest bucket of the gathers, or of the reduce_scatters, of a block; what of them is live
/// at once. Values that forward gathers and backward reads, too, are left out.
struct Peak {
  int64_t largest = 0, live = 0;
};

Peak peakOf(Block& block, bool gathers) {
  LiveBytes live(block);
  Peak peak;
  for (auto start : block.getOps<dist::StartOp>()) {
    if (gathers ? !gathersForReaders(start)
                : start.getCollective() != dist::Collective::ReduceScatter)
      continue;
    int64_t bucket = 0;
    for (auto [in, result] : llvm::zip_equal(start.getIns(), start.getWait().getResults())) {
      const Value whole = gathers ? Value(result) : in;
      bucket += bytesOf(whole.getType());
      const bool isKept = gathers && ir::getPhase(start) == ir::Phase::Forward &&
                          llvm::any_of(whole.getUsers(), [](Operation* user) {
                            return ir::getPhase(user) != ir::Phase::Forward;
                          });
      if (!isKept)
        live.add(gathers ? start : in.getDefiningOp(),
                 gathers ? live.lastReaderOf(whole) : live.numberOf(start.getWait()),
                 bytesOf(whole.getType()));
    }
    peak.largest = std::max(peak.largest, bucket);
  }
  peak.live = live.peak();
  return peak;
}

/// Not everything is gathered as the step begins, and no whole gradient waits for the last one.
TEST_F(Overlap, FewBucketsAreLive) {
  for (int64_t prefetch : {0, 1, 2})
    for (int64_t bucket : {0, 2000, 6000}) {
      SCOPED_TRACE(prefetch);
      SCOPED_TRACE(bucket);
      auto module = make(4, "axes = {replicate = 1 : i64, shard = 2 : i64}, strategy = \"fsdp\", "
                            "sync = \"immediate\", prefetch = " +
                                std::to_string(prefetch) +
                                " : i64, bucket = " + std::to_string(bucket) + " : i64");
      schedule(*module);
      accum::LoopOp loop;
      module->walk([&](accum::LoopOp each) { loop = each; });
      ASSERT_TRUE(loop);
      for (bool gathers : {true, false}) {
        const Peak peak = peakOf(loop.getBlock(), gathers);
        EXPECT_GT(peak.largest, 0);
        EXPECT_LE(peak.live, (1 + prefetch) * peak.largest) << (gathers ? "gathers" : "sums");
      }
    }
}

/// Before anything is computed again, less is on its way.
TEST_F(Overlap, ALimitLowersPrefetchAndBuckets) {
  auto shard = make(4, "axes = {replicate = 1 : i64, shard = 2 : i64}, strategy = \"fsdp\"");
  auto scheduled = [&](int64_t bucket, int64_t prefetch, int64_t limit) {
    OwningOpRef<ModuleOp> module = shard->clone();
    FailureOr<Recipe> recipe = getRecipe(*module);
    recipe->mesh.bucket = bucket;
    recipe->mesh.prefetch = prefetch;
    recipe->memory.limit = limit;
    setRecipe(*module, *recipe);
    PassManager passes(&context);
    addStages(passes, Stage::Shard, Stage::Schedule);
    EXPECT_TRUE(succeeded(passes.run(*module))) << message;
    return module;
  };
  const FailureOr<int64_t> most = measurePlan(*scheduled(6000, 1, 0)),
                           least = measurePlan(*scheduled(0, 0, 0));
  ASSERT_TRUE(succeeded(most) && succeeded(least));
  ASSERT_LT(*least, *most);
  for (int percent : {95, 60, 0}) {
    SCOPED_TRACE(percent);
    const int64_t limit = *least + (*most - *least) * percent / 100;
    auto fitted = scheduled(6000, 1, limit);
    const FailureOr<int64_t> bytes = measurePlan(*fitted);
    ASSERT_TRUE(succeeded(bytes));
    EXPECT_LE(*bytes, limit);
    fitted->walk([&](ir::BarrierOp) { ADD_FAILURE() << "computes again"; });
    expectSameBits(*shard, *fitted);
  }
}

} // namespace
