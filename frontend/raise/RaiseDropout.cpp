#include "frontend/raise/Layout.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISEDROPOUT
#include "frontend/raise/Passes.h.inc"

namespace {

/// A mask, 1 with probability `keep` and else 0, times `constant`, repeated to another shape.
struct Mask {
  ir::RandomOp numbers;
  double keep = 0, constant = 1;
  SmallVector<int64_t> dims; ///< for each dimension of that shape the numbers' one, or -1
};

/// For each dimension of the result the operand's one, where the reshape only adds and drops
/// dimensions of extent 1; these are -1.
std::optional<SmallVector<int64_t>> unitsMoved(ir::ReshapeOp op) {
  if (!movesUnitsAlone(op))
    return std::nullopt;
  auto groups = matchMerge(ir::tensorType(op.getOperand()).getShape(), op.getType().getShape());
  return llvm::map_to_vector(
      *groups, [](const auto& group) -> int64_t { return group.empty() ? -1 : group.front(); });
}

/// The keep rate of `value`, a mask as it is computed, and the numbers that it compares.
std::optional<std::pair<ir::RandomOp, double>> matchDecision(Value value) {
  const auto uniform = [](Value numbers) {
    auto random = numbers.getDefiningOp<ir::RandomOp>();
    return random && random.getKind() == ir::RandomKind::Uniform ? random : ir::RandomOp();
  };
  const auto valid =
      [](ir::RandomOp numbers,
         std::optional<double> keep) -> std::optional<std::pair<ir::RandomOp, double>> {
    if (!numbers || !keep || *keep <= 0 || *keep >= 1)
      return std::nullopt;
    return std::pair(numbers, *keep);
  };
  if (auto convert = value.getDefiningOp<ir::ConvertOp>()) {
    auto compare = convert.getOperand().getDefiningOp<ir::CompareOp>();
    if (compare && compare.getPredicate() == ir::ComparePredicate::LT)
      return valid(uniform(compare.getLhs()), splatOf(compare.getRhs()));
    if (compare && compare.getPredicate() == ir::ComparePredicate::GT)
      return valid(uniform(compare.getRhs()), splatOf(compare.getLhs()));
  } else if (auto floor = value.getDefiningOp<ir::FloorOp>()) {
    if (auto sum = floor.getOperand().getDefiningOp<ir::AddOp>()) {
      if (auto match = valid(uniform(sum.getLhs()), splatOf(sum.getRhs())))
        return match;
      return valid(uniform(sum.getRhs()), splatOf(sum.getLhs()));
    }
  }
  return std::nullopt;
}

std::optional<Mask> matchMask(Value value) {
  Mask mask;
  for (int64_t d = 0; d < ir::tensorType(value).getRank(); ++d)
    mask.dims.push_back(d);
  const auto moveThrough = [&](ArrayRef<int64_t> of) {
    for (int64_t& d : mask.dims)
      d = d < 0 ? d : of[d];
  };
  while (Operation* op = value.getDefiningOp()) {
    if (auto decision = matchDecision(value)) {
      std::tie(mask.numbers, mask.keep) = *decision;
      return mask;
    }
    if (auto broadcast = dyn_cast<ir::BroadcastOp>(op)) {
      SmallVector<int64_t> of(broadcast.getType().getRank(), -1);
      for (auto [i, d] : llvm::enumerate(broadcast.getDims()))
        of[d] = static_cast<int64_t>(i);
      moveThrough(of);
    } else if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
      auto of = unitsMoved(reshape);
      if (!of)
        return std::nullopt;
      moveThrough(*of);
    } else if (auto div = dyn_cast<ir::DivOp>(op); div && splatOf(div.getRhs())) {
      mask.constant /= *splatOf(div.getRhs());
    } else if (auto mul = dyn_cast<ir::MulOp>(op); mul && splatOf(mul.getRhs())) {
      mask.constant *= *splatOf(mul.getRhs());
    } else if (mul && splatOf(mul.getLhs())) {
      mask.constant *= *splatOf(mul.getLhs());
      value = mul.getRhs();
      continue;
    } else {
      return std::nullopt;
    }
    value = op->getOperand(0);
  }
  return std::nullopt;
}

struct RaiseMasked : RaisePattern<ir::MulOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::MulOp op, ir::TensorBuilder& b) const override {
    for (auto [x, factor] :
         {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
      if (std::optional<Mask> mask = matchMask(factor))
        if (Value kept = keptOf(x, mask->constant * mask->keep))
          return masked(kept, *mask, b);
    return {};
  }

private:
  /// What is kept of `x`: all of it, where the mask has the mean 1, or what was scaled to that.
  static Value keptOf(Value x, double mean) {
    if (isClose(mean, 1))
      return x;
    if (auto div = x.getDefiningOp<ir::DivOp>())
      if (std::optional<double> by = splatOf(div.getRhs()); by && isClose(mean, *by))
        return div.getLhs();
    if (auto mul = x.getDefiningOp<ir::MulOp>())
      for (auto [y, factor] :
           {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())})
        if (std::optional<double> by = splatOf(factor); by && isClose(mean * *by, 1))
          return y;
    return {};
  }

  /// Null where the decisions, in the order of the mask, are not those of the numbers.
  static Value masked(Value x, Mask& mask, ir::TensorBuilder& b) {
    RankedTensorType type = ir::tensorType(x), numbers = mask.numbers.getType();
    SmallVector<int64_t> shared, drawn;
    for (auto [d, of] : llvm::enumerate(mask.dims)) {
      if (of < 0 || numbers.getDimSize(of) != type.getDimSize(d))
        shared.push_back(static_cast<int64_t>(d));
      else
        drawn.push_back(of);
    }
    int64_t decisions = 1;
    for (int64_t of : drawn)
      decisions *= numbers.getDimSize(of);
    if (!isa<FloatType>(type.getElementType()) || !llvm::is_sorted(drawn) ||
        decisions != numbers.getNumElements())
      return {};
    return b.create<ir::DropoutOp>(
        type, x, Value(), Value(), Value(), b.builder.getF64FloatAttr(1 - mask.keep),
        mask.numbers.getStreamAttr(), b.builder.getDenseI64ArrayAttr(shared), ir::WindowAttr());
  }
};

struct RaiseDropout : RaisePass<impl::RaiseDropoutBase<RaiseDropout>, ir::DropoutOp> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<RaiseMasked>(set.getContext());
  }
};

} // namespace

} // namespace titan::frontend
