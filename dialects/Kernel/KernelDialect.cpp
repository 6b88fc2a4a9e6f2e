// Registration, effects and verification of the kernel dialect.
#include "dialects/Kernel/Kernel.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Kernel/KernelDialect.cpp.inc"
#include "dialects/Kernel/KernelEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttrs.cpp.inc"

using namespace mlir;

namespace titan::kernel {

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kernel/KernelAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kernel/KernelOps.cpp.inc"
      >();
}

LogicalResult KernelDialect::verifyRegionArgAttribute(Operation* op, unsigned, unsigned,
                                                      NamedAttribute attribute) {
  if (attribute.getName() == offsetTag && isa<IntegerAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "'" << attribute.getName() << "' is not a tag of an argument";
}

namespace {

Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

/// The type of an element in a body, where integers have no sign.
Type bodyTypeOf(Value value) {
  Type element = elementOf(value);
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

bool isIncreasingWithin(ArrayRef<int64_t> values, int64_t rank) {
  int64_t previous = -1;
  for (int64_t v : values) {
    if (v <= previous || v >= rank)
      return false;
    previous = v;
  }
  return true;
}

/// Smallest and largest value of an affine expression over a box, for expressions without mod and
/// div.
std::optional<std::pair<int64_t, int64_t>> boundsOf(AffineExpr expr, ArrayRef<int64_t> space) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return std::pair{constant.getValue(), constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return std::pair{int64_t(0), std::max<int64_t>(space[dim.getPosition()] - 1, 0)};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  auto lhs = boundsOf(binary.getLHS(), space), rhs = boundsOf(binary.getRHS(), space);
  if (!lhs || !rhs)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return std::pair{lhs->first + rhs->first, lhs->second + rhs->second};
  if (expr.getKind() == AffineExprKind::Mul) {
    auto [low, high] = std::minmax({lhs->first * rhs->first, lhs->first * rhs->second,
                                    lhs->second * rhs->first, lhs->second * rhs->second});
    return std::pair{low, high};
  }
  return std::nullopt;
}

/// No two points of the dimensions that `expr` uses have one value: sorted by stride, each stride
/// exceeds the span of the smaller ones.
bool isInjective(AffineExpr expr, ArrayRef<int64_t> space) {
  SmallVector<std::pair<int64_t, int64_t>> digits; // (stride, extent)
  auto zero = getAffineConstantExpr(0, expr.getContext());
  SmallVector<AffineExpr> origin(space.size(), zero);
  auto valueAt = [&](ArrayRef<AffineExpr> point) {
    auto constant = dyn_cast<AffineConstantExpr>(
        simplifyAffineExpr(expr.replaceDims(point), /*numDims=*/0, /*numSymbols=*/0));
    return constant ? std::optional(constant.getValue()) : std::nullopt;
  };
  auto base = valueAt(origin);
  for (auto [d, extent] : llvm::enumerate(space)) {
    if (extent <= 1 || !expr.isFunctionOfDim(d))
      continue;
    SmallVector<AffineExpr> point = origin;
    point[d] = getAffineConstantExpr(1, expr.getContext());
    auto value = valueAt(point);
    if (!base || !value)
      return false;
    digits.push_back({std::abs(*value - *base), extent});
  }
  llvm::sort(digits);
  int64_t span = 0;
  for (auto [stride, extent] : digits) {
    if (stride <= span)
      return false;
    span += stride * (extent - 1);
  }
  return true;
}

void addBufferEffects(Operation* op, ValueRange ins, MutableOperandRange outs,
                      SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  for (OpOperand& operand : op->getOpOperands())
    if (llvm::is_contained(ins, operand.get()) && isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  for (OpOperand& out : outs)
    if (isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &out);
}

} // namespace

//===----------------------------------------------------------------------===//
// kernel.fused
//===----------------------------------------------------------------------===//

AffineMap FusedOp::getInMap(unsigned i) { return cast<AffineMapAttr>(getMaps()[i]).getValue(); }
AffineMap FusedOp::getOutMap(unsigned i) {
  return cast<AffineMapAttr>(getMaps()[getIns().size() + i]).getValue();
}

bool FusedOp::walksAlike(unsigned in, unsigned out) {
  AffineMap map = getInMap(in);
  if (map != getOutMap(out))
    return false;
  llvm::SmallBitVector missing(getSpace().size()), reduced(getSpace().size());
  for (auto reduce : getBlock().getOps<ReduceOp>())
    for (int64_t d : reduce.getDims())
      reduced.set(d);
  for (auto [d, extent] : llvm::enumerate(getSpace()))
    if (extent != 1 && !map.isFunctionOfDim(d)) {
      if (!reduced.test(d))
        return false;
      missing.set(d);
    }
  if (missing.none())
    return true;
  llvm::SmallPtrSet<Operation*, 8> derived;
  for (Operation& op : getBlock().without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value v) {
          return v == getBlock().getArgument(in) || derived.contains(v.getDefiningOp());
        })) {
      derived.insert(&op);
      if (getDependence(op.getResult(0)).anyCommon(missing))
        return false;
    }
  return true;
}

llvm::SmallBitVector FusedOp::getDependence(Value value) {
  unsigned rank = getSpace().size();
  llvm::DenseMap<Value, llvm::SmallBitVector> known;
  std::function<llvm::SmallBitVector(Value)> visit = [&](Value v) -> llvm::SmallBitVector {
    auto found = known.find(v);
    if (found != known.end())
      return found->second;
    llvm::SmallBitVector dims(rank);
    known[v] = dims; // dominance is verified later: a cycle must not be followed forever
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      if (argument.getArgNumber() < getIns().size())
        for (unsigned d = 0; d < rank; ++d)
          if (getInMap(argument.getArgNumber()).isFunctionOfDim(d))
            dims.set(d);
    } else {
      Operation* op = v.getDefiningOp();
      for (Value operand : op->getOperands())
        dims |= visit(operand);
      if (auto index = dyn_cast<IndexOp>(op))
        dims.set(index.getDim());
      if (auto reduce = dyn_cast<ReduceOp>(op))
        for (int64_t d : reduce.getDims())
          dims.reset(d);
    }
    known[v] = dims;
    return dims;
  };
  return visit(value);
}

void FusedOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  addBufferEffects(*this, getIns(), getOutsMutable(), effects);
}

// After the ops of the body: what they say of dimensions is within the space.
LogicalResult FusedOp::verifyRegions() {
  unsigned rank = getSpace().size();
  auto operands = llvm::concat<Value>(llvm::to_vector(getIns()), llvm::to_vector(getOuts()));
  size_t operandCount = getIns().size() + getOuts().size();
  if (getMaps().size() != operandCount)
    return emitOpError("(C1) has ")
           << getMaps().size() << " maps for " << operandCount << " operands";
  for (auto [attribute, operand] : llvm::zip(getMaps(), operands)) {
    AffineMap map = cast<AffineMapAttr>(attribute).getValue();
    auto type = cast<ShapedType>(operand.getType());
    if (map.getNumDims() != rank || map.getNumSymbols() != 0 ||
        map.getNumResults() != static_cast<unsigned>(type.getRank()))
      return emitOpError("(C1) map ") << AffineMapAttr::get(map) << " does not lead from " << rank
                                      << " dimensions to " << type;
    for (auto [expr, extent] : llvm::zip_equal(map.getResults(), type.getShape())) {
      auto bounds = boundsOf(expr, getSpace());
      if (!bounds || (type.getNumElements() > 0 && (bounds->first < 0 || bounds->second >= extent)))
        return emitOpError("(C1) map ") << AffineMapAttr::get(map) << " leaves " << type;
    }
  }
  SmallVector<Type> arguments;
  for (Value in : getIns())
    arguments.push_back(bodyTypeOf(in));
  arguments.append(getScalars().size(), IndexType::get(getContext()));
  if (getBlock().getArgumentTypes() != TypeRange(arguments))
    return emitOpError(
        "(C2) body arguments are not the element types of ins, then index for each scalar");
  auto yield = cast<YieldOp>(getBlock().getTerminator());
  bool onTensors =
      llvm::any_of(getOuts(), [](Value v) { return isa<RankedTensorType>(v.getType()); });
  if (yield.getValues().size() != getOuts().size() ||
      (onTensors ? getResultTypes() != getOuts().getTypes() : getNumResults() != 0))
    return emitOpError("(C3) yields ") << yield.getValues().size() << " values to "
                                       << getOuts().size() << " outs, or results do not match them";
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    if (value.getType() != bodyTypeOf(getOuts()[i]))
      return emitOpError("(C3) yields ") << value.getType() << " to " << getOuts()[i].getType();
    llvm::SmallBitVector dims = getDependence(value);
    llvm::SmallBitVector used(rank);
    AffineMap map = getOutMap(i);
    for (AffineExpr expr : map.getResults()) {
      for (unsigned d = 0; d < rank; ++d)
        if (expr.isFunctionOfDim(d)) {
          if (used.test(d))
            return emitOpError("(C5) map ")
                   << AffineMapAttr::get(map) << " uses dimension " << d << " twice";
          used.set(d);
        }
      if (!isInjective(expr, getSpace()))
        return emitOpError("(C5) map ")
               << AffineMapAttr::get(map) << " sends several points to one element";
    }
    for (int d : dims.set_bits())
      if (!used.test(d) && getSpace()[d] != 1)
        return emitOpError("(C4) yielded value ")
               << i << " depends on dimension " << d << ", which " << AffineMapAttr::get(map)
               << " lacks";
  }
  if (!onTensors)
    for (auto [j, out] : llvm::enumerate(getOuts()))
      for (auto [i, in] : llvm::enumerate(getIns()))
        if (in == out && !walksAlike(i, j))
          return emitOpError("(C7) writes outs ")
                 << j << " over ins " << i << ", which is read at other points";
  for (Operation& op : getBlock())
    if (!isa<YieldOp, ReduceOp, IndexOp, RandomHalfOp>(op) &&
        !isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
      return emitOpError("(C6) body holds ") << op.getName();
  return success();
}

//===----------------------------------------------------------------------===//
// kernel.call
//===----------------------------------------------------------------------===//

void CallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  addBufferEffects(*this, getIns(), getOutsMutable(), effects);
  for (auto [i, out] : llvm::enumerate(getOutsMutable()))
    if (getRoutine().readsOut(i) && isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &out);
}

LogicalResult CallOp::verify() {
  if (getNumResults() != 0 && getResultTypes() != getOuts().getTypes())
    return emitOpError("(C2) results have the types of outs");
  return getRoutine().verifyCall(*this);
}

//===----------------------------------------------------------------------===//
// Body ops and buffers
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  int64_t rank = cast<FusedOp>((*this)->getParentOp()).getSpace().size();
  if (!isIncreasingWithin(getDims(), rank))
    return emitOpError("(C1) dims [")
           << getDims() << "] are not increasing within the space of rank " << rank;
  return success();
}

LogicalResult IndexOp::verify() {
  int64_t rank = cast<FusedOp>((*this)->getParentOp()).getSpace().size();
  if (static_cast<int64_t>(getDim()) >= rank || static_cast<int64_t>(getDim()) < 0)
    return emitOpError("(C1) dim ") << getDim() << " is outside the space of rank " << rank;
  return success();
}

LogicalResult ConstantOp::verify() {
  auto held = getValue().getShapedType(), type = cast<ShapedType>(getType());
  if (held.getShape() != type.getShape() || held.getElementType() != type.getElementType())
    return emitOpError("(C1) holds ") << held << " as " << type;
  return success();
}

LogicalResult CopyOp::verify() {
  MemRefType from = getSource().getType(), to = getTarget().getType();
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return emitOpError("(C1) copies ") << from << " to " << to;
  return success();
}

LogicalResult SliceOp::verify() {
  MemRefType from = cast<MemRefType>(getSource().getType()),
             to = cast<MemRefType>(getResult().getType());
  if (from.getRank() < 1 || from.getShape().drop_front() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError("(C1) ") << to << " is no slice of " << from;
  return success();
}

LogicalResult CastShapeOp::verify() {
  auto from = cast<ShapedType>(getSource().getType()), to = cast<ShapedType>(getResult().getType());
  if (from.getNumElements() != to.getNumElements() ||
      from.getElementType() != to.getElementType() || isa<MemRefType>(from) != isa<MemRefType>(to))
    return emitOpError("(C1) casts ") << from << " to " << to;
  return success();
}

OpFoldResult CastShapeOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<CastShapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

} // namespace titan::kernel

#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.cpp.inc"
