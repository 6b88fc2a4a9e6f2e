#include "compiler/Lower/KnownLowerings.h"

#include "compiler/Support/InherentAttributes.h"
#include "compiler/Support/KernelKey.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// Equal for ops of which the same comes.
KeyBuilder keyOf(Operation* op) {
  KeyBuilder key;
  key.add(op->getName());
  forEachMeaningAttribute(op, [&](StringAttr name, Attribute value) {
    key.add(name);
    key.add(value);
  });
  key.addTypes(op->getResultTypes());
  llvm::SmallDenseMap<Value, unsigned, 8> numbers; // one value may be several operands
  for (Value operand : op->getOperands()) {
    key.add(operand.getType());
    key.add(numbers.try_emplace(operand, numbers.size()).first->second);
  }
  return key;
}

/// Puts a command where the op of `lowering` is in the model.
void place(Operation* command, const LoweringBuilder& lowering) {
  command->walk([&](Operation* inner) { inner->setLoc(lowering.loc); });
  llvm::TypeSwitch<Operation*>(command).Case<kernel::FusedOp, kernel::CallOp>([&](auto placed) {
    placed.setPathAttr(lowering.path);
    placed.setPhaseAttr(lowering.phase);
  });
}

} // namespace

bool KnownLowerings::Lowering::fits(const LoweringBuilder& lowering) const {
  Operation* op = lowering.op;
  return fixed.empty() || (op->getBlock() == block && lowering.phase == phase &&
                           llvm::all_of(fixed, [&](unsigned operand) {
                             return op->getOperand(operand) == operands[operand];
                           }));
}

void KnownLowerings::Lowering::copyTo(LoweringBuilder& lowering) const {
  IRMapping copies;
  copies.map(ValueRange(operands), lowering.op->getOperands());
  for (Operation* original : ops)
    place(lowering.builder.clone(*original, copies), lowering);
  SmallVector<Value> replacement;
  for (Value result : results)
    replacement.push_back(copies.lookupOrDefault(result));
  lowering.replace(replacement);
}

LogicalResult KnownLowerings::replace(ir::LowerableOpInterface op, LoweringBuilder& lowering) {
  SmallVector<Lowering, 1>& equal = known_[keyOf(op).str()];
  for (const Lowering& known : equal)
    if (known.fits(lowering)) {
      known.copyTo(lowering);
      return success();
    }
  const bool hasRegions = op->getNumRegions() != 0;
  Lowering known;
  known.operands.assign(op->operand_begin(), op->operand_end());
  known.block = op->getBlock();
  known.phase = lowering.phase;
  Operation* before = op->getPrevNode();
  const Block::iterator end = std::next(op->getIterator());
  if (failed(op.lower(lowering)))
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
