// What holds for collectives, as one op and as halves.
#include "dialects/Dist/Dist.h"

#include "dialects/Accum/Accum.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace titan::dist {

namespace {

/// (C1): the axes are the mesh's, in its order, at least one, none of extent 1.
LogicalResult verifyAxes(Operation* op, ArrayAttr axes) {
  MeshAttr mesh = meshOf(op);
  if (!mesh)
    return op->emitOpError("(C1) the module has no '") << meshTag << "'";
  if (axes.empty())
    return op->emitOpError("(C1) names no axis");
  std::optional<unsigned> last;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    std::optional<unsigned> position = mesh.find(axis);
    if (!position)
      return op->emitOpError("(C1) axis ") << axis << " is not one of " << mesh;
    if (last && *position <= *last)
      return op->emitOpError("(C1) axis ") << axis << " is out of the mesh's order";
    if (mesh.getExtents()[*position] == 1)
      return op->emitOpError("(C1) axis ") << axis << " has one rank";
    last = position;
  }
  return success();
}

bool canSum(Type element) {
  return element.isF32() || element.isF64() || element.isBF16() || element.isInteger(64);
}

/// (C2) for one operand and its result: `dim` of the result is `factor` times, or 1/`divisor` of,
/// the operand's; without a dim they are alike.
LogicalResult verifyShapes(Operation* op, ShapedType operand, ShapedType result,
                           std::optional<int64_t> dim, int64_t factor, int64_t divisor) {
  SmallVector<int64_t> expected(operand.getShape());
  if (dim) {
    if (*dim < 0 || *dim >= operand.getRank())
      return op->emitOpError("(C2) dim ") << *dim << " of " << operand;
    int64_t& extent = expected[*dim];
    if (extent % divisor != 0)
      return op->emitOpError("(C2) extent ")
             << extent << " of dim " << *dim << " is no multiple of " << divisor << " ranks";
    extent = extent / divisor * factor;
  }
  if (result.getElementType() == operand.getElementType() &&
      result.getShape() == ArrayRef(expected))
    return success();
  return op->emitOpError("(C2) gives ")
         << result << " for " << operand << ", expected " << operand.clone(expected);
}

/// A collective, as one op or as its first half.
struct Description {
  Collective kind;
  ArrayAttr axes;
  std::optional<ArrayRef<int64_t>> dims;
  std::optional<Order> order;
};

LogicalResult verifyCollective(Operation* op, const Description& description, ValueRange operands,
                               TypeRange results) {
  if (failed(verifyAxes(op, description.axes)))
    return failure();
  const auto [kind, axes, dims, order] = description;
  const int64_t ranks = meshOf(op).groupSize(axes);
  if (operands.empty() || operands.size() != results.size())
    return op->emitOpError("(C2) has ")
           << operands.size() << " operands, " << results.size() << " results";
  const bool cuts = kind != Collective::AllReduce;
  if (cuts != dims.has_value() || (cuts && dims->size() != operands.size()))
    return op->emitOpError("(C2) has ")
           << (dims ? dims->size() : 0) << " dims for " << operands.size() << " operands of an "
           << stringifyCollective(kind);
  const bool sums = kind != Collective::AllGather;
  if (sums != order.has_value())
    return op->emitOpError("(C3) an ")
           << stringifyCollective(kind) << (sums ? " has an order" : " has no order");
  for (auto [i, operand] : llvm::enumerate(operands)) {
    auto from = cast<ShapedType>(operand.getType()), to = cast<ShapedType>(results[i]);
    if (sums && !canSum(from.getElementType()))
      return op->emitOpError("(C2) sums ") << from << ": f32, f64, bf16 and i64 are summed";
    if (failed(verifyShapes(op, from, to, cuts ? std::optional((*dims)[i]) : std::nullopt,
                            kind == Collective::AllGather ? ranks : 1,
                            kind == Collective::ReduceScatter ? ranks : 1)))
      return failure();
  }
  if (order == Order::Tree && !llvm::isPowerOf2_64(ranks))
    return op->emitOpError("(C3) a tree over a group of ")
           << ranks << " ranks: take a power of two";
  if (!isa<func::FuncOp, accum::LoopOp>(op->getParentOp()))
    return op->emitOpError("(C4) stands in ")
           << op->getParentOp()->getName() << ", not in a function or an accum.loop";
  return success();
}

SmallVector<OpOperand*> pointers(MutableOperandRange operands) {
  return llvm::map_to_vector(operands, [](OpOperand& operand) { return &operand; });
}

bool isOnBuffers(ValueRange values) {
  return llvm::any_of(values.getTypes(), llvm::IsaPred<MemRefType>);
}

/// Does `op` write to `buffer`, as far as its operands say?
bool writes(Operation* op, Value buffer) {
  auto command = dyn_cast<kernel::CommandLikeOpInterface>(op);
  return command && llvm::any_of(command.getWrites(),
                                 [&](OpOperand* operand) { return operand->get() == buffer; });
}

/// (C6): what stands between `start` and its wait leaves their buffers alone.
LogicalResult verifyBetween(StartOp start) {
  for (Operation* op = start->getNextNode(); op && op != start.getWait(); op = op->getNextNode()) {
    WalkResult walked = op->walk([&](Operation* user) {
      for (Value operand : user->getOperands())
        if (llvm::is_contained(start.getOuts(), operand))
          return user->emitOpError("(C6) uses what a collective in flight writes"),
                 WalkResult::interrupt();
        else if (llvm::is_contained(start.getIns(), operand) && writes(user, operand))
          return user->emitOpError("(C6) writes what a collective in flight reads"),
                 WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
  }
  return success();
}

} // namespace

LogicalResult CoordinateOp::verify() {
  MeshAttr mesh = meshOf(*this);
  if (!mesh || !mesh.find(getAxis()))
    return emitOpError("(C1) the module's mesh has no axis \"") << getAxis() << "\"";
  return success();
}

LogicalResult TakeShardOp::verify() {
  if (failed(verifyAxes(*this, getAxes())))
    return failure();
  return verifyShapes(*this, cast<ShapedType>(getOperand().getType()),
                      cast<ShapedType>(getResult().getType()), getDim(), 1,
                      meshOf(*this).groupSize(getAxes()));
}

ir::Work TakeShardOp::getWork() {
  const bool isOutermost =
      llvm::all_of(cast<ShapedType>(getResult().getType()).getShape().take_front(getDim()),
                   [](int64_t extent) { return extent == 1; });
  return isOutermost ? ir::Work::View : ir::Work::Copied;
}

LogicalResult AllGatherOp::verify() {
  return verifyCollective(*this, {Collective::AllGather, getAxes(), getDims(), std::nullopt},
                          getOperands(), getResultTypes());
}

LogicalResult ReduceScatterOp::verify() {
  return verifyCollective(*this, {Collective::ReduceScatter, getAxes(), getDims(), getOrder()},
                          getOperands(), getResultTypes());
}

LogicalResult AllReduceOp::verify() {
  return verifyCollective(*this, {Collective::AllReduce, getAxes(), std::nullopt, getOrder()},
                          getOperands(), getResultTypes());
}

bool isWholeCollective(Operation* op) { return isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op); }

//===----------------------------------------------------------------------===//
// Halves
//===----------------------------------------------------------------------===//

LogicalResult StartOp::verify() {
  if (failed(verifyCollective(*this, {getCollective(), getAxes(), getDims(), getOrder()}, getIns(),
                              getOuts().getTypes())))
    return failure();
  if (!getToken().hasOneUse() || !getWait() || getWait()->getBlock() != (*this)->getBlock())
    return emitOpError("(C5) one wait has the token, in the same block");
  return isOnBuffers(getOuts()) ? verifyBetween(*this) : success();
}

WaitOp StartOp::getWait() { return dyn_cast<WaitOp>(*getToken().user_begin()); }

// What is written is there after the wait, so that tensors continue there.
SmallVector<OpOperand*> StartOp::getReads() { return pointers(getInsMutable()); }
SmallVector<OpOperand*> StartOp::getWrites() {
  return isOnBuffers(getOuts()) ? pointers(getOutsMutable()) : SmallVector<OpOperand*>();
}

LogicalResult WaitOp::verify() {
  StartOp start = getStart();
  if (!start)
    return emitOpError("(C1) waits for a token that no start gives");
  if (start.getIns() != getIns() || start.getOuts() != getOuts())
    return emitOpError("(C1) names other buffers than its start");
  const bool isOnTensors = !isOnBuffers(getOuts());
  if (isOnTensors ? getResultTypes() != getOuts().getTypes() : getNumResults() != 0)
    return emitOpError(
        "(C2) on tensors the results have the types of outs, on buffers there are none");
  return success();
}

SmallVector<OpOperand*> WaitOp::getReads() { return pointers(getInsMutable()); }
SmallVector<OpOperand*> WaitOp::getWrites() { return pointers(getOutsMutable()); }

} // namespace titan::dist

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.cpp.inc"
