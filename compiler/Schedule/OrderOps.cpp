// titan-schedule-order-ops: the order of ops in which values live shortest.
#include "compiler/Schedule/OpCosts.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/BlockOrder.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/TargetInfo.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_ORDEROPS
#include "compiler/Schedule/Passes.h.inc"

namespace {

class Orderer {
public:
  Orderer(Block& block, const MachineModel& machine)
      : block(block), machine(machine), rewriter(block.getParentOp()->getContext(), &order) {}

  void run() {
    hoistGradients();
    hoistSums();
    hoistNorms();
    sinkCheapProducers();
  }

private:
  Block& block;
  const MachineModel& machine;
  BlockOrder order;
  IRRewriter rewriter;
  llvm::DenseMap<Operation*, Operation*> lastBehind; ///< what was placed behind an op last

  /// The last op of the block among those that `op` reads; null: it reads none.
  Operation* lastOperand(Operation* op) {
    Operation* last = nullptr;
    for (Value operand : op->getOperands())
      if (Operation* source = operand.getDefiningOp();
          source && source->getBlock() == &block && !isa<ir::ConstantOp>(source))
        if (!last || order.isBefore(last, source))
          last = source;
    return last;
  }

  void placeBehind(Operation* op, Operation* anchor) {
    Operation* after = anchor;
    // Several that wait for one op keep their order.
    for (auto found = lastBehind.find(after); found != lastBehind.end();
         found = lastBehind.find(after))
      after = found->second;
    if (order.isBefore(op, after) || after == op)
      return;
    rewriter.moveOpAfter(op, after);
    // Constants have no place in time, but stand before their readers.
    for (Value operand : op->getOperands())
      if (Operation* source = operand.getDefiningOp();
          source && source->getBlock() == &block && order.isBefore(op, source))
        rewriter.moveOpBefore(source, op);
    lastBehind[after] = op;
  }

  /// Is `op` a cast or a sum of gradients, or what pads one for its sum over ranks?
  static bool followsGradient(Operation* op) {
    return schedule::isPointwise(op) ||
           (isa<ir::PadOp>(op) && llvm::all_of(op->getUsers(), isCollective));
  }

  /// Is what `op` makes read only after the backward pass: by the update, or as what the block
  /// yields?
  bool isGradient(Operation* op) {
    if (ir::getPhase(op) != ir::Phase::Backward || op->use_empty())
      return false;
    auto isLate = [&](Operation* user) {
      if (user->getBlock() != &block)
        return false;
      // A sum or cast of it is the same gradient; other ranks get it when all is done.
      return user->hasTrait<OpTrait::IsTerminator>() || isCollective(user) ||
             ir::getPhase(user) == ir::Phase::Update ||
             (gradients.contains(user) && followsGradient(user));
    };
    return llvm::all_of(op->getUsers(), isLate);
  }
  llvm::DenseSet<Operation*> gradients;

  /// A weight's gradient is computed as soon as its factors exist: afterwards nobody may need them.
  void hoistGradients() {
    SmallVector<Operation*> ordered;
    for (Operation& op : llvm::reverse(block))
      if (isGradient(&op)) {
        gradients.insert(&op);
        ordered.push_back(&op);
      }
    // Reductions share a kernel with what else reads their operand, and stay where they are; an
    // addition or cast follows its product.
    llvm::DenseSet<Operation*> moved;
    for (Operation* op : llvm::reverse(ordered)) {
      Operation* anchor = lastOperand(op);
      bool isProduct = isa<ir::AccumulatingOpInterface>(op);
      if (anchor && (isProduct || (followsGradient(op) && moved.contains(anchor)))) {
        placeBehind(op, anchor);
        moved.insert(op);
      }
    }
  }

  /// A gradient of which each rank keeps a part is summed as soon as it exists, each by itself:
  /// then the whole can go. What adds the part to an accumulator follows.
  void hoistSums() {
    for (auto bucket : llvm::make_early_inc_range(block.getOps<dist::ReduceScatterOp>())) {
      if (ir::getPhase(bucket) != ir::Phase::Backward)
        continue;
      for (Operation* sum : separate(rewriter, bucket)) {
        if (Operation* gradient = lastOperand(sum))
          placeBehind(sum, gradient);
        for (Operation* user : llvm::to_vector(sum->getUsers()))
          if (user->getBlock() == &block && schedule::isPointwise(user) &&
              ir::getPhase(user) == ir::Phase::Backward && lastOperand(user) == sum)
            placeBehind(user, sum);
      }
    }
  }

  /// A large gradient's sum of squares is taken while the gradient is in the cache. It reads no
  /// state, so it may stand before the update. A small gradient costs nothing to read again, and
  /// its norm shares a launch with others.
  void hoistNorms() {
    SmallVector<ir::ReduceOp> reductions;
    for (auto reduce : block.getOps<ir::ReduceOp>())
      if (ir::getPhase(reduce) == ir::Phase::Update &&
          schedule::bytesOf(reduce.getOperand().getType()) >= machine.largeGradientBytes)
        reductions.push_back(reduce);
    for (ir::ReduceOp reduce : reductions) {
      Operation* square = reduce.getOperand().getDefiningOp();
      if (!square || square->getBlock() != &block || !schedule::isPointwise(square) ||
          !square->hasOneUse() || ir::getPhase(square) != ir::Phase::Update)
        continue;
      Operation* gradient = lastOperand(square);
      if (!gradient || isa<accum::LoopOp>(gradient) || ir::getPhase(gradient) == ir::Phase::Update)
        continue;
      placeBehind(square, gradient);
      ir::setPhase(square, ir::Phase::Backward);
      rewriter.moveOpAfter(reduce, square);
      lastBehind[square] = reduce;
      ir::setPhase(reduce, ir::Phase::Backward);
    }
  }

  /// A cast or broadcast of what lives anyway stands where it is first read.
  void sinkCheapProducers() {
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (!schedule::isPointwise(&op) || op.use_empty() || lastOperand(&op))
        continue;
      Operation* first = nullptr;
      for (Operation* user : op.getUsers()) {
        Operation* ancestor = block.findAncestorOpInBlock(*user);
        if (ancestor && (!first || order.isBefore(ancestor, first)))
          first = ancestor;
      }
      if (first && ir::getPhase(&op) == ir::getPhase(first))
        rewriter.moveOpBefore(&op, first);
    }
  }
};

struct OrderOps : impl::OrderOpsBase<OrderOps> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(ir::function::step);
    if (!step || step.isDeclaration())
      return;
    FailureOr<MachineModel> machine = getMachine(getOperation());
    if (failed(machine))
      return signalPassFailure();
    Orderer(step.getBody().front(), *machine).run();
    step.walk([&](accum::LoopOp loop) { Orderer(loop.getBlock(), *machine).run(); });
  }
};

} // namespace

} // namespace titan
