// titan-schedule-split-collectives: from one op to a start and a wait.
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/Collectives.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_SPLITCOLLECTIVES
#include "compiler/Schedule/Passes.h.inc"

namespace {

struct SplitCollectives : impl::SplitCollectivesBase<SplitCollectives> {
  void runOnOperation() override { splitCollectives(getOperation()); }
};

} // namespace

} // namespace titan
