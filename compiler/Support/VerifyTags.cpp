#include "compiler/Support/VerifyTags.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace titan {

func::FuncOp getFunction(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function)
    module.emitError() << "the module has no function @" << name;
  return function;
}

LogicalResult verifyTags(func::FuncOp function, bool returnsStates) {
  const SymbolTable symbols(function->getParentOfType<ModuleOp>());
  TaggedFunction tagged(function);
  const llvm::StringMap<Value> results = tagged.resultsBy(ir::tag::state);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (function.getArgAttr(i, ir::tag::input) || function.getArgAttr(i, ir::tag::control))
      continue;
    Type type = function.getArgumentTypes()[i];
    StringRef name = tagged.argumentTag(i, ir::tag::state);
    if (name.empty())
      return function.emitError() << "argument " << i << " of @" << function.getName()
                                  << " is neither state, input nor control";
    auto state = symbols.lookup<ir::StateOp>(name);
    if (!state || state.getType() != type)
      return function.emitError() << "argument " << i << " of @" << function.getName()
                                  << " has no state @" << name << " of type " << type;
    Value result = results.lookup(name);
    if (returnsStates && (!result || result.getType() != type))
      return function.emitError() << "@" << function.getName() << " takes state @" << name
                                  << " but returns no " << type << " for it";
  }
  const StringRef tags[] = {ir::tag::state, ir::tag::gradient, ir::tag::metric, ir::tag::output};
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (llvm::none_of(tags, [&](StringRef tag) { return bool(function.getResultAttr(i, tag)); }))
      return function.emitError() << "result " << i << " of @" << function.getName()
                                  << " has no titan tag";
  return success();
}

LogicalResult verifyMetric(func::FuncOp function, StringRef name, Type element) {
  Value value = TaggedFunction(function).findResult(ir::tag::metric, name);
  auto type = RankedTensorType::get({}, element);
  if (!value || value.getType() != type)
    return function.emitError() << "@" << function.getName() << " returns no metric '" << name
                                << "' of type " << type;
  return success();
}

} // namespace titan
