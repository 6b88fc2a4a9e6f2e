#include "dialects/Titan/ops/OpSupport.h"
#include "dialects/Titan/ops/Random.h"

using namespace mlir;

namespace titan::ir {

/// (C1) to (C4) of titan.attention.
template <typename OpTy> static LogicalResult verifyAttention(OpTy op) {
  Value result = op.getResult(), logSumExp = op.getLogSumExp(), largest = op.getLargest();
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey()),
                   value = tensorType(op.getValue());
  Type element = query.getElementType();
  if (query.getRank() != 4 || key.getRank() != 4 || value.getRank() != 4 ||
      key.getElementType() != element || value.getElementType() != element)
    return op.emitOpError("(C1) ")
           << query << ", " << key << " and " << value << " are not of rank 4 and one element type";
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  if (q[0] != k[0] || k.drop_back() != v.drop_back() || q[3] != k[3] || k[2] == 0 ||
      q[2] % k[2] != 0)
    return op.emitOpError("(C1) query ")
           << query << ", key " << key << " and value " << value << " do not fit together";
  SmallVector<int64_t> scores = {q[0], q[2], q[1], k[1]};
  if (Value mask = op.getMask()) {
    RankedTensorType type = tensorType(mask);
    bool fits =
        type.getRank() == 4 && type.getDimSize(3) == scores[3] &&
        (type.getElementType().isInteger(1) || type.getElementType() == accumulationType(element));
    for (int64_t d = 0; fits && d < 3; ++d)
      fits = type.getDimSize(d) == scores[d] || type.getDimSize(d) == 1;
    if (!fits)
      return op.emitOpError("(C2) mask ") << type << " does not fit scores [" << scores << "]";
  }
  if (FloatAttr fill = op.getFillAttr()) {
    bool isBoolean = op.getMask() && tensorType(op.getMask()).getElementType().isInteger(1);
    if (!isBoolean || !fill.getValue().isFinite())
      return op.emitOpError("(C2) fills scores with ")
             << fill << ", which is a finite number beside a boolean mask";
  }
  if (tensorType(result) != attentionType(query, value) ||
      tensorType(logSumExp) != logSumExpType(query))
    return op.emitOpError("(C3) results are ")
           << attentionType(query, value) << " and " << logSumExpType(query);
  const bool keepsLargest = keepsLargestScore(op.getMask(), op.getFillAttr());
  if (static_cast<bool>(largest) != keepsLargest ||
      (largest && tensorType(largest) != logSumExpType(query)))
    return op.emitOpError("(C3) has ") << (keepsLargest ? "a" : "no") << " largest score of "
                                       << logSumExpType(query) << " beside this mask";
  if (op.getP().isZero() && (op.getSeed() || op.getWindow()))
    return op.emitOpError("(C4) has a seed or a window, but p = 0");
  return verifyRandom(op, scores);
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionGradOp::verify() {
  if (getDresult().getType() != getResult().getType() ||
      getDquery().getType() != getQuery().getType() || getDkey().getType() != getKey().getType() ||
      getDvalue().getType() != getValue().getType())
    return emitOpError("(C5) adjoints do not have the types of their values");
  return verifyAttention(*this);
}

//===----------------------------------------------------------------------===//
// What attention and its gradient draw, round and cost
//===----------------------------------------------------------------------===//

/// Decisions belong to the probabilities [B, H, T, S].
template <typename OpTy> static SmallVector<int64_t> probabilitiesOf(OpTy op) {
  ArrayRef<int64_t> query = tensorType(op.getQuery()).getShape();
  return {query[0], query[2], query[1], tensorType(op.getKey()).getDimSize(1)};
}

/// query [B, T, H, D]; key and value [B, S, G, D], where a head of keys is a group of heads.
static SmallVector<int64_t> probabilityDims(unsigned operand) {
  if (operand == 0)
    return {0, 2, 1, -1};
  if (operand < 3)
    return {0, 3, -1, -1};
  return {};
}

template <typename OpTy> static SmallVector<Value> withoutDropout(OpTy op) {
  op.setP(APFloat(0.0));
  op.setStream(0);
  // One at a time: clearing one moves the others.
  op.getSeedMutable().clear();
  op.getStepMutable().clear();
  op.getBaseMutable().clear();
  op.setWindowAttr({});
  return llvm::to_vector_of<Value>(op->getResults());
}

/// The two products of the forward pass; causal attention skips half.
template <typename OpTy> static int64_t productFlops(OpTy op) {
  SmallVector<int64_t> shape = probabilitiesOf(op);
  int64_t scores = shape[0] * shape[1] * shape[2] * shape[3];
  int64_t flops =
      2 * scores *
      (tensorType(op.getQuery()).getDimSize(3) + tensorType(op.getValue()).getDimSize(3));
  return op.getCausal() ? flops / 2 : flops;
}

/// What a mask's element of -1e30 or less forbids: its probability is 0 beside any other score.
static bool allows(const APFloat& score) { return score.convertToDouble() > -1e30; }

/// Pairs of a query and a key that may attend, over all heads of the batch. A mask that is not a
/// constant may allow all.
template <typename OpTy> static int64_t allowedPairs(OpTy op) {
  SmallVector<int64_t> shape = probabilitiesOf(op);
  const int64_t heads = shape[0] * shape[1], queries = shape[2], keys = shape[3];
  auto keysOf = [&](int64_t query) { return op.getCausal() ? std::min(query + 1, keys) : keys; };
  DenseElementsAttr mask;
  if (!op.getMask() || !matchPattern(op.getMask(), m_Constant(&mask))) {
    int64_t pairs = 0;
    for (int64_t query = 0; query < queries; ++query)
      pairs += keysOf(query);
    return heads * pairs;
  }
  auto countAllowed = [&](auto elements, auto allows) {
    ArrayRef<int64_t> extents = mask.getType().getShape();
    int64_t pairs = 0;
    for (auto [index, element] : llvm::enumerate(elements)) {
      const int64_t key = index % keys, query = index / keys % extents[2];
      if (!allows(element))
        continue;
      // One row of a mask that is broadcast serves every query.
      for (int64_t q = query; q < queries; q += extents[2])
        pairs += key < keysOf(q);
    }
    return heads / (extents[0] * extents[1]) * pairs;
  };
  if (mask.getElementType().isInteger(1))
    return countAllowed(mask.getValues<bool>(), [](bool element) { return element; });
  return countAllowed(mask.getValues<APFloat>(), allows);
}

/// The two products of the forward pass, for the pairs that the mask allows.
template <typename OpTy> static int64_t modelFlops(OpTy op) {
  return 2 * allowedPairs(op) *
         (tensorType(op.getQuery()).getDimSize(3) + tensorType(op.getValue()).getDimSize(3));
}

SmallVector<int64_t> AttentionOp::getDrawnShape() { return probabilitiesOf(*this); }
SmallVector<int64_t> AttentionOp::getDrawnDims(unsigned operand) {
  return probabilityDims(operand);
}
SmallVector<Value> AttentionOp::makeDeterministic() { return withoutDropout(*this); }
SmallVector<unsigned> AttentionOp::getNarrowOperands() { return {0, 1, 2}; }
ResultRounding AttentionOp::getResultRounding(unsigned result) {
  return result == 0 ? ResultRounding::Narrow : ResultRounding::None;
}
int64_t AttentionOp::getFlops() { return productFlops(*this); }
int64_t AttentionOp::getModelFlops() { return modelFlops(*this); }

SmallVector<int64_t> AttentionGradOp::getDrawnShape() { return probabilitiesOf(*this); }
SmallVector<int64_t> AttentionGradOp::getDrawnDims(unsigned operand) {
  return probabilityDims(operand);
}
SmallVector<Value> AttentionGradOp::makeDeterministic() { return withoutDropout(*this); }
SmallVector<unsigned> AttentionGradOp::getNarrowOperands() { return {0, 1, 2, 3, 5}; }
ResultRounding AttentionGradOp::getResultRounding(unsigned) { return ResultRounding::Narrow; }
/// Five products instead of two.
int64_t AttentionGradOp::getFlops() { return productFlops(*this) * 5 / 2; }
/// Four products: the scores are computed again.
int64_t AttentionGradOp::getModelFlops() { return 2 * modelFlops(*this); }

LogicalResult RotaryOp::verify() {
  RankedTensorType type = tensorType(getOperand()), cos = tensorType(getCos());
  ArrayRef<int64_t> shape = type.getShape(), angles = cos.getShape();
  bool fits = type.getRank() == 4 && cos == tensorType(getSin()) &&
              (cos.getRank() == 2 || cos.getRank() == 3) && angles.take_back(2)[0] == shape[1] &&
              (cos.getRank() == 2 || angles[0] == 1 || angles[0] == shape[0]);
  if (!fits)
    return emitOpError("(C1) cos ")
           << cos << " and sin " << tensorType(getSin()) << " do not fit " << type;
  if (angles.back() < 1 || 2 * angles.back() > shape[3])
    return emitOpError("(C2) rotates ") << 2 * angles.back() << " of " << shape[3] << " elements";
  return success();
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
  for (unsigned statistic = 1; statistic < getNumResults(); ++statistic)
    f.rule.results[statistic] = f.logSumExp();
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
  if (getLargest())
    f.rule.operands[6] = f.logSumExp();
  if (Value mask = getMask())
    f.rule.operands[getLargest() ? 7 : 6] = f.mask(mask);
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
