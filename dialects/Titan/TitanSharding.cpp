// Factors of every titan op (ShardableOpInterface): written once here, read by batch re-binding,
// accumulation and sharding.
#include "dialects/Titan/ResultTypes.h"

using namespace mlir;

namespace titan::ir {

namespace {

ShardingRule emptyRule(Operation* op) {
  ShardingRule rule;
  auto resize = [](ShardingRule::Dims& dims, Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      dims.resize(tensor.getRank());
  };
  rule.operands.resize(op->getNumOperands());
  rule.results.resize(op->getNumResults());
  for (auto [dims, operand] : llvm::zip_equal(rule.operands, op->getOperands()))
    resize(dims, operand.getType());
  for (auto [dims, result] : llvm::zip_equal(rule.results, op->getResults()))
    resize(dims, result.getType());
  return rule;
}

/// One factor per dimension, shared by all tensors of the same rank; scalars stay whole.
ShardingRule elementwiseRule(Operation* op, ArrayRef<int64_t> wholeDims = {}) {
  ShardingRule rule = emptyRule(op);
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  for (auto [d, extent] : llvm::enumerate(shape)) {
    bool whole = llvm::is_contained(wholeDims, static_cast<int64_t>(d));
    int64_t factor = rule.addFactor(extent, whole ? FactorKind::Whole : FactorKind::Parallel);
    for (auto* side : {&rule.operands, &rule.results})
      for (ShardingRule::Dims& dims : *side)
        if (dims.size() == shape.size())
          dims[d] = {factor};
  }
  return rule;
}

} // namespace

#define TITAN_ELEMENTWISE_RULE(OP)                                                                 \
  ShardingRule OP::getShardingRule() { return elementwiseRule(*this); }
TITAN_ELEMENTWISE_RULE(NegOp)
TITAN_ELEMENTWISE_RULE(AbsOp)
TITAN_ELEMENTWISE_RULE(SignOp)
TITAN_ELEMENTWISE_RULE(FloorOp)
TITAN_ELEMENTWISE_RULE(CeilOp)
TITAN_ELEMENTWISE_RULE(RoundOp)
TITAN_ELEMENTWISE_RULE(ExpOp)
TITAN_ELEMENTWISE_RULE(LogOp)
TITAN_ELEMENTWISE_RULE(Log1pOp)
TITAN_ELEMENTWISE_RULE(SqrtOp)
TITAN_ELEMENTWISE_RULE(RsqrtOp)
TITAN_ELEMENTWISE_RULE(SinOp)
TITAN_ELEMENTWISE_RULE(CosOp)
TITAN_ELEMENTWISE_RULE(TanhOp)
TITAN_ELEMENTWISE_RULE(SigmoidOp)
TITAN_ELEMENTWISE_RULE(ErfOp)
TITAN_ELEMENTWISE_RULE(ReluOp)
TITAN_ELEMENTWISE_RULE(SiluOp)
TITAN_ELEMENTWISE_RULE(SoftplusOp)
TITAN_ELEMENTWISE_RULE(NotOp)
TITAN_ELEMENTWISE_RULE(GeluOp)
TITAN_ELEMENTWISE_RULE(LeakyReluOp)
TITAN_ELEMENTWISE_RULE(EluOp)
TITAN_ELEMENTWISE_RULE(HardSigmoidOp)
TITAN_ELEMENTWISE_RULE(IsFiniteOp)
TITAN_ELEMENTWISE_RULE(ConvertOp)
TITAN_ELEMENTWISE_RULE(AddOp)
TITAN_ELEMENTWISE_RULE(SubOp)
TITAN_ELEMENTWISE_RULE(MulOp)
TITAN_ELEMENTWISE_RULE(DivOp)
TITAN_ELEMENTWISE_RULE(MaxOp)
TITAN_ELEMENTWISE_RULE(MinOp)
TITAN_ELEMENTWISE_RULE(PowOp)
TITAN_ELEMENTWISE_RULE(AndOp)
TITAN_ELEMENTWISE_RULE(OrOp)
TITAN_ELEMENTWISE_RULE(CompareOp)
TITAN_ELEMENTWISE_RULE(SelectOp)
TITAN_ELEMENTWISE_RULE(BceWithLogitsOp)
#undef TITAN_ELEMENTWISE_RULE

ShardingRule BarrierOp::getShardingRule() {
  // Each value passes by itself: factors are not shared between them.
  ShardingRule rule = emptyRule(*this);
  for (auto [i, input] : llvm::enumerate(getInputs()))
    for (auto [d, extent] : llvm::enumerate(tensorType(input).getShape())) {
      int64_t factor = rule.addFactor(extent, FactorKind::Parallel);
      rule.operands[i][d] = rule.results[i][d] = {factor};
    }
  return rule;
}

ShardingRule ConstantOp::getShardingRule() {
  // A splat has any part of itself; other constants are needed whole.
  ShardingRule rule = emptyRule(*this);
  FactorKind kind = isa<SplatElementsAttr>(getValue()) ? FactorKind::Parallel : FactorKind::Whole;
  for (auto [d, extent] : llvm::enumerate(tensorType(getResult()).getShape()))
    rule.results[0][d] = {rule.addFactor(extent, kind)};
  return rule;
}

ShardingRule IotaOp::getShardingRule() { return elementwiseRule(*this, {(int64_t)getDim()}); }

ShardingRule DropoutOp::getShardingRule() {
  // Decisions are keyed by the global index, so a piece needs a window of its own: whoever splits a
  // dropout (accumulate, shard) sets it. The dimensions themselves are independent.
  return elementwiseRule(*this);
}

ShardingRule ReshapeOp::getShardingRule() {
  // Walks both shapes from the outermost dimension and groups those whose products agree: within a
  // group of one to one the factor is shared; otherwise the outermost factor of the group is split
  // as far as both sides allow.
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> from = tensorType(getOperand()).getShape(),
                    to = tensorType(getResult()).getShape();
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < from.size() ? from[i++] : 1, b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b && i < from.size())
        a *= from[i++];
      else if (b < a && j < to.size())
        b *= to[j++];
      else
        break;
    }
    if (i == i0 || j == j0)
      continue; // trailing extents of 1 on one side
    // Outer factors: from the left, while one side's extent divides the other's.
    int64_t restA = from[i0], restB = to[j0];
    size_t p = i0, q = j0;
    while (p < i && q < j) {
      int64_t common = std::min(restA, restB);
      if (common == 0 || restA % common != 0 || restB % common != 0) {
        // Extents do not nest: the rest of the group stays whole.
        int64_t factor = rule.addFactor(0, FactorKind::Whole);
        for (; p < i; ++p)
          rule.operands[0][p].push_back(factor);
        for (; q < j; ++q)
          rule.results[0][q].push_back(factor);
        break;
      }
      int64_t factor = rule.addFactor(common, FactorKind::Parallel);
      rule.operands[0][p].push_back(factor);
      rule.results[0][q].push_back(factor);
      restA /= common;
      restB /= common;
      if (restA == 1 && ++p < i)
        restA = from[p];
      if (restB == 1 && ++q < j)
        restB = to[q];
    }
  }
  return rule;
}

ShardingRule TransposeOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  for (auto [i, d] : llvm::enumerate(getPermutation())) {
    int64_t factor = rule.addFactor(tensorType(getResult()).getDimSize(i), FactorKind::Parallel);
    rule.operands[0][d] = rule.results[0][i] = {factor};
  }
  return rule;
}

ShardingRule BroadcastOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  for (auto [d, extent] : llvm::enumerate(tensorType(getResult()).getShape()))
    rule.results[0][d] = {rule.addFactor(extent, FactorKind::Parallel)};
  for (auto [i, d] : llvm::enumerate(getDims()))
    rule.operands[0][i] = rule.results[0][d];
  return rule;
}

ShardingRule ConcatOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> shape = tensorType(getResult()).getShape();
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    bool joined = d == static_cast<int64_t>(getDim());
    if (joined) {
      rule.results[0][d] = {rule.addFactor(shape[d], FactorKind::Whole)};
      for (auto [i, input] : llvm::enumerate(getInputs()))
        rule.operands[i][d] = {rule.addFactor(tensorType(input).getDimSize(d), FactorKind::Whole)};
      continue;
    }
    int64_t factor = rule.addFactor(shape[d], FactorKind::Parallel);
    rule.results[0][d] = {factor};
    for (ShardingRule::Dims& dims : rule.operands)
      dims[d] = {factor};
  }
  return rule;
}

/// Dimensions that pass unchanged are parallel; the others stay whole on each side.
static ShardingRule movedRule(Operation* op, function_ref<bool(int64_t)> unchanged) {
  ShardingRule rule = emptyRule(op);
  ArrayRef<int64_t> from = tensorType(op->getOperand(0)).getShape(),
                    to = tensorType(op->getResult(0)).getShape();
  for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d) {
    if (unchanged(d)) {
      int64_t factor = rule.addFactor(from[d], FactorKind::Parallel);
      rule.operands[0][d] = rule.results[0][d] = {factor};
    } else {
      rule.operands[0][d] = {rule.addFactor(from[d], FactorKind::Whole)};
      rule.results[0][d] = {rule.addFactor(to[d], FactorKind::Whole)};
    }
  }
  return rule;
}

ShardingRule SliceOp::getShardingRule() {
  return movedRule(*this, [&](int64_t d) {
    return tensorType(getOperand()).getDimSize(d) == tensorType(getResult()).getDimSize(d);
  });
}

ShardingRule PadOp::getShardingRule() {
  return movedRule(*this, [&](int64_t d) {
    return tensorType(getOperand()).getDimSize(d) == tensorType(getResult()).getDimSize(d);
  });
}

ShardingRule ContractOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs());
  int64_t position = 0;
  auto result = [&](int64_t factor) {
    rule.results[0][position] = {factor};
    if (getAcc())
      rule.operands[2][position] = {factor};
    ++position;
  };
  for (auto [l, r] : llvm::zip_equal(getLhsBatch(), getRhsBatch())) {
    int64_t factor = rule.addFactor(lhs.getDimSize(l), FactorKind::Parallel);
    rule.operands[0][l] = rule.operands[1][r] = {factor};
    result(factor);
  }
  for (int64_t d : getLhsFree()) {
    int64_t factor = rule.addFactor(lhs.getDimSize(d), FactorKind::Parallel);
    rule.operands[0][d] = {factor};
    result(factor);
  }
  for (int64_t d : getRhsFree()) {
    int64_t factor = rule.addFactor(rhs.getDimSize(d), FactorKind::Parallel);
    rule.operands[1][d] = {factor};
    result(factor);
  }
  // With an accumulator the pieces' sum would count it once a piece.
  FactorKind contracted = getAcc() ? FactorKind::Whole : FactorKind::Reduction;
  for (auto [l, r] : llvm::zip_equal(getLhsContracting(), getRhsContracting())) {
    int64_t factor = rule.addFactor(lhs.getDimSize(l), contracted);
    rule.operands[0][l] = rule.operands[1][r] = {factor};
  }
  return rule;
}

/// Operand dimensions in order; those in `dims` are `reduced`, the others appear in the results.
static ShardingRule reductionRule(Operation* op, ArrayRef<int64_t> dims, FactorKind reduced) {
  ShardingRule rule = emptyRule(op);
  int64_t position = 0;
  for (auto [d, extent] : llvm::enumerate(tensorType(op->getOperand(0)).getShape())) {
    bool gone = llvm::is_contained(dims, static_cast<int64_t>(d));
    int64_t factor = rule.addFactor(extent, gone ? reduced : FactorKind::Parallel);
    rule.operands[0][d] = {factor};
    if (!gone)
      rule.results[0][position++] = {factor};
  }
  return rule;
}

ShardingRule ReduceOp::getShardingRule() {
  return reductionRule(*this, getDims(),
                       getKind() == ReduceKind::Sum ? FactorKind::Reduction : FactorKind::Whole);
}

ShardingRule ArgmaxOp::getShardingRule() {
  return reductionRule(*this, {static_cast<int64_t>(getDim())}, FactorKind::Whole);
}

ShardingRule SoftmaxOp::getShardingRule() { return elementwiseRule(*this, {(int64_t)getDim()}); }
ShardingRule LogSoftmaxOp::getShardingRule() { return elementwiseRule(*this, {(int64_t)getDim()}); }

ShardingRule LayerNormOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  int64_t axis = getAxis();
  for (auto [i, extent] : llvm::enumerate(tensorType(getOperand()).getShape())) {
    int64_t d = i;
    int64_t factor = rule.addFactor(extent, d < axis ? FactorKind::Parallel : FactorKind::Whole);
    rule.operands[0][d] = rule.results[0][d] = {factor};
    if (d < axis)
      rule.results[1][d] = rule.results[2][d] = {factor};
    else
      for (unsigned affine = 1; affine < rule.operands.size(); ++affine)
        rule.operands[affine][d - axis] = {factor};
  }
  return rule;
}

/// Rows are parallel, the class dimension stays whole.
static ShardingRule crossEntropyRule(Operation* op, Value logits) {
  ShardingRule rule = emptyRule(op);
  ArrayRef<int64_t> shape = tensorType(logits).getShape();
  for (size_t d = 0; d < shape.size(); ++d) {
    bool classes = d + 1 == shape.size();
    int64_t factor = rule.addFactor(shape[d], classes ? FactorKind::Whole : FactorKind::Parallel);
    for (auto* side : {&rule.operands, &rule.results})
      for (ShardingRule::Dims& dims : *side)
        if (d < dims.size())
          dims[d] = {factor};
  }
  return rule;
}

ShardingRule CrossEntropyOp::getShardingRule() { return crossEntropyRule(*this, getLogits()); }
ShardingRule CrossEntropyGradOp::getShardingRule() { return crossEntropyRule(*this, getLogits()); }

ShardingRule RmsNormOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  int64_t axis = getAxis();
  for (auto [i, extent] : llvm::enumerate(tensorType(getOperand()).getShape())) {
    int64_t d = i;
    int64_t factor = rule.addFactor(extent, d < axis ? FactorKind::Parallel : FactorKind::Whole);
    rule.operands[0][d] = rule.results[0][d] = {factor};
    if (d < axis)
      rule.results[1][d] = {factor};
    else if (getScale())
      rule.operands[1][d - axis] = {factor};
  }
  return rule;
}

ShardingRule EmbeddingOp::getShardingRule() {
  // Rows are looked up anywhere in the table, so it stays whole along them.
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> table = tensorType(getTable()).getShape();
  int64_t position = 0;
  for (auto [d, extent] : llvm::enumerate(tensorType(getIndices()).getShape())) {
    int64_t factor = rule.addFactor(extent, FactorKind::Parallel);
    rule.operands[1][d] = rule.results[0][position++] = {factor};
  }
  rule.operands[0][0] = {rule.addFactor(table[0], FactorKind::Whole)};
  for (size_t d = 1; d < table.size(); ++d)
    rule.operands[0][d] =
        rule.results[0][position++] = {rule.addFactor(table[d], FactorKind::Parallel)};
  return rule;
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> dresult = tensorType(getDresult()).getShape();
  int64_t leading = tensorType(getIndices()).getRank();
  int64_t rows = rule.addFactor(getRows(), FactorKind::Whole);
  rule.results[0][0] = {rows};
  if (getAcc())
    rule.operands[2][0] = {rows};
  for (int64_t d = 0; d < static_cast<int64_t>(dresult.size()); ++d) {
    // With an accumulator the pieces' sum would count it once a piece.
    FactorKind kind = d >= leading ? FactorKind::Parallel
                      : getAcc()   ? FactorKind::Whole
                                   : FactorKind::Reduction;
    int64_t factor = rule.addFactor(dresult[d], kind);
    rule.operands[0][d] = {factor};
    if (d < leading) {
      rule.operands[1][d] = {factor};
      continue;
    }
    rule.results[0][d - leading + 1] = {factor};
    if (getAcc())
      rule.operands[2][d - leading + 1] = {factor};
  }
  return rule;
}

namespace {

/// The factors of attention and its gradient. Batch and heads are independent, and so are the
/// queries of a forward pass without `causal` (a piece would have to know where it stands). Query
/// heads are split with the key heads that they read: the factor of a head is the outermost of
/// query's and the only one of key's, so grouped heads have a second one for the group.
struct AttentionFactors {
  ShardingRule rule;
  int64_t batch, queries, keys, heads, group = -1, width, valueWidth;

  template <typename OpTy> AttentionFactors(OpTy op, FactorKind queryKind) {
    rule = emptyRule(op);
    ArrayRef<int64_t> q = tensorType(op.getQuery()).getShape(),
                      v = tensorType(op.getValue()).getShape();
    batch = rule.addFactor(q[0], FactorKind::Parallel);
    queries = rule.addFactor(q[1], queryKind);
    keys = rule.addFactor(v[1], FactorKind::Whole);
    heads = rule.addFactor(v[2], FactorKind::Parallel);
    if (q[2] != v[2])
      group = rule.addFactor(q[2] / v[2], FactorKind::Whole);
    width = rule.addFactor(q[3], FactorKind::Whole);
    valueWidth = rule.addFactor(v[3], FactorKind::Whole);
  }

  SmallVector<int64_t, 1> queryHeads() const {
    if (group < 0)
      return {heads};
    return {heads, group};
  }
  ShardingRule::Dims query(int64_t inner) const {
    return {{batch}, {queries}, queryHeads(), {inner}};
  }
  ShardingRule::Dims key(int64_t inner) const { return {{batch}, {keys}, {heads}, {inner}}; }
  ShardingRule::Dims logSumExp() const { return {{batch}, queryHeads(), {queries}}; }
  /// A dimension that is broadcast takes part in no factor.
  ShardingRule::Dims mask(Value value) const {
    ShardingRule::Dims dims = {{batch}, queryHeads(), {queries}, {keys}};
    for (auto [d, extent] : llvm::enumerate(tensorType(value).getShape()))
      if (extent == 1)
        dims[d].clear();
    return dims;
  }
};

} // namespace

ShardingRule AttentionOp::getShardingRule() {
  AttentionFactors f(*this, getCausal() ? FactorKind::Whole : FactorKind::Parallel);
  f.rule.operands[0] = f.query(f.width);
  f.rule.operands[1] = f.key(f.width);
  f.rule.operands[2] = f.key(f.valueWidth);
  if (Value mask = getMask())
    f.rule.operands[3] = f.mask(mask);
  f.rule.results[0] = f.query(f.valueWidth);
  f.rule.results[1] = f.logSumExp();
  return f.rule;
}

ShardingRule AttentionGradOp::getShardingRule() {
  // dkey and dvalue sum over the queries, dquery does not: no one factor kind says both.
  AttentionFactors f(*this, FactorKind::Whole);
  f.rule.operands[0] = f.query(f.width);
  f.rule.operands[1] = f.key(f.width);
  f.rule.operands[2] = f.key(f.valueWidth);
  f.rule.operands[3] = f.rule.operands[5] = f.query(f.valueWidth);
  f.rule.operands[4] = f.logSumExp();
  if (Value mask = getMask())
    f.rule.operands[6] = f.mask(mask);
  f.rule.results[0] = f.query(f.width);
  f.rule.results[1] = f.key(f.width);
  f.rule.results[2] = f.key(f.valueWidth);
  return f.rule;
}

ShardingRule RotaryOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> shape = tensorType(getOperand()).getShape();
  for (auto [d, extent] : llvm::enumerate(shape)) {
    int64_t factor = rule.addFactor(extent, d == 3 ? FactorKind::Whole : FactorKind::Parallel);
    rule.operands[0][d] = rule.results[0][d] = {factor};
  }
  RankedTensorType angles = tensorType(getCos());
  int64_t rank = angles.getRank(),
          pairs = rule.addFactor(angles.getShape().back(), FactorKind::Whole);
  for (unsigned table : {1u, 2u}) {
    rule.operands[table][rank - 1] = {pairs};
    rule.operands[table][rank - 2] = rule.operands[0][1];
    if (rank == 3 && angles.getDimSize(0) != 1)
      rule.operands[table][0] = rule.operands[0][0];
  }
  return rule;
}

} // namespace titan::ir
