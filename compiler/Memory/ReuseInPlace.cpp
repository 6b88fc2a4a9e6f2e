// titan-plan-reuse-in-place: a command writes over an input that dies there.
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
using Ranges = llvm::DenseMap<kernel::BufferOp, memory::LiveRange>;

struct ReuseInPlace : impl::ReuseInPlaceBase<ReuseInPlace> {
  void runOnOperation() override {
    Ranges ranges(llvm::from_range, memory::computeLiveRanges(getOperation()));
    for (auto [number, command] : llvm::enumerate(memory::listCommands(getOperation())))
      if (command.kind == memory::Command::Kind::Run)
        reuse(cast<kernel::CommandLikeOpInterface>(command.op), number, ranges);
  }

  void reuse(kernel::CommandLikeOpInterface op, uint32_t number, Ranges& ranges) {
    SmallVector<OpOperand*> reads = op.getReads(), writes = op.getWrites();
    for (OpOperand* write : writes) {
      auto target = write->get().getDefiningOp<kernel::BufferOp>();
      if (!target || target->getBlock() != op->getBlock() || ranges[target].first != number ||
          llvm::count_if(writes, [&](OpOperand* w) { return w->get() == write->get(); }) != 1)
        continue;
      for (OpOperand* read : reads) {
        auto source = read->get().getDefiningOp<kernel::BufferOp>();
        if (!source || source == target || source->getBlock() != op->getBlock() ||
            ranges[source].last != number || source.getType() != target.getType() ||
            memory::isSource(source) != memory::isSource(target) || !readsAlike(op, *read, *write))
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

  /// Is `read` read only where `write` is written, and not written by another?
  static bool readsAlike(kernel::CommandLikeOpInterface op, OpOperand& read, OpOperand& write) {
    Value source = rootOf(read.get());
    for (OpOperand* other : op.getReads())
      if (rootOf(other->get()) == source &&
          (other->get() != read.get() || !op.walksAlike(*other, write)))
        return false;
    return llvm::none_of(op.getWrites(),
                         [&](OpOperand* other) { return rootOf(other->get()) == source; });
  }
};

} // namespace
} // namespace titan
