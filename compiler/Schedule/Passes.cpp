#include "compiler/Schedule/Passes.h"

using namespace mlir;

namespace titan {

void addSchedulePasses(OpPassManager& passes, MeasurePlan measure, ArrayRef<std::string> disabled) {
  // First, so that everything behind sees one sequence of ops with exact lifetimes.
  passes.addPass(createInlineSingleIteration());
  // What an order can save need not be recomputed.
  passes.addPass(createOrderOps());
  // The last iteration in the order of its loop, with the sums over ranks behind it.
  passes.addPass(createPeelLastMicrobatch());
  // Ops on tensors need no rule for what may pass a start or a wait: halves come when the order of
  // whole ops stands.
  passes.addPass(createBucketCollectives());
  passes.addPass(createSplitCollectives());
  passes.addPass(createPrefetchGathers());
  passes.addPass(createOverlapReductions());
  // Last: what it measures has all that is live between the halves.
  passes.addPass(createFitMemory(std::move(measure), disabled));
  // Nothing moves from here on, and *lower* is to keep it so.
  passes.addPass(createNoteProducts());
  passes.addPass(createVerifySchedule());
}

} // namespace titan
