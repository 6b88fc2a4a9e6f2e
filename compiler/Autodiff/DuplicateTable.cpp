#include "compiler/Autodiff/DuplicateTable.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace titan::autodiff {

/// The attributes of `op` but those that say where it comes from.
static DictionaryAttr meaningOf(Operation* op) {
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase("path");
  attributes.erase("phase");
  return attributes.getDictionary(op->getContext());
}

uint64_t DuplicateTable::hashOf(Operation* op) {
  SmallVector<Value> operands(op->getOperands());
  return static_cast<size_t>(llvm::hash_combine(
      op->getName(), meaningOf(op), llvm::hash_combine_range(operands.begin(), operands.end())));
}

Operation* DuplicateTable::firstLike(Operation* op, uint64_t hash) {
  DictionaryAttr meaning = meaningOf(op);
  auto& bucket = seen_[hash];
  for (const Entry& entry : bucket)
    if (entry.op->getName() == op->getName() && entry.meaning == meaning &&
        llvm::equal(entry.op->getOperands(), op->getOperands()) &&
        entry.op->getResultTypes() == op->getResultTypes())
      return entry.op;
  bucket.push_back({op, meaning});
  return op;
}

} // namespace titan::autodiff
