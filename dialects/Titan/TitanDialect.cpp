// Registration of the titan dialect, and the helpers that read paths and phases.
#include "dialects/Titan/Titan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Titan/TitanDialect.cpp.inc"
#include "dialects/Titan/TitanEnums.cpp.inc"
#include "dialects/Titan/TitanInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Titan/TitanAttrs.cpp.inc"

using namespace mlir;

namespace titan::ir {

void attachTaggedStates(MLIRContext* context); // TitanAttributes.cpp

void TitanDialect::initialize() {
  attachTaggedStates(getContext());
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Titan/TitanAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Titan/TitanOps.cpp.inc"
      >();
}

Operation* TitanDialect::materializeConstant(OpBuilder& builder, Attribute value, Type type,
                                             Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements, ArrayAttr{}, PhaseAttr{});
}

RuleInitAttr RuleInitAttr::get(MLIRContext* context, StringRef distribution, double a, double b) {
  Type f64 = Float64Type::get(context);
  return get(context, distribution, FloatAttr::get(f64, a), FloatAttr::get(f64, b));
}

LogicalResult RuleInitAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef distribution, FloatAttr a, FloatAttr b) {
  if (distribution != "constant" && distribution != "normal" && distribution != "uniform")
    return emitError() << "init rule '" << distribution
                       << "' is not one of constant, normal, uniform";
  return success();
}

/// `"w.bin", offset = 0, bytes = 24, digest = 1, shape = [2, 3]`, the shape only where there is one.
static ParseResult parseRange(AsmParser& parser, SmallVectorImpl<StoredRangeAttr>& stored) {
  std::string path;
  uint64_t offset = 0, bytes = 0, digest = 0;
  SmallVector<int64_t> shape;
  auto number = [&](StringRef name, uint64_t& value) -> ParseResult {
    return failure(parser.parseComma() || parser.parseKeyword(name) || parser.parseEqual() ||
                   parser.parseInteger(value));
  };
  if (parser.parseString(&path) || number("offset", offset) || number("bytes", bytes) ||
      number("digest", digest))
    return failure();
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("shape") || parser.parseEqual() ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                      [&] { return parser.parseInteger(shape.emplace_back()); })))
    return failure();
  stored.push_back(StoredRangeAttr::get(parser.getContext(), path, offset, bytes, digest, shape));
  return success();
}

static void printRange(AsmPrinter& printer, StoredRangeAttr range) {
  printer.printString(range.getPath());
  printer << ", offset = " << range.getOffset() << ", bytes = " << range.getBytes()
          << ", digest = " << range.getDigest();
  if (!range.getShape().empty())
    printer << ", shape = [" << range.getShape() << "]";
}

// One range as it is, several each in brackets.
Attribute FileInitAttr::parse(AsmParser& parser, Type) {
  SmallVector<StoredRangeAttr> stored;
  auto inBrackets = [&]() -> ParseResult {
    return failure(parseRange(parser, stored) || parser.parseRSquare());
  };
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalLSquare())) {
    if (parseRange(parser, stored))
      return {};
  } else {
    if (inBrackets())
      return {};
    while (succeeded(parser.parseOptionalComma()))
      if (parser.parseLSquare() || inBrackets())
        return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<FileInitAttr>(parser.getContext(), stored);
}

void FileInitAttr::print(AsmPrinter& printer) const {
  bool several = getStored().size() > 1;
  printer << "<";
  llvm::interleaveComma(getStored(), printer, [&](StoredRangeAttr range) {
    printer << (several ? "[" : "");
    printRange(printer, range);
    printer << (several ? "]" : "");
  });
  printer << ">";
}

LogicalResult FileInitAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<StoredRangeAttr> stored) {
  if (stored.empty())
    return emitError() << "an init_file stores at least one range";
  return success();
}

// #titan.source<"W", at = [4, 0], from = [0, 8, 0], extent = [4, 3], dims = [1, 2]>
Attribute SourceAttr::parse(AsmParser& parser, Type) {
  std::string initializer;
  SmallVector<int64_t> at, from, extent, dims;
  std::pair<StringRef, SmallVector<int64_t>*> members[] = {
      {"at", &at}, {"from", &from}, {"extent", &extent}, {"dims", &dims}};
  if (parser.parseLess() || parser.parseString(&initializer))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc where = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return {};
    auto* member = llvm::find_if(members, [&](const auto& m) { return m.first == keyword; });
    if (member == std::end(members) || !member->second->empty())
      return parser.emitError(where, "a source has at, from, extent and dims, each once"),
             Attribute();
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parser.parseInteger(member->second->emplace_back());
        }))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return SourceAttr::get(parser.getContext(), initializer, at, from, extent, dims);
}

void SourceAttr::print(AsmPrinter& printer) const {
  printer << "<";
  printer.printString(getInitializer());
  auto member = [&](StringRef name, ArrayRef<int64_t> values) {
    if (!values.empty())
      printer << ", " << name << " = [" << values << "]";
  };
  member("at", getAt());
  member("from", getFrom());
  member("extent", getExtent());
  member("dims", getDims());
  printer << ">";
}

// #titan.placement<["shard" = shard(0), "tensor" = shard(1)]>
Attribute PlacementAttr::parse(AsmParser& parser, Type) {
  SmallVector<StringAttr> axes;
  SmallVector<int64_t> dims;
  auto cut = [&] {
    std::string axis;
    return failure(parser.parseString(&axis) || parser.parseEqual() ||
                   parser.parseKeyword("shard") || parser.parseLParen() ||
                   parser.parseInteger(dims.emplace_back()) || parser.parseRParen() ||
                   (axes.push_back(StringAttr::get(parser.getContext(), axis)), false));
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, cut) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<PlacementAttr>(parser.getContext(), axes, dims);
}

void PlacementAttr::print(AsmPrinter& printer) const {
  printer << "<[";
  llvm::interleaveComma(llvm::zip_equal(getAxes(), getDims()), printer, [&](auto cut) {
    printer << std::get<0>(cut) << " = shard(" << std::get<1>(cut) << ")";
  });
  printer << "]>";
}

LogicalResult PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                    ArrayRef<StringAttr> axes, ArrayRef<int64_t> dims) {
  assert(axes.size() == dims.size() && "a cut has an axis and a dimension");
  for (auto [i, axis] : llvm::enumerate(axes))
    if (llvm::is_contained(axes.take_front(i), axis))
      return emitError() << "mesh axis " << axis << " cuts twice";
  return success();
}

StateOp getOrDeclareCounter(ModuleOp module, StringRef symbol) {
  if (auto state = module.lookupSymbol<StateOp>(symbol))
    return state;
  // After the states that are there, before the functions.
  OpBuilder builder(module.getBodyRegion());
  for (auto state : module.getOps<StateOp>())
    builder.setInsertionPointAfter(state);
  auto state = StateOp::create(builder, module.getLoc(), symbol,
                               RankedTensorType::get({}, builder.getI64Type()), StateKind::Counter,
                               /*trainable=*/false,
                               RuleInitAttr::get(module.getContext(), "constant", 0, 0));
  StringRef name = symbol;
  name.consume_front("counter.");
  state.setCanonicalName(name);
  return state;
}

ArrayAttr getPath(Operation* op) {
  if (auto path = op->getAttrOfType<ArrayAttr>("path"))
    return path;
  return ArrayAttr::get(op->getContext(), {});
}

void setPath(Operation* op, ArrayAttr path) {
  if (path && !path.empty())
    op->setAttr("path", path);
  else
    op->removeAttr("path");
}

std::string pathString(Operation* op) {
  std::string text;
  for (auto name : getPath(op).getAsRange<StringAttr>())
    text += (text.empty() ? "" : ", ") + name.getValue().str();
  return text;
}

std::string describePlace(Operation* op) {
  std::string path = pathString(op);
  return path.empty() ? stringifyPhase(getPhase(op)).str() : path;
}

ArrayAttr joinPaths(ArrayAttr a, ArrayAttr b) {
  if (!a || a.empty())
    return b;
  if (!b || b.empty() || a == b)
    return a;
  llvm::SetVector<Attribute> joined(a.begin(), a.end());
  joined.insert(b.begin(), b.end());
  return ArrayAttr::get(a.getContext(), joined.getArrayRef());
}

Phase getPhase(Operation* op) {
  if (auto phase = op->getAttrOfType<PhaseAttr>("phase"))
    return phase.getValue();
  return Phase::Forward;
}

void setPhase(Operation* op, Phase phase) {
  if (phase == Phase::Forward)
    op->removeAttr("phase");
  else
    op->setAttr("phase", PhaseAttr::get(op->getContext(), phase));
}

} // namespace titan::ir

#define GET_OP_CLASSES
#include "dialects/Titan/TitanOps.cpp.inc"
