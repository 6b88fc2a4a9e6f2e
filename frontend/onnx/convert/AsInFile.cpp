#include "frontend/onnx/convert/AsInFile.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace titan::frontend {

namespace {

/// What the file has of a piece: the piece's extent with the dimensions in the file's order, those
/// that the state has not as 1.
Value valueOf(const ir::TensorBuilder& b, const StatePiece& part, const StateValues& states) {
  const Piece& piece = part.piece;
  Value value = states.at(part.state);
  if (ir::tensorType(value).getShape() != ArrayRef<int64_t>(piece.extent))
    value = b.create<ir::SliceOp>(ir::tensorType(value).clone(piece.extent), value, piece.at,
                                  Shape(piece.at.size(), 1));
  // Dimension d of the file is the state's position[d]-th, in the order in which they come.
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, piece.dims.size()));
  llvm::sort(permutation, [&](int64_t x, int64_t y) { return piece.dims[x] < piece.dims[y]; });
  if (!llvm::is_sorted(permutation))
    value = b.transpose(value, permutation);
  Shape shape = boxInInitializer(piece).extent;
  if (shape.size() != piece.dims.size())
    value = b.reshape(value, shape);
  return value;
}

/// The box that `pieces` cover, taken apart by cuts. Null: no cut passes between them.
Value joined(const ir::TensorBuilder& b, ArrayRef<StatePiece> pieces, const StateValues& states) {
  if (pieces.size() == 1)
    return valueOf(b, pieces.front(), states);
  std::vector<Box> boxes;
  for (const StatePiece& piece : pieces)
    boxes.push_back(boxInInitializer(piece.piece));
  std::optional<Separation> cut = cutBetween(boxes);
  if (!cut)
    return {};
  SmallVector<Value> parts;
  for (const std::vector<size_t>& group : cut->groups) {
    SmallVector<StatePiece> part;
    for (size_t i : group)
      part.push_back(pieces[i]);
    parts.push_back(joined(b, part, states));
    if (!parts.back())
      return {};
  }
  return b.create<ir::ConcatOp>(ValueRange(parts), static_cast<int64_t>(cut->dim));
}

} // namespace

Result<Value> asInFile(const ir::TensorBuilder& b, const NamedTensor& tensor, const Shape& file,
                       const StateValues& states) {
  if (tensor.pieces.empty())
    return states.at(tensor.name);
  if (Value value = joined(b, tensor.pieces, states))
    return value;
  return Error::badInput("'{}' {}: its {} pieces cannot be taken apart by cuts through all of it",
                         printable(tensor.initializer), toString(file), tensor.pieces.size());
}

} // namespace titan::frontend
