// Derivatives of the ops that move elements: their transposes.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

Value reshape(Builder& b, ReshapeOp op, Value dy) {
  return b.reshape(dy, tensorType(op.getOperand()).getShape());
}

Value transpose(Builder& b, TransposeOp op, Value dy) {
  SmallVector<int64_t> inverse(op.getPermutation().size());
  for (auto [i, d] : llvm::enumerate(op.getPermutation()))
    inverse[d] = static_cast<int64_t>(i);
  return b.transpose(dy, inverse);
}

Value broadcast(Builder& b, BroadcastOp op, Value dy) {
  SmallVector<int64_t> repeated;
  for (int64_t d = 0; d < tensorType(dy).getRank(); ++d)
    if (!llvm::is_contained(op.getDims(), d))
      repeated.push_back(d);
  return repeated.empty() ? dy : b.reduce(ReduceKind::Sum, dy, repeated);
}

void concat(Builder& b, ConcatOp op) {
  int64_t rank = tensorType(op.getResult()).getRank();
  SmallVector<int64_t> offsets(rank, 0), ones(rank, 1);
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    if (b.needs(i))
      b.set(i, b.create<SliceOp>(input.getType(), b.result(), offsets, ones));
    offsets[op.getDim()] += tensorType(input).getDimSize(op.getDim());
  }
}

Value slice(Builder& b, SliceOp op, Value dy) {
  SmallVector<int64_t> interior;
  for (int64_t stride : op.getStrides())
    interior.push_back(stride - 1);
  return b.create<PadOp>(op.getOperand().getType(), dy, op.getOffsets(), ArrayRef(interior),
                         APFloat(0.0));
}

Value reverse(Builder& b, ReverseOp op, Value dy) { return b.create<ReverseOp>(dy, op.getDims()); }

Value pad(Builder& b, PadOp op, Value dy) {
  SmallVector<int64_t> strides;
  for (int64_t interior : op.getInterior())
    strides.push_back(interior + 1);
  return b.create<SliceOp>(op.getOperand().getType(), dy, op.getLow(), ArrayRef(strides));
}

} // namespace

void attachShapeRules(MLIRContext* context) {
  attachUnaryRule<ReshapeOp, reshape>(context);
  attachUnaryRule<TransposeOp, transpose>(context);
  attachUnaryRule<BroadcastOp, broadcast>(context);
  attachRule<ConcatOp, concat>(context);
  attachUnaryRule<SliceOp, slice>(context);
  attachUnaryRule<ReverseOp, reverse>(context);
  attachUnaryRule<PadOp, pad>(context);
  attachRule<BarrierOp, [](Builder& b, BarrierOp op) {
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      if (b.result(i))
        b.set(i, b.result(i));
  }>(context);
}

} // namespace titan::autodiff
