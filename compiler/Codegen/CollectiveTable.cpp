#include "compiler/Codegen/CollectiveTable.h"

#include "compiler/Codegen/CommandTable.h"

using namespace mlir;

namespace titan::codegen {

namespace {

CollectiveKind toKind(dist::Collective kind) {
  switch (kind) {
  case dist::Collective::AllGather:
    return CollectiveKind::AllGather;
  case dist::Collective::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case dist::Collective::AllReduce:
    return CollectiveKind::AllReduce;
  }
  return CollectiveKind::AllReduce;
}

/// The paths of `start`, or what kind of work it belongs to where it has none.
std::string labelOf(dist::StartOp start) {
  std::string label;
  for (auto path : ir::getPath(start).getAsRange<StringAttr>())
    label += (label.empty() ? "" : ", ") + path.getValue().str();
  return label.empty() ? ir::stringifyPhase(ir::getPhase(start)).str() : label;
}

/// Operand `i` of `start` as the group has it, cut along the collective's dim.
FailureOr<CollectivePiece> pieceOf(dist::StartOp start, unsigned i) {
  const bool gathers = start.getCollective() == dist::Collective::AllGather;
  auto whole = cast<ShapedType>((gathers ? start.getOuts() : start.getIns())[i].getType());
  std::optional<DType> dtype = dtypeOf(whole.getElementType());
  if (!dtype)
    return start.emitOpError("exchanges elements of type ")
           << whole.getElementType() << ", which have no place in a command table";
  const int64_t dim = start.getDims() ? (*start.getDims())[i] : 0;
  CollectivePiece piece{*dtype, 1, 1};
  for (auto [d, extent] : llvm::enumerate(whole.getShape()))
    (static_cast<int64_t>(d) < dim ? piece.outer : piece.inner) *= extent;
  return piece;
}

} // namespace

FailureOr<uint8_t> CollectiveTable::axis(Operation* op, StringRef name) const {
  for (auto [i, axis] : llvm::enumerate(mesh_))
    if (axis.name == name)
      return static_cast<uint8_t>(i);
  return op->emitOpError("names axis '") << name << "', which mesh.axes of the recipe lacks";
}

FailureOr<uint32_t> CollectiveTable::add(dist::StartOp start) {
  Collective collective;
  collective.kind = toKind(start.getCollective());
  if (start.getOrder() == dist::Order::Tree)
    collective.order = SumOrder::Tree;
  for (auto name : start.getAxes().getAsRange<StringAttr>()) {
    FailureOr<uint8_t> number = axis(start, name);
    if (failed(number))
      return failure();
    collective.axes.push_back(*number);
  }
  for (unsigned i = 0; i < start.getIns().size(); ++i) {
    FailureOr<CollectivePiece> piece = pieceOf(start, i);
    if (failed(piece))
      return failure();
    collective.pieces.push_back(*piece);
  }
  collective.label = labelOf(start);
  collectives_.push_back(std::move(collective));
  return static_cast<uint32_t>(collectives_.size() - 1);
}

FailureOr<Affine> CollectiveTable::coordinate(dist::CoordinateOp op) const {
  FailureOr<uint8_t> number = axis(op, op.getAxis());
  if (failed(number))
    return failure();
  return Affine{0, {{Affine::meshVariable(*number), 1}}};
}

void CollectiveTable::finish(Program& program) { program.collectives = std::move(collectives_); }

} // namespace titan::codegen
