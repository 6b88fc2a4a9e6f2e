// titan-plan-reuse-in-place: a kernel writes over an input that dies there.
#include "compiler/Memory/Liveness.h"
#include "compiler/Memory/Passes.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_REUSEINPLACE
#include "compiler/Memory/Passes.h.inc"

namespace {

using memory::rootOf;

/// First and last command that use a buffer; live ranges of the plan, kept up to date while buffers
/// merge.
using Ranges = llvm::MapVector<kernel::BufferOp, memory::LiveRange>;

struct ReuseInPlace : impl::ReuseInPlaceBase<ReuseInPlace> {
  void runOnOperation() override {
    Ranges ranges = memory::computeLiveRanges(getOperation());
    for (auto [number, command] : llvm::enumerate(memory::listCommands(getOperation())))
      if (auto fused = command.kind == memory::Command::Kind::Run
                           ? dyn_cast<kernel::FusedOp>(command.op)
                           : nullptr)
        reuse(fused, number, ranges);
  }

  void reuse(kernel::FusedOp op, uint32_t number, Ranges& ranges) {
    for (unsigned j = 0; j < op.getOuts().size(); ++j) {
      auto target = op.getOuts()[j].getDefiningOp<kernel::BufferOp>();
      if (!target || target->getBlock() != op->getBlock() || ranges[target].first != number ||
          llvm::count(op.getOuts(), op.getOuts()[j]) != 1)
        continue;
      for (unsigned i = 0; i < op.getIns().size(); ++i) {
        auto source = op.getIns()[i].getDefiningOp<kernel::BufferOp>();
        if (!source || source == target || source->getBlock() != op->getBlock() ||
            ranges[source].last != number || source.getType() != target.getType() ||
            !readsAlike(op, i, j))
          continue;
        ranges[source].last = ranges[target].last;
        ranges.erase(target);
        // Defined earlier than every use of the target, in the same block.
        target.getResult().replaceAllUsesWith(source.getResult());
        target.erase();
        break;
      }
    }
  }

  /// Is ins `i` read only where outs `j` is written, and not written by another out?
  static bool readsAlike(kernel::FusedOp op, unsigned i, unsigned j) {
    Value source = rootOf(op.getIns()[i]);
    for (unsigned k = 0; k < op.getIns().size(); ++k)
      if (rootOf(op.getIns()[k]) == source &&
          (op.getIns()[k] != op.getIns()[i] || !op.walksAlike(k, j)))
        return false;
    return llvm::none_of(op.getOuts(), [&](Value out) { return rootOf(out) == source; });
  }
};

} // namespace
} // namespace titan
