// titan-lower-join-pads: a sum of zero-padded parts of one tensor is their concatenation.
#include "compiler/Lower/Passes.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_JOINPADS
#include "compiler/Lower/Passes.h.inc"

namespace {

/// The terms of a sum whose partial sums nothing else reads.
void collectTerms(Value value, bool isRoot, SmallVectorImpl<Value>& terms) {
  auto add = value.getDefiningOp<ir::AddOp>();
  if (!add || (!isRoot && !value.hasOneUse()))
    return terms.push_back(value);
  collectTerms(add.getLhs(), false, terms);
  collectTerms(add.getRhs(), false, terms);
}

/// Where a zero-padded part stands along the only dimension that is padded.
struct Part {
  ir::PadOp pad;
  int64_t dim, low;
};

std::optional<Part> partOf(Value term) {
  auto pad = term.getDefiningOp<ir::PadOp>();
  if (!pad || !pad.getValue().isZero() ||
      llvm::any_of(pad.getInterior(), [](int64_t interior) { return interior != 0; }))
    return std::nullopt;
  Part part = {pad, -1, 0};
  auto from = cast<RankedTensorType>(pad.getOperand().getType());
  auto to = cast<RankedTensorType>(pad.getType());
  for (int64_t d = 0; d < to.getRank(); ++d) {
    if (from.getDimSize(d) == to.getDimSize(d))
      continue;
    if (part.dim >= 0)
      return std::nullopt;
    part.dim = d;
    part.low = pad.getLow()[d];
  }
  return part.dim < 0 ? std::nullopt : std::optional(part);
}

/// The parts in order, if they cover the tensor without overlap.
FailureOr<SmallVector<Part>> partsOf(ir::AddOp sum) {
  SmallVector<Value> terms;
  collectTerms(sum.getResult(), /*isRoot=*/true, terms);
  SmallVector<Part> parts;
  for (Value term : terms) {
    std::optional<Part> part = partOf(term);
    if (!part || (!parts.empty() && part->dim != parts.front().dim))
      return failure();
    parts.push_back(*part);
  }
  llvm::stable_sort(parts, [](const Part& a, const Part& b) { return a.low < b.low; });
  int64_t end = 0, dim = parts.front().dim;
  for (Part part : parts) {
    if (part.low != end)
      return failure();
    end += cast<RankedTensorType>(part.pad.getOperand().getType()).getDimSize(dim);
  }
  if (end != cast<RankedTensorType>(sum.getType()).getDimSize(dim))
    return failure();
  return parts;
}

struct JoinPads : impl::JoinPadsBase<JoinPads> {
  void runOnOperation() override {
    SmallVector<ir::AddOp> sums;
    getOperation().walk([&](ir::AddOp add) { sums.push_back(add); });
    // From the last on: a tree's root comes before its partial sums, which are then dead.
    for (ir::AddOp sum : llvm::reverse(sums))
      if (!sum->use_empty())
        join(sum);
    for (ir::AddOp sum : llvm::reverse(sums))
      if (sum->use_empty())
        sum.erase();
  }

  static void join(ir::AddOp sum) {
    FailureOr<SmallVector<Part>> parts = partsOf(sum);
    if (failed(parts))
      return;
    SmallVector<Value> pieces;
    ArrayAttr path = ir::getPath(sum);
    for (Part part : *parts) {
      pieces.push_back(part.pad.getOperand());
      path = ir::joinPaths(path, ir::getPath(part.pad));
    }
    OpBuilder builder(sum);
    auto concat = ir::ConcatOp::create(builder, sum.getLoc(), pieces, parts->front().dim, path,
                                       sum->getAttrOfType<ir::PhaseAttr>("phase"));
    remark::passed(sum.getLoc(), remark::RemarkOpts::name("join-pads").category("lower"))
        << remark::add("{0} parts of '{1}' are joined instead of padded and added", parts->size(),
                       ir::describePlace(sum));
    sum.getResult().replaceAllUsesWith(concat.getResult());
  }
};

} // namespace
} // namespace titan
