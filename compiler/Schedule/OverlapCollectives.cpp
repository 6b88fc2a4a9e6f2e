#include "compiler/Schedule/OverlapCollectives.h"

#include "compiler/Schedule/OpCosts.h"
#include "dialects/Accum/Accum.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace titan::schedule {

/// FLOP of what stands from `begin` on, before `end`.
static int64_t flopsIn(Block::iterator begin, Block::iterator end) {
  int64_t flops = 0;
  for (Operation& op : llvm::make_range(begin, end)) {
    if (auto loop = dyn_cast<accum::LoopOp>(op))
      flops += static_cast<int64_t>(loop.getCount()) *
               flopsIn(loop.getBlock().begin(), loop.getBlock().end());
    else if (isa<ir::TitanDialect>(op.getDialect()))
      flops += flopsOf(&op);
  }
  return flops;
}

void reportOverlap(dist::StartOp start, StringRef name) {
  const int64_t flops = flopsIn(std::next(start->getIterator()), start.getWait()->getIterator());
  int64_t bytes = 0;
  for (Value in : start.getIns())
    bytes += bytesOf(in.getType());
  const std::string what = llvm::formatv(
      "{0} of {1} over {2}", dist::stringifyCollective(start.getCollective()),
      ir::pathString(start), llvm::join(start.getAxes().getAsValueRange<StringAttr>(), ", "));
  const auto options = remark::RemarkOpts::name(name).category("schedule");
  if (flops > 0)
    remark::passed(start.getLoc(), options)
        << remark::add("{0} is under way while others compute", what)
        << remark::metric("Bytes", bytes) << remark::metric("Flop", flops);
  else
    remark::missed(start.getLoc(), options)
        << remark::add("{0}: nothing is computed while it is under way", what)
        << remark::metric("Bytes", bytes);
}

} // namespace titan::schedule
