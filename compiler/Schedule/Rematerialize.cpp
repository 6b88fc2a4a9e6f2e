// titan-schedule-rematerialize: computes values again in the backward pass.
#include "compiler/Schedule/Rematerialize.h"

#include "compiler/Schedule/OpCosts.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/TargetInfo.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_REMATERIALIZE
#include "compiler/Schedule/Passes.h.inc"

namespace schedule {

namespace {

class Rematerializer {
public:
  Rematerializer(const MemoryModel& model, const Recomputation& choice) {
    for (auto [id, storage] : llvm::enumerate(model.storages())) {
      if (choice.evicted[id]) {
        Value value = storage.value;
        again.insert(value);
        blocks.insert(value.getParentBlock());
      }
      if (choice.evicted[id] || storage.isPassing)
        chained.insert(storage.value);
    }
  }

  void run() {
    for (Block* block : blocks)
      run(*block);
  }

private:
  llvm::DenseSet<Value> again;   ///< evicted, or computed inside of their readers from such
  llvm::DenseSet<Value> chained; ///< what a chain that reads it computes too
  llvm::DenseMap<Value, Value> clones;
  llvm::SetVector<Block*> blocks; ///< of the values: a loop's, and that of an iteration behind it
  int64_t barriers = 0;

  void run(Block& block) {
    // Before there are clones: they would be readers too.
    for (Operation& op : block)
      if (ir::getPhase(&op) == ir::Phase::Forward && isVirtual(&op))
        for (auto* set : {&again, &chained})
          if (llvm::any_of(op.getOperands(), [&](Value operand) { return set->contains(operand); }))
            set->insert_range(op.getResults());
    for (Operation& op : llvm::make_early_inc_range(block)) {
      if (ir::getPhase(&op) == ir::Phase::Forward || op.hasTrait<OpTrait::IsTerminator>())
        continue;
      OpBuilder builder(&op);
      for (OpOperand& operand : op.getOpOperands())
        if (again.contains(operand.get()))
          operand.set(clone(operand.get(), builder));
    }
  }

  Value clone(Value value, OpBuilder& builder) {
    if (Value found = clones.lookup(value))
      return found;
    Operation* op = value.getDefiningOp();
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (chained.contains(operand))
        mapping.map(operand, clone(operand, builder));
    // The start of a chain reads what an equal op reads, and would be merged with it.
    if (mapping.getValueMap().empty())
      if (Value operand = chooseStart(op)) {
        auto barrier = ir::BarrierOp::create(
            builder, op->getLoc(), TypeRange(operand.getType()), ValueRange(operand),
            builder.getI64IntegerAttr(nextBarrier()), ir::getPath(op), ir::PhaseAttr());
        ir::setPhase(barrier, ir::Phase::Backward);
        mapping.map(operand, barrier.getResult(0));
      }
    Operation* copy = builder.clone(*op, mapping);
    ir::setPhase(copy, ir::Phase::Backward);
    for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
      clones[from] = to;
    return clones[value];
  }

  static Value chooseStart(Operation* op) {
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && !operand.getDefiningOp<ir::ConstantOp>())
        return operand;
    return {};
  }

  int64_t nextBarrier() {
    if (barriers == 0)
      step()->walk([&](ir::BarrierOp barrier) {
        barriers = std::max<int64_t>(barriers, barrier.getId() + 1);
      });
    return barriers++;
  }

  Operation* step() {
    Operation* op = blocks.front()->getParentOp();
    auto function = dyn_cast<func::FuncOp>(op);
    return function ? function : op->getParentOfType<func::FuncOp>();
  }
};

void report(const MemoryModel& model, const Recomputation& choice) {
  for (auto step : choice.timeline.steps) {
    if (!step.isRecomputed)
      continue;
    Operation* op = model.opOf(step.node);
    int64_t bytes = 0;
    for (int id : choice.evicted.set_bits())
      if (model.storages()[id].node == step.node)
        bytes += model.storages()[id].bytes;
    remark::passed(op->getLoc(), remark::RemarkOpts::name("rematerialize").category("schedule"))
        << remark::add("'{0}' computes {1} again in the backward pass", ir::describePlace(op),
                       op->getName().stripDialect().str())
        << remark::metric("Bytes", bytes) << remark::metric("Flop", flopsOf(op));
  }
}

} // namespace

void rematerialize(const MemoryModel& model, const Recomputation& choice, bool withRemarks) {
  if (withRemarks)
    report(model, choice);
  Rematerializer(model, choice).run();
}

} // namespace schedule

namespace {

struct Rematerialize : impl::RematerializeBase<Rematerialize> {
  using RematerializeBase::RematerializeBase;

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(ir::function::step);
    if (!step || step.isDeclaration() || target <= 0)
      return;
    FailureOr<MachineModel> machine = getMachine(getOperation());
    if (failed(machine))
      return signalPassFailure();
    schedule::MemoryModel model(step, *machine);
    schedule::rematerialize(model, schedule::chooseRecomputation(model, target), true);
  }
};

} // namespace

} // namespace titan
