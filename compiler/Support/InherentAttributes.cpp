#include "compiler/Support/InherentAttributes.h"

using namespace mlir;

namespace titan {

void forEachInherentAttribute(Operation* op,
                              llvm::function_ref<void(StringAttr, Attribute)> visit) {
  // Properties that are no attributes have no name here, or take another size.
  ArrayRef<StringAttr> names = op->getName().getAttributeNames();
  if (op->getPropertiesStorageSize() == static_cast<int>(names.size() * sizeof(Attribute))) {
    for (StringAttr name : names)
      if (Attribute value = op->getInherentAttr(name).value_or(Attribute()))
        visit(name, value);
    return;
  }
  NamedAttrList attributes;
  op->getName().populateInherentAttrs(op, attributes);
  for (NamedAttribute attribute : attributes)
    visit(attribute.getName(), attribute.getValue());
}

void forEachMeaningAttribute(Operation* op, llvm::function_ref<void(StringAttr, Attribute)> visit) {
  auto visitMeaning = [&](StringAttr name, Attribute value) {
    if (name != "path" && name != "phase")
      visit(name, value);
  };
  forEachInherentAttribute(op, visitMeaning);
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    visitMeaning(attribute.getName(), attribute.getValue());
}

} // namespace titan
