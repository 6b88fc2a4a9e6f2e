// The attributes that the titan dialect hangs on modules, functions, arguments and results.
#include "dialects/Titan/Titan.h"

using namespace mlir;

namespace titan::ir {

LogicalResult TitanDialect::verifyOperationAttribute(Operation* op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == tag::recipe || name == tag::target) {
    if (!isa<ModuleOp>(op) || !isa<DictionaryAttr>(attribute.getValue()))
      return op->emitOpError() << "'" << name << "' is a dictionary on a module";
    return success();
  }
  if (name == tag::model || name == tag::stage)
    return isa<StringAttr>(attribute.getValue())
               ? success()
               : op->emitOpError() << "'" << name << "' is a string";
  if (name == tag::modelFlops) {
    auto flops = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<func::FuncOp>(op) || !flops || !flops.getType().isInteger(64) || flops.getInt() < 0)
      return op->emitOpError() << "'" << name << "' is an i64 on a function, at least 0";
    return success();
  }
  return op->emitOpError() << "'" << name << "' is not an attribute of the titan dialect";
}

/// (C1) of the function tags: `titan.state` and `titan.gradient` are references to states of the
/// module, the others strings.
static LogicalResult verifyTag(Operation* op, StringRef where, NamedAttribute attribute,
                               ArrayRef<StringRef> symbols, ArrayRef<StringRef> strings) {
  StringRef name = attribute.getName();
  if (llvm::is_contained(symbols, name)) {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
    if (!symbol)
      return op->emitOpError() << "'" << name << "' of " << where << " is a symbol reference";
    auto module = op->getParentOfType<ModuleOp>();
    if (module && !module.lookupSymbol<StateOp>(symbol.getAttr()))
      return op->emitOpError() << "'" << name << "' of " << where << " is " << symbol
                               << ", which the module does not declare";
    return success();
  }
  if (llvm::is_contained(strings, name))
    return isa<StringAttr>(attribute.getValue())
               ? success()
               : op->emitOpError() << "'" << name << "' of " << where << " is a string";
  return op->emitOpError() << "'" << name << "' is not a tag of " << where;
}

LogicalResult TitanDialect::verifyRegionArgAttribute(Operation* op, unsigned, unsigned,
                                                     NamedAttribute attribute) {
  // Metrics and outputs are arguments from *plan* on, where results are buffers that the caller
  // owns.
  return verifyTag(op, "an argument", attribute, {tag::state},
                   {tag::input, tag::control, tag::metric, tag::output});
}

LogicalResult TitanDialect::verifyRegionResultAttribute(Operation* op, unsigned, unsigned,
                                                        NamedAttribute attribute) {
  return verifyTag(op, "a result", attribute, {tag::state, tag::gradient},
                   {tag::metric, tag::output});
}

} // namespace titan::ir
