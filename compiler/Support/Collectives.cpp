#include "compiler/Support/Collectives.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan {

bool isCollective(Operation* op) {
  return isa<dist::StartOp, dist::WaitOp>(op) || dist::isWholeCollective(op);
}

namespace {

/// What a start says of its collective.
struct Description {
  dist::Collective kind;
  DenseI64ArrayAttr dims = {};
  dist::OrderAttr order = {};
};

Description describe(Operation* op) {
  return TypeSwitch<Operation*, Description>(op)
      .Case([](dist::AllGatherOp gather) {
        return Description{dist::Collective::AllGather, gather.getDimsAttr()};
      })
      .Case([](dist::ReduceScatterOp reduce) {
        return Description{dist::Collective::ReduceScatter, reduce.getDimsAttr(),
                           reduce.getOrderAttr()};
      })
      .Case([](dist::AllReduceOp reduce) {
        return Description{dist::Collective::AllReduce, {}, reduce.getOrderAttr()};
      });
}

/// Does `op` start or await a collective, or hold one that does?
bool holdsCollective(Operation& op) {
  return op
      .walk([](Operation* inner) {
        return isCollective(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

void splitCollective(Operation* op) {
  OpBuilder builder(op);
  const Location loc = op->getLoc();
  SmallVector<Value> outs;
  for (Type type : op->getResultTypes())
    outs.push_back(kernel::EmptyOp::create(builder, loc, type));
  const Description description = describe(op);
  auto path = op->getAttrOfType<ArrayAttr>("path");
  auto phase = op->getAttrOfType<ir::PhaseAttr>("phase");
  auto start =
      dist::StartOp::create(builder, loc, dist::TokenType::get(op->getContext()), op->getOperands(),
                            outs, description.kind, op->getAttrOfType<ArrayAttr>("axes"),
                            description.dims, description.order, path, phase);
  auto wait = dist::WaitOp::create(builder, loc, op->getResultTypes(), start.getToken(),
                                   op->getOperands(), outs, path, phase);
  op->replaceAllUsesWith(wait.getResults());
  op->erase();
}

void splitCollectives(Operation* root) {
  SmallVector<Operation*> collectives;
  root->walk([&](Operation* op) {
    if (dist::isWholeCollective(op))
      collectives.push_back(op);
  });
  llvm::for_each(collectives, splitCollective);
}

SmallVector<dist::ReduceScatterOp> separate(dist::ReduceScatterOp bucket) {
  if (bucket.getNumResults() == 1)
    return {bucket};
  OpBuilder builder(bucket);
  const bool hasNames =
      bucket.getPathAttr() && bucket.getPathAttr().size() == bucket.getNumResults();
  SmallVector<dist::ReduceScatterOp> singles;
  for (auto [i, operand, result, dim] :
       llvm::enumerate(bucket.getOperands(), bucket.getResults(), bucket.getDims())) {
    ArrayAttr path =
        hasNames ? builder.getArrayAttr(bucket.getPathAttr()[i]) : bucket.getPathAttr();
    singles.push_back(dist::ReduceScatterOp::create(
        builder, bucket.getLoc(), TypeRange(result.getType()), ValueRange(operand),
        builder.getDenseI64ArrayAttr(dim), bucket.getOrderAttr(), bucket.getAxesAttr(), path,
        bucket.getPhaseAttr()));
    result.replaceAllUsesWith(singles.back().getResult(0));
  }
  bucket.erase();
  return singles;
}

bool isCollectiveBetween(Operation* first, Operation* second) {
  if (!dist::meshOf(first)) // one rank
    return false;
  // From `second` outwards: what stands before it in its block, then before the loop around it.
  for (Block* block = second->getBlock(); block != first->getBlock(); block = second->getBlock()) {
    for (Operation& op : llvm::make_range(block->begin(), second->getIterator()))
      if (holdsCollective(op))
        return true;
    second = block->getParentOp();
  }
  for (Operation& op : llvm::make_range(std::next(first->getIterator()), second->getIterator()))
    if (holdsCollective(op))
      return true;
  return false;
}

} // namespace titan
