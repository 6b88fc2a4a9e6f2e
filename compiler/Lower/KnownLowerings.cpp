#include "compiler/Lower/KnownLowerings.h"

#include "compiler/Support/InherentAttributes.h"
#include "compiler/Support/KernelKey.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// What is computed by ops, the last of which is the result.
struct Computation {
  KeyBuilder key;              ///< equal for those of which the same comes
  SmallVector<Value> operands; ///< that none of the ops gives

  explicit Computation(ArrayRef<Operation*> ops) {
    llvm::SmallDenseMap<Value, unsigned, 16> numbers; // one value may be several operands
    for (Operation* op : ops) {
      key.add(op->getName());
      forEachMeaningAttribute(op, [&](StringAttr name, Attribute value) {
        key.add(name);
        key.add(value);
      });
      key.addTypes(op->getResultTypes());
      for (Value operand : op->getOperands()) {
        auto [known, isNew] = numbers.try_emplace(operand, numbers.size());
        key.add(operand.getType());
        key.add(known->second);
        if (isNew)
          operands.push_back(operand);
      }
      for (Value result : op->getResults())
        numbers.try_emplace(result, numbers.size());
    }
  }
};

/// Puts a command where the op of `lowering` is in the model.
void place(Operation* command, const LoweringBuilder& lowering) {
  command->walk([&](Operation* inner) { inner->setLoc(lowering.loc); });
  llvm::TypeSwitch<Operation*>(command).Case<kernel::FusedOp, kernel::CallOp>([&](auto placed) {
    placed.setPathAttr(lowering.path);
    placed.setPhaseAttr(lowering.phase);
  });
}

} // namespace

bool KnownLowerings::Lowering::fits(ValueRange others, const LoweringBuilder& lowering) const {
  return fixed.empty() ||
         (lowering.op->getBlock() == block && lowering.phase == phase &&
          llvm::all_of(fixed, [&](unsigned i) { return others[i] == operands[i]; }));
}

void KnownLowerings::Lowering::copyTo(ValueRange others, LoweringBuilder& lowering) const {
  IRMapping copies;
  copies.map(ValueRange(operands), others);
  for (Operation* original : ops)
    place(lowering.builder.clone(*original, copies), lowering);
  SmallVector<Value> replacement;
  for (Value result : results)
    replacement.push_back(copies.lookupOrDefault(result));
  lowering.replace(replacement);
}

LogicalResult KnownLowerings::replace(ArrayRef<Operation*> ops, LoweringBuilder& lowering,
                                      function_ref<LogicalResult()> lower) {
  Operation* op = ops.back();
  Computation computation(ops);
  SmallVector<Lowering, 1>& equal = known_[computation.key.str()];
  for (const Lowering& known : equal)
    if (known.fits(computation.operands, lowering)) {
      known.copyTo(computation.operands, lowering);
      return success();
    }
  const bool hasRegions = op->getNumRegions() != 0;
  Lowering known;
  known.operands = std::move(computation.operands);
  known.block = op->getBlock();
  known.phase = lowering.phase;
  Operation* before = op->getPrevNode();
  const Block::iterator end = std::next(op->getIterator());
  if (failed(lower()))
    return failure();
  if (!lowering.isDecidedByOp || hasRegions)
    return success();
  for (auto [i, operand] : llvm::enumerate(known.operands))
    if (llvm::is_contained(lowering.sharedInputs, operand))
      known.fixed.push_back(i);
  llvm::DenseSet<Value> values(llvm::from_range, known.operands);
  values.insert_range(lowering.sharedResults);
  for (Operation& made :
       llvm::make_range(before ? std::next(before->getIterator()) : known.block->begin(), end)) {
    if (!llvm::all_of(made.getOperands(), [&](Value value) { return values.contains(value); }))
      return success();
    values.insert_range(made.getResults());
    known.ops.push_back(&made);
  }
  if (llvm::all_of(results_, [&](Value value) { return values.contains(value); })) {
    known.results = results_;
    equal.push_back(std::move(known));
  }
  return success();
}

} // namespace titan::lower
