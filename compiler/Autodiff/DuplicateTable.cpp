#include "compiler/Autodiff/DuplicateTable.h"

#include "compiler/Support/InherentAttributes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace titan::autodiff {

/// The attributes of `op` but those that say where it comes from.
static SmallVector<Attribute> meaningOf(Operation* op) {
  SmallVector<Attribute> meaning;
  forEachMeaningAttribute(op,
                          [&](StringAttr name, Attribute value) { meaning.append({name, value}); });
  return meaning;
}

uint64_t DuplicateTable::hashOf(Operation* op) {
  SmallVector<Value> operands(op->getOperands());
  return static_cast<size_t>(llvm::hash_combine(
      op->getName(), llvm::hash_combine_range(meaningOf(op)), llvm::hash_combine_range(operands)));
}

Operation* DuplicateTable::firstLike(Operation* op, uint64_t hash) {
  SmallVector<Attribute> meaning = meaningOf(op);
  auto& bucket = seen_[hash];
  for (const Entry& entry : bucket)
    if (entry.op->getName() == op->getName() && entry.meaning == meaning &&
        llvm::equal(entry.op->getOperands(), op->getOperands()) &&
        entry.op->getResultTypes() == op->getResultTypes())
      return entry.op;
  bucket.push_back({op, std::move(meaning)});
  return op;
}

} // namespace titan::autodiff
