#include "compiler/Autodiff/Passes.h"
#include "compiler/Support/SumTree.h"
#include "dialects/Titan/TensorBuilder.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {

#define GEN_PASS_DEF_COMBINEPIECES
#include "compiler/Autodiff/Passes.h.inc"

namespace {

/// A term of a sum that is zero outside of elements low, low + step, ... of one dimension.
struct Piece {
  Value term, inner; ///< padded, and without the padding
  int64_t dim, low, step, length;
  size_t index = 0; ///< of the term in its sum

  int64_t end() const { return low + length; }
};

std::optional<Piece> pieceOf(Value term) {
  auto pad = term.getDefiningOp<PadOp>();
  if (!pad || !pad.getValue().isZero() || !pad->hasOneUse())
    return std::nullopt;
  std::optional<Piece> piece;
  ArrayRef<int64_t> shape = tensorType(pad.getOperand()).getShape();
  for (auto [d, extent] : llvm::enumerate(shape)) {
    int64_t dim = d;
    if (extent == tensorType(term).getDimSize(dim))
      continue;
    if (piece)
      return std::nullopt;
    piece =
        Piece{term, pad.getOperand(), dim, pad.getLow()[dim], pad.getInterior()[dim] + 1, extent};
  }
  return piece;
}

SmallVector<int64_t> withExtent(RankedTensorType type, int64_t dim, int64_t extent) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = extent;
  return shape;
}

/// As many of `pieces`, which are sorted, as lie beside each other, one after the other.
SmallVector<Piece> withoutOverlap(ArrayRef<Piece> pieces) {
  SmallVector<Piece> kept;
  for (const Piece& piece : pieces)
    if (kept.empty() || piece.low >= kept.back().end())
      kept.push_back(piece);
  return kept;
}

/// The sum of contiguous pieces: joined, with zeros in the gaps, and padded where they do not reach
/// the ends.
Value join(const TensorBuilder& b, ArrayRef<Piece> pieces) {
  RankedTensorType type = tensorType(pieces.front().term);
  int64_t dim = pieces.front().dim;
  SmallVector<Value> parts;
  int64_t position = pieces.front().low;
  for (const Piece& piece : pieces) {
    if (piece.low > position)
      parts.push_back(b.splat(type.clone(withExtent(type, dim, piece.low - position)), 0));
    parts.push_back(piece.inner);
    position = piece.end();
  }
  Value joined = b.create<ConcatOp>(parts, dim);
  if (tensorType(joined) == type)
    return joined;
  SmallVector<int64_t> low(type.getRank(), 0), interior(type.getRank(), 0);
  low[dim] = pieces.front().low;
  return b.create<PadOp>(type, joined, low, ArrayRef(interior), APFloat(0.0));
}

/// The sum of `pieces` that take turns, each one element: joined along a dimension of their own.
Value interleave(const TensorBuilder& b, ArrayRef<Piece> pieces) {
  RankedTensorType type = tensorType(pieces.front().term);
  int64_t dim = pieces.front().dim;
  SmallVector<Value> parts;
  for (const Piece& piece : pieces) {
    SmallVector<int64_t> shape = withExtent(type, dim, piece.length);
    shape.insert(shape.begin() + dim + 1, 1);
    parts.push_back(b.reshape(piece.inner, shape));
  }
  return b.reshape(b.create<ConcatOp>(parts, dim + 1), type.getShape());
}

/// Combines some of `pieces`, all along one dimension; those that it used are taken out of `terms`,
/// and their sum is put where the first of them was.
void combine(SmallVectorImpl<Value>& terms, SmallVector<Piece> pieces, const TensorBuilder& b) {
  llvm::sort(pieces, [](const Piece& x, const Piece& y) {
    return std::pair(x.low, x.index) < std::pair(y.low, y.index);
  });
  SmallVector<Piece> used;
  Value sum;
  int64_t step = pieces.front().step;
  int64_t extent = tensorType(pieces.front().term).getDimSize(pieces.front().dim);
  if (step == 1) {
    used = withoutOverlap(pieces);
    if (used.size() < 2)
      return;
    sum = join(b, used);
  } else {
    used = pieces;
    if (static_cast<int64_t>(used.size()) != step || extent % step != 0)
      return;
    for (auto [i, piece] : llvm::enumerate(used))
      if (piece.low != static_cast<int64_t>(i) || piece.length != extent / step)
        return;
    sum = interleave(b, used);
  }
  auto isUsed = [&](Value term) {
    return llvm::any_of(used, [&](const Piece& piece) { return piece.term == term; });
  };
  *llvm::find_if(terms, isUsed) = sum;
  llvm::erase_if(terms, isUsed);
}

void combineTerms(AddOp root) {
  SumTree tree(root);
  SmallVector<Piece> pieces;
  for (auto [i, term] : llvm::enumerate(tree.terms))
    if (std::optional<Piece> piece = pieceOf(term)) {
      piece->index = i;
      pieces.push_back(*piece);
    }
  OpBuilder builder(root);
  TensorBuilder b(builder, root);
  SmallVector<Value> terms = tree.terms;
  while (pieces.size() > 1) {
    // One dimension and one step at a time, in the order of the terms.
    SmallVector<Piece> alike, others;
    for (const Piece& piece : pieces)
      (piece.dim == pieces.front().dim && piece.step == pieces.front().step ? alike : others)
          .push_back(piece);
    if (alike.size() > 1)
      combine(terms, alike, b);
    pieces = others;
  }
  if (terms.size() == tree.terms.size())
    return;
  remark::passed(root.getLoc(),
                 remark::RemarkOpts::name("combine-pieces").category("differentiate"))
      << remark::add("pieces of '{0}' are joined instead of padded and added: {1} terms become {2}",
                     describePlace(root), tree.terms.size(), terms.size());
  Value sum = terms.front();
  for (Value term : ArrayRef(terms).drop_front())
    sum = b.add(sum, term);
  tree.replaceBy(sum);
  for (Value term : tree.terms)
    if (term.use_empty())
      term.getDefiningOp()->erase();
}

struct CombinePiecesPass : impl::CombinePiecesBase<CombinePiecesPass> {
  void runOnOperation() override {
    SmallVector<AddOp> roots;
    getOperation().walk([&](AddOp add) {
      if (SumTree::isRoot(add))
        roots.push_back(add);
    });
    for (AddOp root : roots)
      combineTerms(root);
  }
};

} // namespace
} // namespace titan
