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
/// module (`TaggedStates`), the others strings.
static LogicalResult verifyTag(Operation* op, StringRef where, NamedAttribute attribute,
                               ArrayRef<StringRef> symbols, ArrayRef<StringRef> strings) {
  StringRef name = attribute.getName();
  if (llvm::is_contained(symbols, name)) {
    return isa<FlatSymbolRefAttr>(attribute.getValue())
               ? success()
               : op->emitOpError() << "'" << name << "' of " << where << " is a symbol reference";
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

namespace {

/// The other half of (C1). A lookup by itself walks the module, and a function has as many tags as
/// the module has states: so they are looked up in the one table of a verification.
struct TaggedStates : SymbolUserOpInterface::ExternalModel<TaggedStates, func::FuncOp> {
  LogicalResult verifySymbolUses(Operation* op, SymbolTableCollection& tables) const {
    auto function = cast<func::FuncOp>(op);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (failed(verify(op, tables, "an argument", function.getArgAttrDict(i))))
        return failure();
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (failed(verify(op, tables, "a result", function.getResultAttrDict(i))))
        return failure();
    return success();
  }

private:
  static LogicalResult verify(Operation* op, SymbolTableCollection& tables, StringRef where,
                              DictionaryAttr tags) {
    for (StringRef name : {tag::state, tag::gradient}) {
      auto symbol = tags ? tags.getAs<FlatSymbolRefAttr>(name) : FlatSymbolRefAttr();
      if (symbol && !tables.lookupNearestSymbolFrom<StateOp>(op, symbol))
        return op->emitOpError() << "'" << name << "' of " << where << " is " << symbol
                                 << ", which the module does not declare";
    }
    return success();
  }
};

} // namespace

void attachTaggedStates(MLIRContext* context) {
  func::FuncOp::attachInterface<TaggedStates>(*context);
}

} // namespace titan::ir
