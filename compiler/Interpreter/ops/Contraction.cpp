// Meaning of titan.contract: both operands are brought into the order [batch, free, contracting],
// then multiplied.
#include "compiler/Interpreter/Matmul.h"
#include "compiler/Interpreter/Models.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// `tensor` with its dimensions in the order given by the three lists.
Tensor ordered(const Tensor& tensor, ArrayRef<int64_t> a, ArrayRef<int64_t> b,
               ArrayRef<int64_t> c) {
  Walk from;
  SmallVector<int64_t> shape;
  SmallVector<int64_t> strides = tensor.strides();
  for (int64_t d : llvm::concat<const int64_t>(a, b, c)) {
    from.strides.push_back(strides[d]);
    shape.push_back(tensor.extent(d));
  }
  Tensor result(shape, tensor.element());
  copyElements(shape, tensor, from, result, wholeWalk(result));
  return result;
}

int64_t product(const Tensor& tensor, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    count *= tensor.extent(d);
  return count;
}

LogicalResult contract(ContractOp op, Frame& frame) {
  const Tensor &lhs = frame.get(op.getLhs()), &rhs = frame.get(op.getRhs());
  int64_t batch = product(lhs, op.getLhsBatch()), m = product(lhs, op.getLhsFree()),
          n = product(rhs, op.getRhsFree()), k = product(lhs, op.getLhsContracting());
  Tensor a = ordered(lhs, op.getLhsBatch(), op.getLhsFree(), op.getLhsContracting());
  Tensor b = ordered(rhs, op.getRhsBatch(), op.getRhsContracting(), op.getRhsFree());
  Tensor result(cast<ShapedType>(op.getType()));
  for (int64_t i = 0; i < batch; ++i)
    multiplyAdd(m, n, k, a.floats().data() + i * m * k, k, 1, b.floats().data() + i * k * n, n,
                result.mutableFloats().data() + i * m * n, n);
  if (op.getAcc()) {
    // "rounded once more": the sum of products is a value of the result's type before it is added.
    for (auto [x, y] : llvm::zip_equal(result.mutableFloats(), frame.get(op.getAcc()).floats()))
      x = frame.round(x, result.element()) + y;
  }
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachContraction(MLIRContext* context) { attach<ContractOp, contract>(context); }

} // namespace titan::interpreter
