#include "compiler/Support/Collectives.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan {

bool isCollective(Operation* op) {
  return isa<dist::StartOp, dist::WaitOp>(op) || dist::isWholeCollective(op);
}

bool gathersForReaders(Operation* op) {
  auto start = dyn_cast<dist::StartOp>(op);
  const bool gathers =
      start ? start.getCollective() == dist::Collective::AllGather : isa<dist::AllGatherOp>(op);
  return gathers && ir::getPhase(op) != ir::Phase::Update;
}

namespace {

/// What a collective says of itself besides its tensors.
struct Description {
  dist::Collective kind;
  ArrayAttr axes;
  DenseI64ArrayAttr dims = {};
  dist::OrderAttr order = {};
  ArrayAttr path = {};
  ir::PhaseAttr phase = {};
};

Description describe(Operation* op) {
  Description description =
      TypeSwitch<Operation*, Description>(op)
          .Case([](dist::AllGatherOp gather) {
            return Description{dist::Collective::AllGather, gather.getAxesAttr(),
                               gather.getDimsAttr()};
          })
          .Case([](dist::ReduceScatterOp reduce) {
            return Description{dist::Collective::ReduceScatter, reduce.getAxesAttr(),
                               reduce.getDimsAttr(), reduce.getOrderAttr()};
          })
          .Case([](dist::AllReduceOp reduce) {
            return Description{
                dist::Collective::AllReduce, reduce.getAxesAttr(), {}, reduce.getOrderAttr()};
          })
          .Case([](dist::StartOp start) {
            return Description{start.getCollective(), start.getAxesAttr(), start.getDimsAttr(),
                               start.getOrderAttr()};
          });
  description.path = op->getAttrOfType<ArrayAttr>("path");
  description.phase = op->getAttrOfType<ir::PhaseAttr>("phase");
  return description;
}

Operation* createWhole(OpBuilder& builder, Location loc, const Description& description,
                       TypeRange results, ValueRange operands) {
  switch (description.kind) {
  case dist::Collective::AllGather:
    return dist::AllGatherOp::create(builder, loc, results, operands, description.dims,
                                     description.axes, description.path, description.phase);
  case dist::Collective::ReduceScatter:
    return dist::ReduceScatterOp::create(builder, loc, results, operands, description.dims,
                                         description.order, description.axes, description.path,
                                         description.phase);
  case dist::Collective::AllReduce:
    return dist::AllReduceOp::create(builder, loc, results, operands, description.order,
                                     description.axes, description.path, description.phase);
  }
  llvm_unreachable("a kind of collective without an op");
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
  const auto [kind, axes, dims, order, path, phase] = describe(op);
  auto start = dist::StartOp::create(builder, loc, dist::TokenType::get(op->getContext()),
                                     op->getOperands(), outs, kind, axes, dims, order, path, phase);
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

Operation* joinHalves(dist::StartOp start) {
  dist::WaitOp wait = start.getWait();
  OpBuilder builder(wait);
  Operation* whole =
      createWhole(builder, start.getLoc(), describe(start), wait.getResultTypes(), start.getIns());
  wait.replaceAllUsesWith(whole->getResults());
  const SmallVector<Value> outs(start.getOuts());
  wait.erase();
  start.erase();
  for (Value out : outs)
    if (auto empty = out.getDefiningOp<kernel::EmptyOp>(); empty && empty->use_empty())
      empty.erase();
  return whole;
}

void joinAllHalves(Operation* root) {
  SmallVector<dist::StartOp> starts;
  root->walk([&](dist::StartOp start) { starts.push_back(start); });
  llvm::for_each(starts, joinHalves);
}

SmallVector<Operation*> separate(RewriterBase& rewriter, Operation* bucket) {
  if (bucket->getNumResults() == 1)
    return {bucket};
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(bucket);
  const Description all = describe(bucket);
  const bool hasNames = all.path && all.path.size() == bucket->getNumResults();
  SmallVector<Operation*> singles;
  for (auto [i, operand, result] : llvm::enumerate(bucket->getOperands(), bucket->getResults())) {
    Description one = all;
    if (all.dims)
      one.dims = rewriter.getDenseI64ArrayAttr(all.dims[i]);
    if (hasNames)
      one.path = rewriter.getArrayAttr(all.path[i]);
    singles.push_back(createWhole(rewriter, bucket->getLoc(), one, TypeRange(result.getType()),
                                  ValueRange(operand)));
    rewriter.replaceAllUsesWith(result, singles.back()->getResult(0));
  }
  rewriter.eraseOp(bucket);
  return singles;
}

Operation* joinInBucket(ArrayRef<Operation*> collectives, Operation* place) {
  if (collectives.size() == 1)
    return collectives.front();
  SmallVector<Value> operands;
  SmallVector<Type> types;
  SmallVector<int64_t> dims;
  SmallVector<Attribute> path;
  Description bucket = describe(place);
  for (Operation* op : collectives) {
    llvm::append_range(operands, op->getOperands());
    llvm::append_range(types, op->getResultTypes());
    const Description each = describe(op);
    if (each.dims)
      llvm::append_range(dims, each.dims.asArrayRef());
    if (each.path)
      llvm::append_range(path, each.path);
  }
  OpBuilder builder(place);
  if (bucket.dims)
    bucket.dims = builder.getDenseI64ArrayAttr(dims);
  bucket.path = path.empty() ? ArrayAttr() : builder.getArrayAttr(path);
  Operation* joined = createWhole(builder, place->getLoc(), bucket, types, operands);
  ResultRange results = joined->getResults();
  for (Operation* op : collectives) {
    op->replaceAllUsesWith(results.take_front(op->getNumResults()));
    results = results.drop_front(op->getNumResults());
    op->erase();
  }
  return joined;
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
