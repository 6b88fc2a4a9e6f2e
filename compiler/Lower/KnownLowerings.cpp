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

/// Where in the model an op is.
struct Place {
  explicit Place(Operation* op)
      : loc(op->getLoc()), path(op->getAttrOfType<ArrayAttr>("path")),
        phase(op->getAttrOfType<ir::PhaseAttr>("phase")) {}
  Location loc;
  ArrayAttr path;
  ir::PhaseAttr phase;

  void give(Operation* copy) const {
    copy->walk([&](Operation* inner) { inner->setLoc(loc); });
    llvm::TypeSwitch<Operation*>(copy).Case<kernel::FusedOp, kernel::CallOp>([&](auto command) {
      command.setPathAttr(path);
      command.setPhaseAttr(phase);
    });
  }
};

} // namespace

bool KnownLowerings::replaceAsBefore(RewriterBase& rewriter, Operation* op) {
  auto found = known_.find(keyOf(op).str());
  if (found == known_.end())
    return false;
  const Lowering& known = found->second;
  IRMapping copies;
  copies.map(ValueRange(known.operands), op->getOperands());
  rewriter.setInsertionPoint(op);
  const Place place(op);
  for (Operation* original : known.ops)
    place.give(rewriter.clone(*original, copies));
  SmallVector<Value> results;
  for (Value result : known.results)
    results.push_back(copies.lookup(result));
  rewriter.replaceOp(op, results);
  return true;
}

LogicalResult KnownLowerings::replaceBy(Operation* op, llvm::function_ref<LogicalResult()> rule,
                                        const bool& isDecidedByOp) {
  const std::string key = keyOf(op).str().str();
  Lowering lowering;
  lowering.operands.assign(op->operand_begin(), op->operand_end());
  const bool hasRegions = op->getNumRegions() != 0;
  Block* block = op->getBlock();
  Operation* before = op->getPrevNode();
  const Block::iterator end = std::next(op->getIterator());
  if (failed(rule()))
    return failure();
  if (!isDecidedByOp || hasRegions)
    return success();
  llvm::DenseSet<Value> values(llvm::from_range, lowering.operands);
  for (Operation& made :
       llvm::make_range(before ? std::next(before->getIterator()) : block->begin(), end)) {
    if (!llvm::all_of(made.getOperands(), [&](Value value) { return values.contains(value); }))
      return success();
    values.insert(made.result_begin(), made.result_end());
    lowering.ops.push_back(&made);
  }
  if (llvm::all_of(results_, [&](Value value) { return values.contains(value); })) {
    lowering.results = results_;
    known_.try_emplace(key, std::move(lowering));
  }
  return success();
}

} // namespace titan::lower
