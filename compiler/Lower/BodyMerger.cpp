#include "compiler/Lower/BodyMerger.h"

#include "compiler/Lower/Address.h"
#include "compiler/Lower/Classify.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// Does another result than `number` depend on dimension `dim`?
bool isUsedBesides(AffineMap map, unsigned number, unsigned dim) {
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    if (i != number && expr.isFunctionOfDim(dim))
      return true;
  return false;
}

} // namespace

bool BodyMerger::keepsReductions(const MergedPart& from, std::string& why) const {
  for (auto reduce : from.block.getOps<kernel::ReduceOp>()) {
    std::optional<SmallVector<int64_t>> dims = reducedDims(reduce, from);
    if (!dims) {
      why = "a reduced dimension is cut up";
      return false;
    }
    if (isRowReduction(*dims, space.extents) != isRowReduction(reduce.getDims(), from.space())) {
      why = "a reduction would change its order";
      return false;
    }
  }
  return true;
}

void BodyMerger::clone(MergedPart& from) {
  for (Operation& op : from.block.without_terminator()) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op)) {
      Value value =
          kernel::ReduceOp::create(builder, op.getLoc(), reduce.getType(), reduce.getKind(),
                                   from.body.lookup(reduce.getValue()), *reducedDims(reduce, from));
      from.body.map(reduce.getResult(), value);
    } else if (auto index = dyn_cast<kernel::IndexOp>(op)) {
      from.body.map(index.getResult(),
                    materialize(from.toOwn.getResult(index.getDim()), op.getLoc()));
    } else {
      builder.clone(op, from.body);
    }
  }
}

std::optional<SmallVector<int64_t>> BodyMerger::reducedDims(kernel::ReduceOp reduce,
                                                            const MergedPart& from) const {
  ArrayRef<int64_t> own = from.space();
  SmallVector<int64_t> dims;
  for (int64_t d : reduce.getDims()) {
    auto dim = dyn_cast<AffineDimExpr>(from.toOwn.getResult(d));
    if (!dim && own[d] == 1)
      continue;
    if (!dim || space.extents[dim.getPosition()] != own[d] ||
        (!dims.empty() && dims.back() >= dim.getPosition()) ||
        isUsedBesides(from.toOwn, d, dim.getPosition()))
      return std::nullopt;
    dims.push_back(dim.getPosition());
  }
  return dims;
}

Value BodyMerger::materialize(AffineExpr expr, Location loc) {
  Linear linear = *toLinear(expr, space.extents.size());
  Value sum;
  for (auto [d, stride] : llvm::enumerate(linear.strides)) {
    if (stride == 0)
      continue;
    Value term = kernel::IndexOp::create(builder, loc, d);
    if (stride != 1)
      term = arith::MulIOp::create(builder, loc, term,
                                   arith::ConstantIndexOp::create(builder, loc, stride));
    sum = sum ? arith::AddIOp::create(builder, loc, sum, term).getResult() : term;
  }
  if (!sum || linear.constant != 0) {
    Value constant = arith::ConstantIndexOp::create(builder, loc, linear.constant);
    sum = sum ? arith::AddIOp::create(builder, loc, sum, constant).getResult() : constant;
  }
  return sum;
}

} // namespace titan::lower
