// Registration, syntax and verification of the accum dialect.
#include "dialects/Accum/Accum.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Accum/AccumDialect.cpp.inc"
#include "dialects/Accum/AccumEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Accum/AccumAttrs.cpp.inc"

using namespace mlir;

namespace titan::accum {

void AccumDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Accum/AccumAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Accum/AccumOps.cpp.inc"
      >();
}

RankedTensorType LoopOp::sliceType(Type batch) {
  auto type = cast<RankedTensorType>(batch);
  return type.clone(type.getShape().drop_front());
}

// accum.loop %i in 4 running stacked = 1 slices(%xs = %x : type) accumulators(%as = %a : type)
//     -> types { ... }
void LoopOp::print(OpAsmPrinter& printer) {
  printer << ' ' << getIndex() << " in " << getCount() << ' ' << stringifyOrder(getOrder());
  if (getStacked() != 0)
    printer << " stacked = " << getStacked();
  auto group = [&](StringRef word, ArrayRef<BlockArgument> arguments, ValueRange values) {
    if (values.empty())
      return;
    printer << ' ' << word << '(';
    llvm::interleaveComma(llvm::zip_equal(arguments, values), printer, [&](auto pair) {
      printer << std::get<0>(pair) << " = " << std::get<1>(pair) << " : "
              << std::get<1>(pair).getType();
    });
    printer << ')';
  };
  group("slices", getSlices(), getBatches());
  group("accumulators", getAccumulators(), getInits());
  if (getNumResults() > 0) {
    printer << " -> (";
    llvm::interleaveComma(getResultTypes(), printer);
    printer << ')';
  }
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs(), {getCountAttrName(), getOrderAttrName(),
                                                      getStackedAttrName(), "operandSegmentSizes"});
}

ParseResult LoopOp::parse(OpAsmParser& parser, OperationState& result) {
  Builder& builder = parser.getBuilder();
  SmallVector<OpAsmParser::Argument> arguments(1);
  int64_t count, stacked = 0;
  StringRef orderName;
  SMLoc orderLocation;
  if (parser.parseArgument(arguments[0]) || parser.parseKeyword("in") ||
      parser.parseInteger(count) || parser.getCurrentLocation(&orderLocation) ||
      parser.parseKeyword(&orderName))
    return failure();
  std::optional<Order> order = symbolizeOrder(orderName);
  if (!order)
    return parser.emitError(orderLocation, "order is unordered, running or tree, not ")
           << orderName;
  if (succeeded(parser.parseOptionalKeyword("stacked")) &&
      (parser.parseEqual() || parser.parseInteger(stacked)))
    return failure();
  arguments[0].type = builder.getIndexType();

  std::array<int32_t, 2> segments = {0, 0};
  auto group = [&](StringRef word, int32_t& segment, bool slice) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(word)))
      return success();
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
      OpAsmParser::UnresolvedOperand operand;
      Type type;
      SMLoc location = parser.getCurrentLocation();
      if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
          parser.parseOperand(operand) || parser.parseColonType(type) ||
          parser.resolveOperand(operand, type, result.operands))
        return failure();
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || (slice && tensor.getRank() == 0))
        return parser.emitError(location, "(C1) a batch is a tensor of rank >= 1");
      arguments.back().type = slice ? sliceType(type) : type;
      ++segment;
      return success();
    });
  };
  if (group("slices", segments[0], true) || group("accumulators", segments[1], false))
    return failure();
  if (succeeded(parser.parseOptionalArrow()) &&
      (parser.parseLParen() || parser.parseTypeList(result.types) || parser.parseRParen()))
    return failure();
  Region* body = result.addRegion();
  if (parser.parseRegion(*body, arguments) || parser.parseOptionalAttrDict(result.attributes))
    return failure();
  ensureTerminator(*body, builder, result.location);
  auto& properties = result.getOrAddProperties<Properties>();
  properties.count = builder.getI64IntegerAttr(count);
  properties.order = OrderAttr::get(builder.getContext(), *order);
  properties.stacked = builder.getI64IntegerAttr(stacked);
  properties.operandSegmentSizes = segments;
  return success();
}

LogicalResult LoopOp::verify() {
  int64_t count = getCount();
  if (count < 1)
    return emitOpError("(C1) count is ") << count;
  for (Value batch : getBatches()) {
    auto type = cast<RankedTensorType>(batch.getType());
    if (type.getRank() < 1 || type.getDimSize(0) != count)
      return emitOpError("(C1) batch ") << type << " does not have first extent " << count;
  }
  SmallVector<Type> expected = {IndexType::get(getContext())};
  for (Value batch : getBatches())
    expected.push_back(sliceType(batch.getType()));
  llvm::append_range(expected, getInits().getTypes());
  if (getBlock().getArgumentTypes() != TypeRange(expected))
    return emitOpError("(C2) body arguments are not (index, slices, accumulators)");
  if (getStacked() > getNumResults())
    return emitOpError("(C5) stacks ") << getStacked() << " of " << getNumResults() << " results";
  for (Value stack : getStacks()) {
    auto type = cast<RankedTensorType>(stack.getType());
    if (type.getRank() < 1 || type.getDimSize(0) != count)
      return emitOpError("(C5) stack ") << type << " does not have first extent " << count;
  }
  SmallVector<Type> yielded(getSums().getTypes());
  for (Value stack : getStacks())
    yielded.push_back(sliceType(stack.getType()));
  auto yield = cast<YieldOp>(getBlock().getTerminator());
  const bool isRunning = getOrder() == Order::Running;
  if (yield.getOperandTypes() != TypeRange(yielded) ||
      (isRunning && getInits().getTypes() != getSums().getTypes()))
    return emitOpError("(C3) yields ") << yield->getNumOperands() << " values for "
                                       << getNumResults() << " results, or of other types";
  if (!isRunning && !getInits().empty())
    return emitOpError("(C4) a loop of order ") << stringifyOrder(getOrder()) << " has no inits";
  if (getOrder() == Order::Tree && !llvm::isPowerOf2_64(count))
    return emitOpError("(C6) a tree over ") << count << " terms: take a power of two";
  return success();
}

} // namespace titan::accum

#define GET_OP_CLASSES
#include "dialects/Accum/AccumOps.cpp.inc"
