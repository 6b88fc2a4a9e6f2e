#include "compiler/Support/KernelKey.h"

#include "compiler/Support/InherentAttributes.h"

using namespace mlir;

namespace titan {

void KeyBuilder::addTypes(TypeRange types) {
  add(types.size());
  for (Type type : types)
    add(type);
}

void KeyBuilder::addAttributes(Operation* op) {
  forEachInherentAttribute(op, [&](StringAttr name, Attribute value) {
    add(name);
    add(value);
  });
  add(op->getDiscardableAttrDictionary());
}

void KeyBuilder::addKernel(kernel::FusedOp op) {
  add(op.getSpaceAttr());
  add(op.getMaps());
  addTypes(op.getIns().getTypes());
  addTypes(op.getOuts().getTypes());
  add(op.getScalars().size());
  llvm::DenseMap<Value, unsigned> numbers;
  for (BlockArgument argument : op.getBlock().getArguments())
    numbers.try_emplace(argument, numbers.size());
  for (Operation& inner : op.getBlock()) {
    add(inner.getName());
    addAttributes(&inner);
    add(inner.getNumOperands());
    for (Value operand : inner.getOperands())
      add(numbers.lookup(operand));
    addTypes(inner.getResultTypes());
    for (Value result : inner.getResults())
      numbers.try_emplace(result, numbers.size());
  }
}

} // namespace titan
