#include "compiler/Schedule/MemoryModel.h"

#include "compiler/Schedule/OpCosts.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/LoopChain.h"

using namespace mlir;

namespace titan::schedule {

namespace {

/// Does a kernel of its own read `use`, which cannot compute what it reads?
bool needsBuffer(OpOperand& use) {
  Operation* user = use.getOwner();
  if (isView(user))
    return llvm::any_of(user->getResults(),
                        [](Value result) { return llvm::any_of(result.getUses(), needsBuffer); });
  if (user->hasTrait<OpTrait::IsTerminator>() || isCollective(user))
    return true;
  auto costed = dyn_cast<ir::CostedOpInterface>(user);
  return costed && costed.readsFromMemory(use.getOperandNumber());
}

Value accumulatorOf(Operation* op) {
  auto accumulating = dyn_cast<ir::AccumulatingOpInterface>(op);
  return accumulating ? accumulating.getAcc() : Value();
}

/// May a result of the op take the place of `operand`?
bool mayOverwrite(OpOperand& operand) {
  auto costed = dyn_cast<ir::CostedOpInterface>(operand.getOwner());
  return costed ? costed.mayOverwrite(operand.getOperandNumber())
                : !isCollective(operand.getOwner());
}

/// What an op begins to write: of a collective the start does, and the wait gives it.
ResultRange writtenBy(Operation* op) {
  if (auto start = dyn_cast<dist::StartOp>(op))
    return start.getWait().getResults();
  return isa<dist::WaitOp>(op) ? op->getResults().take_front(0) : op->getResults();
}

/// Has no buffer of its own, and makes none.
bool isOutsideOfMemory(Operation& op) {
  return op.hasTrait<OpTrait::IsTerminator>() ||
         isa<arith::ArithDialect>(op.getDialect()) || // of indices
         isa<dist::CoordinateOp, kernel::EmptyOp>(op);
}

} // namespace

/// What is read through strides alone (heads of attention, where a projection left them) need not
/// be cut out.
static bool isReadStridedOnly(Operation* op) {
  return llvm::all_of(op->getResult(0).getUses(), [](OpOperand& use) {
    auto costed = dyn_cast<ir::CostedOpInterface>(use.getOwner());
    return (costed && costed.readsStrided(use.getOperandNumber())) ||
           (isView(use.getOwner()) && isReadStridedOnly(use.getOwner()));
  });
}

bool isVirtual(Operation* op) {
  if (isView(op))
    return true;
  if (auto slice = dyn_cast<ir::SliceOp>(op))
    return isPartOfBatch(slice) || isReadStridedOnly(op);
  if (!isPointwise(op) || llvm::any_of(op->getResult(0).getUses(), needsBuffer))
    return false;
  // Readers of one phase stand close and share a kernel; what the backward pass reads of the
  // forward pass is stored.
  return op->hasOneUse() || workOf(op) == ir::Work::Copied ||
         llvm::all_of(op->getUsers(),
                      [&](Operation* user) { return ir::getPhase(user) == ir::getPhase(op); });
}

MemoryModel::MemoryModel(func::FuncOp step, const MachineModel& machine) : machine_(machine) {
  addBlock(step.getBody().front(), -1);
  classify();
}

void MemoryModel::addBlock(Block& block, int loop) {
  for (Operation& op : block) {
    if (auto inner = dyn_cast<accum::LoopOp>(op))
      addLoop(inner, loop);
    else if (!isOutsideOfMemory(op))
      addOp(&op, loop);
  }
}

void MemoryModel::addLoop(accum::LoopOp op, int outer) {
  int loop = loops_.size();
  loops_.push_back({outer});
  auto add = [&](Value result) {
    int id = storages_.size();
    storages_.push_back({result, bytesOf(result.getType()), /*node=*/-1, loop});
    return id;
  };
  for (auto [accumulator, init, result] :
       llvm::zip_equal(op.getAccumulators(), op.getInits(), op.getSums())) {
    // An inner loop continues an accumulator of the outer one in its place.
    if (isa<BlockArgument>(init) && reads_.contains(init))
      reads_[result] = SmallVector<int, 2>(reads_[init]);
    else
      reads_[result] = {add(result)};
    reads_[accumulator] = SmallVector<int, 2>(reads_[result]);
  }
  for (Value stack : op.getStacks())
    reads_[stack] = {add(stack)};
  addBlock(op.getBlock(), loop);
}

void MemoryModel::addOp(Operation* op, int loop) {
  llvm::SmallVector<int, 4> reads, kept;
  if (isa<dist::WaitOp>(op)) // until here its results are on their way
    for (Value result : op->getResults())
      llvm::append_range(reads, reads_.lookup(result));
  for (OpOperand& operand : op->getOpOperands())
    for (int id : reads_.lookup(operand.get())) {
      if (!llvm::is_contained(reads, id))
        reads.push_back(id);
      if (!mayOverwrite(operand))
        kept.push_back(id);
    }
  if (isVirtual(op)) {
    for (Value result : op->getResults())
      reads_[result] = SmallVector<int, 2>(reads.begin(), reads.end());
    return;
  }
  Node node{op, reads, {}, {}};
  node.isLate = ir::getPhase(op) != ir::Phase::Forward;
  llvm::copy_if(reads, std::back_inserter(node.overwritable),
                [&](int id) { return !llvm::is_contained(kept, id); });
  node.loop = loop;
  node.cost = costOf(op, machine_);
  node.flops = flopsOf(op);
  int number = nodes_.size();
  for (OpResult result : writtenBy(op)) {
    // What an accumulator or a state takes is written there.
    bool hasPlace = false;
    for (OpOperand& use : result.getUses()) {
      if (isa<func::ReturnOp>(use.getOwner()))
        hasPlace = true;
      if (auto yield = dyn_cast<accum::YieldOp>(use.getOwner())) {
        auto parent = cast<accum::LoopOp>(yield->getParentOp());
        reads_[result] =
            SmallVector<int, 2>(reads_.lookup(parent.getResult(use.getOperandNumber())));
        hasPlace = true;
      }
    }
    // A sum that continues lies where it lay.
    if (Value sum = accumulatorOf(op); sum && !hasPlace) {
      auto found = reads_.find(sum);
      if (found != reads_.end()) {
        reads_[result] = found->second;
        hasPlace = true;
      }
    }
    if (hasPlace)
      continue;
    int id = storages_.size();
    storages_.push_back({result, bytesOf(result.getType()), number});
    reads_[result] = {id};
    node.writes.push_back(id);
  }
  nodes_.push_back(std::move(node));
}

void MemoryModel::classify() {
  llvm::DenseSet<int> readElsewhere; // in a loop around which the op stands: it needs the value
  for (Storage& storage : storages_)
    storage.isPassing =
        storage.node >= 0 && !nodes_[storage.node].isLate && isPure(nodes_[storage.node].op);
  for (Node& node : nodes_)
    for (int id : node.reads) {
      Storage& storage = storages_[id];
      if (storage.node < 0) {
        storage.isGradient = true;
        continue;
      }
      const Node& maker = nodes_[storage.node];
      if (maker.op->getBlock() != node.op->getBlock())
        readElsewhere.insert(id);
      if (node.isLate || maker.op->getBlock() != node.op->getBlock())
        storage.isPassing = false;
      ir::Phase made = ir::getPhase(maker.op), read = ir::getPhase(node.op);
      if (made == ir::Phase::Forward && read == ir::Phase::Backward && isPure(maker.op) &&
          maker.op->getBlock() == node.op->getBlock())
        storage.isRecomputable = true;
      if (made == ir::Phase::Backward && read == ir::Phase::Update)
        storage.isGradient = true;
    }
  for (int id : readElsewhere)
    storages_[id].isRecomputable = false;
}

SmallVector<int> MemoryModel::liveAt(const Timeline& timeline, int step) const {
  const int count = storages_.size();
  SmallVector<int> ids;
  for (int id = 0; id < count; ++id)
    for (int i : {id, count + id})
      if (timeline.first[i] >= 0 && timeline.first[i] <= step && step <= timeline.last[i]) {
        ids.push_back(id);
        break;
      }
  return ids;
}

} // namespace titan::schedule
