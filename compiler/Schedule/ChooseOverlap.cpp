#include "compiler/Schedule/ChooseOverlap.h"

#include "compiler/Schedule/BucketCollectives.h"
#include "compiler/Schedule/OpCosts.h"
#include "compiler/Schedule/OverlapCollectives.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/Collectives.h"
#include "mlir/IR/Remarks.h"
#include "runtime/program/Text.h"

using namespace mlir;

namespace titan::schedule {

/// Below that each tensor is by itself.
static constexpr int64_t smallestBucket = 64 * 1024;

OverlapPasses OverlapPasses::without(ArrayRef<std::string> disabled) {
  auto runs = [&](std::unique_ptr<Pass> pass) {
    return !llvm::is_contained(disabled, pass->getArgument());
  };
  return {runs(createBucketCollectives()), runs(createSplitCollectives()),
          runs(createPrefetchGathers()), runs(createOverlapReductions())};
}

/// Bytes of the largest bucket, whole.
static int64_t largestBucket(ModuleOp module) {
  int64_t largest = 0;
  module.walk([&](Operation* op) {
    auto start = dyn_cast<dist::StartOp>(op);
    if (!start && !dist::isWholeCollective(op))
      return;
    int64_t ins = 0, outs = 0;
    for (Value in : start ? ValueRange(start.getIns()) : ValueRange(op->getOperands()))
      ins += bytesOf(in.getType());
    for (Type out : start ? TypeRange(start.getOuts().getTypes()) : TypeRange(op->getResultTypes()))
      outs += bytesOf(out);
    largest = std::max({largest, ins, outs});
  });
  return largest;
}

SmallVector<Overlap> lesserOverlaps(ModuleOp module, Overlap asked, const OverlapPasses& passes) {
  SmallVector<Overlap> overlaps;
  Overlap overlap = asked;
  while (passes.split && (passes.prefetch || passes.overlap) && overlap.prefetch > 0) {
    --overlap.prefetch;
    overlaps.push_back(overlap);
  }
  overlap.bucket = std::min(overlap.bucket, largestBucket(module));
  while (passes.bucket && overlap.bucket > 0) {
    overlap.bucket = overlap.bucket / 4 > smallestBucket ? overlap.bucket / 4 : 0;
    overlaps.push_back(overlap);
  }
  return overlaps;
}

void scheduleAnew(ModuleOp module, const Overlap& overlap, const OverlapPasses& passes) {
  joinAllHalves(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (passes.bucket)
      bucketCollectives(function, overlap.bucket, /*withRemarks=*/false);
    if (!passes.split)
      continue;
    splitCollectives(function);
    if (passes.prefetch)
      prefetchGathers(function, overlap.prefetch, /*withRemarks=*/false);
    if (passes.overlap)
      overlapReductions(function, overlap.prefetch, /*withRemarks=*/false);
  }
}

void reportLowering(ModuleOp module, const Overlap& asked, const Overlap& chosen) {
  auto say = [&](StringRef key, const std::string& from, const std::string& to) {
    if (from != to)
      remark::passed(module.getLoc(), remark::RemarkOpts::name("fit-memory").category("schedule"))
          << remark::add("memory.limit lowers {0} from {1} to {2}", key, from, to);
  };
  say("mesh.prefetch", std::to_string(asked.prefetch), std::to_string(chosen.prefetch));
  say("mesh.bucket", readableBytes(asked.bucket), readableBytes(chosen.bucket));
}

} // namespace titan::schedule
