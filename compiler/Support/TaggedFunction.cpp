#include "compiler/Support/TaggedFunction.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace titan {

namespace {

StringRef nameOf(Attribute value) {
  if (auto symbol = dyn_cast_if_present<FlatSymbolRefAttr>(value))
    return symbol.getValue();
  if (auto text = dyn_cast_if_present<StringAttr>(value))
    return text.getValue();
  return {};
}

DictionaryAttr tagged(StringRef tag, Attribute name) {
  Builder builder(name.getContext());
  return builder.getDictionaryAttr(builder.getNamedAttr(tag, name));
}

/// What results are, as a function's signature has it.
struct ResultLists {
  explicit ResultLists(ArrayRef<TaggedFunction::TaggedValue> results) {
    for (const TaggedFunction::TaggedValue& result : results) {
      values.push_back(result.value);
      types.push_back(result.value.getType());
      attributes.push_back(tagged(result.tag, result.name));
    }
  }
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
};

} // namespace

TaggedFunction TaggedFunction::create(OpBuilder& builder, Location loc, StringRef name) {
  auto op = func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(op.addEntryBlock());
  func::ReturnOp::create(builder, loc);
  return TaggedFunction(op);
}

func::ReturnOp TaggedFunction::terminator() const {
  auto function = function_;
  return cast<func::ReturnOp>(function.getBody().front().getTerminator());
}

StringRef TaggedFunction::argumentTag(unsigned index, StringRef tag) const {
  auto function = function_;
  return nameOf(function.getArgAttr(index, tag));
}

StringRef TaggedFunction::resultTag(unsigned index, StringRef tag) const {
  auto function = function_;
  return nameOf(function.getResultAttr(index, tag));
}

/// The state of the module around `function` that `symbol` names; null if it is empty.
static ir::StateOp stateNamed(func::FuncOp function, StringRef symbol) {
  auto module = function->getParentOfType<ModuleOp>();
  return symbol.empty() ? ir::StateOp() : module.lookupSymbol<ir::StateOp>(symbol);
}

ir::StateOp TaggedFunction::argumentState(unsigned index) const {
  return stateNamed(function_, argumentTag(index, ir::tag::state));
}

ir::StateOp TaggedFunction::resultState(unsigned index) const {
  return stateNamed(function_, resultTag(index, ir::tag::state));
}

BlockArgument TaggedFunction::findArgument(StringRef tag, StringRef name) const {
  auto function = function_;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, tag) && argumentTag(i, tag) == name)
      return function.getArgument(i);
  return {};
}

llvm::StringMap<BlockArgument> TaggedFunction::argumentsBy(StringRef tag) const {
  auto function = function_;
  llvm::StringMap<BlockArgument> arguments;
  for (BlockArgument argument : function.getArguments())
    if (StringRef name = argumentTag(argument.getArgNumber(), tag); !name.empty())
      arguments.try_emplace(name, argument);
  return arguments;
}

llvm::StringMap<Value> TaggedFunction::resultsBy(StringRef tag) const {
  llvm::StringMap<Value> results;
  for (OpOperand& operand : terminator()->getOpOperands())
    if (StringRef name = resultTag(operand.getOperandNumber(), tag); !name.empty())
      results.try_emplace(name, operand.get());
  return results;
}

MutableArrayRef<BlockArgument> TaggedFunction::addArguments(ArrayRef<TaggedType> arguments) {
  const unsigned first = function_.getNumArguments();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  for (const TaggedType& argument : arguments) {
    types.push_back(argument.type);
    attributes.push_back(tagged(argument.tag, argument.name));
  }
  const SmallVector<unsigned> places(arguments.size(), first);
  const SmallVector<Location> locations(arguments.size(), function_.getLoc());
  if (failed(function_.insertArguments(places, types, attributes, locations)))
    llvm::report_fatal_error("a tagged function takes no more arguments");
  return function_.getArguments().drop_front(first);
}

BlockArgument TaggedFunction::addArgument(Type type, StringRef tag, Attribute name) {
  return addArguments(TaggedType{type, tag, name}).front();
}

BlockArgument TaggedFunction::getArgument(Type type, StringRef tag, Attribute value) {
  if (BlockArgument argument = findArgument(tag, nameOf(value)))
    return argument;
  return addArgument(type, tag, value);
}

Value TaggedFunction::findResult(StringRef tag, StringRef name) const {
  for (unsigned i = 0; i < terminator().getNumOperands(); ++i)
    if (resultTag(i, tag) == name)
      return terminator().getOperand(i);
  return {};
}

void TaggedFunction::addResults(ArrayRef<TaggedValue> results) {
  const ResultLists lists(results);
  const unsigned first = function_.getNumResults();
  const SmallVector<unsigned> places(results.size(), first);
  if (failed(function_.insertResults(places, lists.types, lists.attributes)))
    llvm::report_fatal_error("a tagged function has no more results");
  terminator()->insertOperands(first, lists.values);
}

void TaggedFunction::addResult(Value value, StringRef tag, Attribute name) {
  addResults(TaggedValue{value, tag, name});
}

void TaggedFunction::setResults(ArrayRef<TaggedValue> results) {
  const ResultLists lists(results);
  Builder builder(function_.getContext());
  terminator().getOperandsMutable().assign(lists.values);
  function_.setFunctionType(builder.getFunctionType(function_.getArgumentTypes(), lists.types));
  function_.setAllResultAttrs(lists.attributes);
}

} // namespace titan
