// Meaning of embedding and its gradient, and of gather.
#include "compiler/Interpreter/Models.h"
#include "compiler/Interpreter/Scatter.h"

#include <algorithm>

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

LogicalResult embedding(EmbeddingOp op, Frame& frame) {
  const Tensor &table = frame.get(op.getTable()), &indices = frame.get(op.getIndices());
  Tensor result(cast<ShapedType>(op.getType()));
  int64_t rows = table.extent(0), width = table.strides()[0];
  auto gather = [&](auto from, auto to) {
    for (auto [i, index] : llvm::enumerate(indices.integers()))
      llvm::copy(from.slice(std::clamp<int64_t>(index, 0, rows - 1) * width, width),
                 to.begin() + i * width);
  };
  if (table.isFloat())
    gather(table.floats(), result.mutableFloats());
  else
    gather(table.integers(), result.mutableIntegers());
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult embeddingGrad(EmbeddingGradOp op, Frame& frame) {
  const Tensor &dresult = frame.get(op.getDresult()), &indices = frame.get(op.getIndices());
  auto type = cast<ShapedType>(op.getType());
  Tensor result = op.getAcc() ? frame.get(op.getAcc()) : Tensor(type);
  int64_t rows = type.getDimSize(0), width = result.strides()[0];
  MutableArrayRef<double> sums = result.mutableFloats();
  // The op fixes the order of its sums, so each partial sum is a value of the result's type.
  for (auto [i, index] : llvm::enumerate(indices.integers())) {
    ArrayRef<double> terms = dresult.floats().slice(i * width, width);
    int64_t row = std::clamp<int64_t>(index, 0, rows - 1);
    if (op.getPadding() && row == static_cast<int64_t>(*op.getPadding()))
      continue;
    for (auto [sum, term] : llvm::zip_equal(sums.slice(row * width, width), terms))
      sum = frame.round(sum + term, type.getElementType());
  }
  frame.set(op, std::move(result));
  return success();
}

LogicalResult gather(GatherOp op, Frame& frame) {
  Tensor result(cast<ShapedType>(op.getType()));
  gatherRows(shapeOf(op), frame.get(op.getOperand()), frame.get(op.getIndices()), result);
  frame.setExact(op, std::move(result));
  return success();
}

} // namespace

void attachIndexing(MLIRContext* context) {
  attach<EmbeddingOp, embedding>(context);
  attach<EmbeddingGradOp, embeddingGrad>(context);
  attach<GatherOp, gather>(context);
}

} // namespace titan::interpreter
