#include "compiler/Shard/Padding.h"

using namespace mlir;

namespace titan {

RankedTensorType joinedType(RankedTensorType part, int64_t dim, int64_t ranks) {
  SmallVector<int64_t> shape(part.getShape());
  shape[dim] *= ranks;
  return part.clone(shape);
}

Value padTo(const ir::TensorBuilder& t, Value value, RankedTensorType whole,
            RankedTensorType joined) {
  if (whole == joined)
    return value;
  const SmallVector<int64_t> none(whole.getRank(), 0);
  return t.create<ir::PadOp>(joined, value, none, none, APFloat(0.0));
}

Value cutTo(const ir::TensorBuilder& t, Value value, RankedTensorType joined,
            RankedTensorType whole) {
  if (whole == joined)
    return value;
  const SmallVector<int64_t> first(whole.getRank(), 0), one(whole.getRank(), 1);
  return t.create<ir::SliceOp>(whole, value, first, one);
}

} // namespace titan
