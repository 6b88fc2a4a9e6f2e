// kernel.fused: how its body depends on the iteration space, and its constraints.
#include "dialects/Kernel/Kernel.h"

#include "mlir/IR/AffineMap.h"

using namespace mlir;

namespace titan::kernel {

AffineMap FusedOp::getInMap(unsigned i) { return cast<AffineMapAttr>(getMaps()[i]).getValue(); }
AffineMap FusedOp::getOutMap(unsigned i) {
  return cast<AffineMapAttr>(getMaps()[getIns().size() + i]).getValue();
}

namespace {

/// Adds the dimensions that `expr` uses. `AffineExpr::isFunctionOfDim` looks each of them up in the
/// context.
void addDims(AffineExpr expr, llvm::SmallBitVector& dims) {
  expr.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      dims.set(dim.getPosition());
  });
}

void addDims(AffineMap map, llvm::SmallBitVector& dims) {
  for (AffineExpr expr : map.getResults())
    addDims(expr, dims);
}

/// On which dimensions of the space the values of a body depend.
class Dependences {
public:
  explicit Dependences(FusedOp op) : op(op), rank(op.getSpace().size()) {}

  llvm::SmallBitVector of(Value value) {
    // Dominance is verified later: a cycle must not be followed forever.
    auto [found, isNew] = known.try_emplace(value, rank);
    if (!isNew)
      return found->second;
    llvm::SmallBitVector dims = compute(value);
    known[value] = dims;
    return dims;
  }

private:
  FusedOp op;
  unsigned rank;
  llvm::DenseMap<Value, llvm::SmallBitVector> known;

  llvm::SmallBitVector compute(Value value) {
    llvm::SmallBitVector dims(rank);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getArgNumber() < op.getIns().size())
        addDims(op.getInMap(argument.getArgNumber()), dims);
      return dims;
    }
    Operation* definition = value.getDefiningOp();
    for (Value operand : definition->getOperands())
      dims |= of(operand);
    if (auto index = dyn_cast<IndexOp>(definition))
      dims.set(index.getDim());
    if (auto reduce = dyn_cast<ReduceOp>(definition))
      for (int64_t d : reduce.getDims())
        dims.reset(d);
    return dims;
  }
};

} // namespace

llvm::SmallBitVector FusedOp::getDependence(Value value) { return Dependences(*this).of(value); }

bool FusedOp::walksAlike(OpOperand& read, OpOperand& write) {
  unsigned in = read.getOperandNumber();
  AffineMap map = getInMap(in);
  if (map != getOutMap(write.getOperandNumber() - getIns().size()) ||
      cast<ShapedType>(read.get().getType()).getShape() !=
          cast<ShapedType>(write.get().getType()).getShape())
    return false;
  llvm::SmallBitVector missing(getSpace().size()), reduced(getSpace().size()),
      used(getSpace().size());
  addDims(map, used);
  for (auto reduce : getBlock().getOps<ReduceOp>())
    for (int64_t d : reduce.getDims())
      reduced.set(d);
  for (auto [d, extent] : llvm::enumerate(getSpace()))
    if (extent != 1 && !used.test(d)) {
      if (!reduced.test(d))
        return false;
      missing.set(d);
    }
  if (missing.none())
    return true;
  Dependences dependences(*this);
  llvm::SmallPtrSet<Operation*, 8> derived;
  for (Operation& op : getBlock().without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value v) {
          return v == getBlock().getArgument(in) || derived.contains(v.getDefiningOp());
        })) {
      derived.insert(&op);
      if (dependences.of(op.getResult(0)).anyCommon(missing))
        return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

namespace {

/// The type of an element in a body, where integers have no sign.
Type bodyTypeOf(Value value) {
  Type element = cast<ShapedType>(value.getType()).getElementType();
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
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
  if (isa<AffineDimExpr, AffineConstantExpr>(expr))
    return true;
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

LogicalResult verifyMaps(FusedOp op) {
  unsigned rank = op.getSpace().size();
  auto operands = llvm::concat<Value>(llvm::to_vector(op.getIns()), llvm::to_vector(op.getOuts()));
  size_t operandCount = op.getIns().size() + op.getOuts().size();
  if (op.getMaps().size() != operandCount)
    return op.emitOpError("(C1) has ")
           << op.getMaps().size() << " maps for " << operandCount << " operands";
  for (auto [attribute, operand] : llvm::zip(op.getMaps(), operands)) {
    AffineMap map = cast<AffineMapAttr>(attribute).getValue();
    auto type = cast<ShapedType>(operand.getType());
    if (map.getNumDims() != rank || map.getNumSymbols() != 0 ||
        map.getNumResults() != static_cast<unsigned>(type.getRank()))
      return op.emitOpError("(C1) map ") << AffineMapAttr::get(map) << " does not lead from "
                                         << rank << " dimensions to " << type;
    for (auto [expr, extent] : llvm::zip_equal(map.getResults(), type.getShape())) {
      auto bounds = boundsOf(expr, op.getSpace());
      if (!bounds || (type.getNumElements() > 0 && (bounds->first < 0 || bounds->second >= extent)))
        return op.emitOpError("(C1) map ") << AffineMapAttr::get(map) << " leaves " << type;
    }
  }
  return success();
}

LogicalResult verifyArguments(FusedOp op) {
  SmallVector<Type> arguments;
  for (Value in : op.getIns())
    arguments.push_back(bodyTypeOf(in));
  arguments.append(op.getScalars().size(), IndexType::get(op.getContext()));
  if (op.getBlock().getArgumentTypes() != TypeRange(arguments))
    return op.emitOpError(
        "(C2) body arguments are not the element types of ins, then index for each scalar");
  return success();
}

/// The value for out `i` is one for each element that its map leads to.
LogicalResult verifyYieldedValue(FusedOp op, unsigned i, Value value, Dependences& dependences) {
  Value out = op.getOuts()[i];
  if (value.getType() != bodyTypeOf(out))
    return op.emitOpError("(C3) yields ") << value.getType() << " to " << out.getType();
  unsigned rank = op.getSpace().size();
  llvm::SmallBitVector used(rank);
  AffineMap map = op.getOutMap(i);
  for (AffineExpr expr : map.getResults()) {
    llvm::SmallBitVector own(rank);
    addDims(expr, own);
    for (int d : own.set_bits())
      if (used.test(d))
        return op.emitOpError("(C5) map ")
               << AffineMapAttr::get(map) << " uses dimension " << d << " twice";
    used |= own;
    if (!isInjective(expr, op.getSpace()))
      return op.emitOpError("(C5) map ")
             << AffineMapAttr::get(map) << " sends several points to one element";
  }
  for (int d : dependences.of(value).set_bits())
    if (!used.test(d) && op.getSpace()[d] != 1)
      return op.emitOpError("(C4) yielded value ")
             << i << " depends on dimension " << d << ", which " << AffineMapAttr::get(map)
             << " lacks";
  return success();
}

LogicalResult verifyYield(FusedOp op, bool onTensors) {
  auto yield = cast<YieldOp>(op.getBlock().getTerminator());
  if (yield.getValues().size() != op.getOuts().size() ||
      (onTensors ? op.getResultTypes() != op.getOuts().getTypes() : op.getNumResults() != 0))
    return op.emitOpError("(C3) yields ")
           << yield.getValues().size() << " values to " << op.getOuts().size()
           << " outs, or results do not match them";
  Dependences dependences(op);
  for (auto [i, value] : llvm::enumerate(yield.getValues()))
    if (failed(verifyYieldedValue(op, i, value, dependences)))
      return failure();
  return success();
}

} // namespace

// After the ops of the body: what they say of dimensions is within the space.
LogicalResult FusedOp::verifyRegions() {
  bool onTensors =
      llvm::any_of(getOuts(), [](Value v) { return isa<RankedTensorType>(v.getType()); });
  if (failed(verifyMaps(*this)) || failed(verifyArguments(*this)) ||
      failed(verifyYield(*this, onTensors)))
    return failure();
  if (!onTensors)
    for (auto [j, out] : llvm::enumerate(getOutsMutable()))
      for (auto [i, in] : llvm::enumerate(getInsMutable()))
        if (in.get() == out.get() && !walksAlike(in, out))
          return emitOpError("(C7) writes outs ")
                 << j << " over ins " << i << ", which is read at other points";
  for (Operation& op : getBlock())
    if (!isa<YieldOp, ReduceOp, IndexOp, RandomHalfOp>(op) &&
        !isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
      return emitOpError("(C6) body holds ") << op.getName();
  return success();
}

} // namespace titan::kernel
