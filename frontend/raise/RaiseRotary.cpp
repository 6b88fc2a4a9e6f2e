#include "frontend/raise/Layout.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"
#include "frontend/raise/RotaryPairs.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISEROTARY
#include "frontend/raise/Passes.h.inc"

namespace {

/// The table of one element per pair in the shape that titan.rotary wants, of a table that has each
/// twice.
Value halved(const ir::TensorBuilder& b, const Table& table, Pairing pairing) {
  SmallVector<int64_t> shape = table.shape;
  shape.back() /= 2;
  return reshaped(b, firstOfPairs(b, table.value, pairing), shape);
}

/// x turned by the angles. Sequences are [B, T, H, D]; where x has heads before positions, it is
/// transposed and back.
Value rotated(const ir::TensorBuilder& b, Value x, int64_t positions, Value cos, Value sin,
              Pairing pairing) {
  SmallVector<int64_t> shape(ir::tensorType(x).getShape());
  if (shape.size() == 3) {
    // One head, without a dimension of its own.
    Value result =
        rotated(b, b.reshape(x, {shape[0], shape[1], 1, shape[2]}), positions, cos, sin, pairing);
    return b.reshape(result, shape);
  }
  bool headsFirst = positions == 2;
  SmallVector<int64_t> swap = {0, 2, 1, 3};
  Value operand = headsFirst ? transposed(b, x, swap) : x;
  Value result =
      b.create<ir::RotaryOp>(operand.getType(), operand, cos, sin,
                             pairing == Pairing::Neighbours ? b.builder.getUnitAttr() : UnitAttr());
  return headsFirst ? b.transpose(result, swap) : result;
}

/// The two factors of a product, a table second.
std::optional<std::pair<Value, Table>> matchTimesTable(Value value) {
  auto mul = value.getDefiningOp<ir::MulOp>();
  if (!mul)
    return std::nullopt;
  for (auto [x, table] : {std::pair(mul.getLhs(), mul.getRhs()), {mul.getRhs(), mul.getLhs()}})
    if (auto found = matchTable(table))
      return std::pair(x, *found);
  return std::nullopt;
}

/// x cos + join(-second(x), first(x)) sin
struct RaiseTurned : RaisePattern<ir::AddOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::AddOp op, ir::TensorBuilder& b) const override {
    auto left = matchTimesTable(op.getLhs()), right = matchTimesTable(op.getRhs());
    if (!left || !right || left->second.dims != right->second.dims)
      return {};
    for (auto [straight, turned] : {std::pair(*left, *right), {*right, *left}}) {
      Value x = straight.first;
      auto join = matchJoin(turned.first);
      auto neg = join ? join->first.getDefiningOp<ir::NegOp>() : ir::NegOp();
      auto second = neg ? matchPart(neg.getOperand()) : std::nullopt;
      auto first = neg ? matchPart(join->second) : std::nullopt;
      if (!first || !second || !isWhole(*first, x) || !isWhole(*second, x) || first->second ||
          !second->second || first->pairing != join->pairing || second->pairing != join->pairing)
        continue;
      Pairing pairing = join->pairing;
      Value cos = straight.second.value, sin = turned.second.value;
      if (!repeatsPairs(cos, pairing) || !repeatsPairs(sin, pairing))
        continue;
      return rotated(b, x, positionDim(straight.second), halved(b, straight.second, pairing),
                     halved(b, turned.second, pairing), pairing);
    }
    return {};
  }
};

/// join(first(x) cos - second(x) sin, second(x) cos + first(x) sin), and with the signs of the
/// opposite rotation.
template <typename Op> struct RaiseJoined : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    auto join = matchJoin(op->getResult(0));
    auto first = join ? matchSum(join->first, join->pairing, /*straight=*/false) : std::nullopt;
    auto second = first ? matchSum(join->second, join->pairing, /*straight=*/true) : std::nullopt;
    if (!second || !samePart(first->across.part, second->straight.part) ||
        !samePart(first->straight.part, second->across.part) ||
        !samePart(first->straight.part, first->across.part) ||
        !sameTable(first->straight.table, second->straight.table))
      return {};
    const Table &cos = first->straight.table, &sin = second->across.table;
    if (cos.dims != sin.dims ||
        !(first->negative != second->negative ? sameTable(first->across.table, sin)
                                              : isNegated(first->across.table, sin)))
      return {};
    const Part& part = first->straight.part;
    Value angles = reshaped(b, sin.value, sin.shape);
    if (second->negative)
      angles = b.neg(angles);
    Value turned = rotated(b, reshaped(b, part.source, part.shape), positionDim(cos),
                           reshaped(b, cos.value, cos.shape), angles, join->pairing);
    return reshaped(b, turned, ir::tensorType(op->getResult(0)).getShape());
  }

private:
  struct Term {
    Part part;
    Table table;
  };
  /// One element of the turned pair: the same element times the cosine, plus or minus the other one
  /// times the sine.
  struct Sum {
    Term straight, across;
    bool negative;
  };

  /// `straight`: the sum is the pair's second element.
  static std::optional<Sum> matchSum(Value value, Pairing pairing, bool straight) {
    Operation* op = value.getDefiningOp();
    if (!isa_and_nonnull<ir::AddOp, ir::SubOp>(op))
      return std::nullopt;
    auto left = term(op->getOperand(0), pairing), right = term(op->getOperand(1), pairing);
    if (!left || !right || left->part.second == right->part.second)
      return std::nullopt;
    bool negative = isa<ir::SubOp>(op);
    if (left->part.second == straight)
      return Sum{*left, *right, negative};
    return negative ? std::nullopt : std::optional(Sum{*right, *left, negative});
  }
  static std::optional<Term> term(Value value, Pairing pairing) {
    auto product = matchTimesTable(value);
    auto part = product ? matchPart(product->first) : std::nullopt;
    if (!part || part->pairing != pairing || part->shape.size() < 3 || part->shape.size() > 4)
      return std::nullopt;
    return Term{*part, product->second};
  }
  static bool samePart(const Part& a, const Part& b) {
    return a.source == b.source && a.shape == b.shape;
  }
  static bool sameTable(const Table& a, const Table& b) {
    return a.value == b.value && a.dims == b.dims;
  }
};

/// Partial rotation: concat(rotary(the first R of x), the rest of x).
struct FoldRest : RaisePattern<ir::ConcatOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ConcatOp op, ir::TensorBuilder& b) const override {
    if (op.getInputs().size() != 2 ||
        static_cast<int64_t>(op.getDim()) != ir::tensorType(op.getResult()).getRank() - 1)
      return {};
    // The rotation may stand between transpositions that leave the last dimension alone.
    auto outer = op.getInputs()[0].getDefiningOp<ir::TransposeOp>();
    auto rotary = (outer ? outer.getOperand() : op.getInputs()[0]).getDefiningOp<ir::RotaryOp>();
    if (!rotary || !rotary.getResult().hasOneUse() || (outer && !outer->hasOneUse()))
      return {};
    auto inner = rotary.getOperand().getDefiningOp<ir::TransposeOp>();
    if (static_cast<bool>(outer) != static_cast<bool>(inner) ||
        (outer && inverse(outer.getPermutation()) != inner.getPermutation()))
      return {};
    auto turned = (inner ? inner.getOperand() : rotary.getOperand()).getDefiningOp<ir::SliceOp>();
    auto rest = op.getInputs()[1].getDefiningOp<ir::SliceOp>();
    if (!turned || !rest || turned.getOperand() != rest.getOperand() ||
        turned.getOperand().getType() != op.getType() || !cutsLastOnly(turned) ||
        !cutsLastOnly(rest) || turned.getOffsets().back() != 0 || turned.getStrides().back() != 1 ||
        rest.getStrides().back() != 1 || rest.getOffsets().back() != lastExtent(turned.getResult()))
      return {};
    b.path = joinedPath(rotary, op);
    Value x = turned.getOperand();
    if (inner)
      x = transposed(b, x, inner.getPermutation());
    Value result = b.create<ir::RotaryOp>(x.getType(), x, rotary.getCos(), rotary.getSin(),
                                          rotary.getInterleavedAttr());
    return outer ? b.transpose(result, outer.getPermutation()) : result;
  }
};

struct RaiseRotary : RaisePass<impl::RaiseRotaryBase<RaiseRotary>, ir::RotaryOp> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<RaiseTurned, RaiseJoined<ir::ConcatOp>, RaiseJoined<ir::ReshapeOp>, FoldRest>(
        set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
