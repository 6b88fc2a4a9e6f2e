// Derivative of titan.contract: a contraction with the other operand, over that operand's free
// dimensions.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

SmallVector<int64_t> range(int64_t first, int64_t count) {
  return llvm::to_vector(llvm::seq<int64_t>(first, first + count));
}

/// One operand of the product, as its adjoint sees it. `free` are its free dimensions, which stand
/// at `freeAt` on in the result; `batch` and `contracting` pair up with the other side's.
struct Side {
  Value value;
  ArrayRef<int64_t> batch, contracting;
  SmallVector<int64_t> free;
  int64_t freeAt;
};

/// The adjoint of `side`: [batch, free, contracting] or [batch, contracting, free], whichever needs
/// no transposition to become the operand's order.
Value adjointOf(Builder& b, const Side& side, const Side& other) {
  Type element = tensorType(side.value).getElementType();
  int64_t batches = side.batch.size();
  Value dy = b.convert(b.result(), element); // both operands of a contraction have one type

  // Dimensions of `side` in the order of the product's result. The other side's contracting
  // dimensions come out in its own order and name the paired dimensions of `side`.
  SmallVector<int64_t> contracting;
  for (int64_t d = 0; d < tensorType(other.value).getRank(); ++d)
    if (auto found = llvm::find(other.contracting, d); found != other.contracting.end())
      contracting.push_back(side.contracting[found - other.contracting.begin()]);
  auto permutationFrom = [&](ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
    SmallVector<int64_t> permutation(tensorType(side.value).getRank());
    int64_t position = 0;
    for (int64_t d : llvm::concat<const int64_t>(side.batch, first, second))
      permutation[d] = position++;
    return permutation;
  };
  SmallVector<int64_t> dyBatch = range(0, batches);
  SmallVector<int64_t> summed = range(other.freeAt, other.free.size());
  SmallVector<int64_t> contractingFirst = permutationFrom(contracting, side.free);
  SmallVector<int64_t> freeFirst = permutationFrom(side.free, contracting);
  Value product;
  bool swap = llvm::is_sorted(contractingFirst) && !llvm::is_sorted(freeFirst);
  if (swap)
    product = b.create<ContractOp>(other.value, dy, Value(), other.batch, ArrayRef(dyBatch),
                                   ArrayRef(other.free), ArrayRef(summed));
  else
    product = b.create<ContractOp>(dy, other.value, Value(), ArrayRef(dyBatch), other.batch,
                                   ArrayRef(summed), ArrayRef(other.free));
  SmallVector<int64_t>& permutation = swap ? contractingFirst : freeFirst;
  if (!llvm::is_sorted(permutation))
    product = b.transpose(product, permutation);
  return b.convert(product, element);
}

void contract(Builder& b, ContractOp op) {
  SmallVector<int64_t> lhsFree = op.getLhsFree(), rhsFree = op.getRhsFree();
  int64_t batches = op.getLhsBatch().size(), lhsFreeCount = lhsFree.size();
  Side lhs{op.getLhs(), op.getLhsBatch(), op.getLhsContracting(), lhsFree, batches};
  Side rhs{op.getRhs(), op.getRhsBatch(), op.getRhsContracting(), rhsFree, batches + lhsFreeCount};
  if (b.needs(0))
    b.set(0, adjointOf(b, lhs, rhs));
  if (b.needs(1))
    b.set(1, adjointOf(b, rhs, lhs));
  if (op.getAcc() && b.needs(2))
    b.set(2, b.result());
}

} // namespace

void attachContractionRules(MLIRContext* context) { attachRule<ContractOp, contract>(context); }

} // namespace titan::autodiff
