// Registration of the dist dialect, and its mesh.
#include "dialects/Dist/Dist.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Dist/DistDialect.cpp.inc"
#include "dialects/Dist/DistEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Dist/DistTypes.cpp.inc"

using namespace mlir;

namespace titan::dist {

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Dist/DistAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Dist/DistTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Dist/DistOps.cpp.inc"
      >();
}

namespace {

bool isMesh(Operation* op, Attribute value) { return isa<ModuleOp>(op) && isa<MeshAttr>(value); }

/// One #dist.placement for each result of `op`.
bool arePlacements(Operation* op, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && list.size() == op->getNumResults() &&
         llvm::all_of(list, llvm::IsaPred<PlacementAttr>);
}

} // namespace

LogicalResult DistDialect::verifyOperationAttribute(Operation* op, NamedAttribute attribute) {
  if (attribute.getName() == meshTag)
    return isMesh(op, attribute.getValue())
               ? success()
               : op->emitOpError() << "'" << meshTag << "' is a #dist.mesh on a module";
  if (attribute.getName() == placementsTag)
    return arePlacements(op, attribute.getValue())
               ? success()
               : op->emitOpError()
                     << "'" << placementsTag << "' is a list, a #dist.placement for each result";
  return op->emitOpError() << "'" << attribute.getName().strref()
                           << "' is not an attribute of the dist dialect";
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation* op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == placementTag && isa<PlacementAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "argument " << index << ": '" << placementTag
                           << "', a #dist.placement, is the one attribute of dist on arguments";
}

MeshAttr meshOf(Operation* op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<MeshAttr>(meshTag) : MeshAttr();
}

/// <["replicate" = value, "shard" = value]>, where `parseValue` takes what stands behind each `=`.
static ParseResult parseAxes(AsmParser& parser, SmallVectorImpl<StringAttr>& axes,
                             function_ref<ParseResult()> parseValue) {
  auto axis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name) || parser.parseEqual() || parseValue())
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  return failure(parser.parseLess() ||
                 parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, axis) ||
                 parser.parseGreater());
}

//===----------------------------------------------------------------------===//
// #dist.mesh<["replicate" = 2, "shard" = 4]>
//===----------------------------------------------------------------------===//

Attribute MeshAttr::parse(AsmParser& parser, Type) {
  SmallVector<StringAttr> axes;
  SmallVector<int64_t> extents;
  if (parseAxes(parser, axes, [&] { return parser.parseInteger(extents.emplace_back()); }))
    return {};
  return parser.getChecked<MeshAttr>(parser.getContext(), axes, extents);
}

void MeshAttr::print(AsmPrinter& printer) const {
  printer << "<[";
  llvm::interleaveComma(llvm::zip_equal(getAxes(), getExtents()), printer, [&](auto axis) {
    printer << std::get<0>(axis) << " = " << std::get<1>(axis);
  });
  printer << "]>";
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> axes, ArrayRef<int64_t> extents) {
  assert(axes.size() == extents.size() && "an axis has a name and an extent");
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (llvm::is_contained(axes.take_front(i), axis))
      return emitError() << "mesh axis " << axis << " is there twice";
    if (extents[i] < 1)
      return emitError() << "mesh axis " << axis << " has " << extents[i] << " ranks";
  }
  return success();
}

int64_t MeshAttr::getRanks() const {
  int64_t ranks = 1;
  for (int64_t extent : getExtents())
    ranks *= extent;
  return ranks;
}

std::optional<unsigned> MeshAttr::find(StringRef axis) const {
  for (auto [i, name] : llvm::enumerate(getAxes()))
    if (name.getValue() == axis)
      return i;
  return std::nullopt;
}

int64_t MeshAttr::groupSize(ArrayAttr axes) const {
  int64_t ranks = 1;
  for (auto axis : axes.getAsRange<StringAttr>())
    ranks *= getExtents()[*find(axis)];
  return ranks;
}

//===----------------------------------------------------------------------===//
// #dist.placement<["replicate" = partial, "shard" = shard(0)]>
//===----------------------------------------------------------------------===//

Attribute PlacementAttr::parse(AsmParser& parser, Type) {
  SmallVector<StringAttr> axes;
  SmallVector<int64_t> dims;
  auto placement = [&]() -> ParseResult {
    StringRef kind;
    SMLoc location;
    if (parser.getCurrentLocation(&location) || parser.parseKeyword(&kind))
      return failure();
    dims.push_back(kind == "partial" ? partial : iteration);
    if (kind == "shard")
      return failure(parser.parseLParen() || parser.parseInteger(dims.back()) ||
                     parser.parseRParen());
    if (kind != "partial" && kind != "iteration")
      return parser.emitError(location, "expected shard(d), partial or iteration");
    return success();
  };
  if (parseAxes(parser, axes, placement))
    return {};
  return parser.getChecked<PlacementAttr>(parser.getContext(), axes, dims);
}

void PlacementAttr::print(AsmPrinter& printer) const {
  printer << "<[";
  llvm::interleaveComma(llvm::zip_equal(getAxes(), getDims()), printer, [&](auto pair) {
    auto [axis, dim] = pair;
    printer << axis << " = ";
    if (dim == partial)
      printer << "partial";
    else if (dim == iteration)
      printer << "iteration";
    else
      printer << "shard(" << dim << ')';
  });
  printer << "]>";
}

LogicalResult PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                    ArrayRef<StringAttr> axes, ArrayRef<int64_t> dims) {
  assert(axes.size() == dims.size() && "a value is one thing on an axis");
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (llvm::is_contained(axes.take_front(i), axis))
      return emitError() << "a placement has axis " << axis << " twice";
    if (dims[i] < iteration)
      return emitError() << "a placement cuts dimension " << dims[i];
  }
  return success();
}

} // namespace titan::dist
