#include "dialects/Titan/BatchNorm.h"
#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

SmallVector<int64_t> BatchNormOp::getReducedDims() {
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < tensorType(getOperand()).getRank(); ++d)
    if (d != static_cast<int64_t>(getDim()))
      dims.push_back(d);
  return dims;
}

int64_t BatchNormOp::getCount() {
  RankedTensorType type = tensorType(getOperand());
  return type.getNumElements() / type.getDimSize(getDim());
}

LogicalResult BatchNormOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (failed(verifyDim(*this, getDim(), type.getRank())))
    return failure();
  const int64_t channels = type.getDimSize(getDim());
  if (channels < 1 || getCount() < 2)
    return emitOpError("(C1) the statistics of ")
           << (channels < 1 ? 0 : getCount()) << " elements for each index of dimension "
           << getDim();
  if (!getRunning().empty() && getRunning().size() != 2)
    return emitOpError("(C2) running are a mean and a variance, found ") << getRunning().size();
  if (getBatches() && getRunning().empty())
    return emitOpError("(C2) counts the batches of no running statistics");
  SmallVector<Value> vectors = {getScale(), getBias()};
  llvm::append_range(vectors, getRunning());
  for (Value vector : vectors)
    if (tensorType(vector).getShape() != ArrayRef{channels})
      return emitOpError("(C2) ") << vector.getType() << " for " << channels << " channels";
  auto statistic = RankedTensorType::get(channels, accumulationType(type.getElementType()));
  if (getResult().getType() != type || getMean().getType() != statistic ||
      getVariance().getType() != statistic)
    return emitOpError("(C3) results are ") << type << " and two of " << statistic;
  return success();
}

ShardingRule BatchNormOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  for (auto [d, extent] : llvm::enumerate(tensorType(getOperand()).getShape())) {
    const bool isChannel = d == getDim();
    const int64_t factor =
        rule.addFactor(extent, isChannel ? FactorKind::Parallel : FactorKind::Joint);
    rule.operands[0][d] = rule.results[0][d] = {factor};
    if (!isChannel)
      continue;
    for (ShardingRule::Dims& dims : MutableArrayRef(rule.operands).drop_front())
      if (!dims.empty())
        dims[0] = {factor};
    for (ShardingRule::Dims& dims : MutableArrayRef(rule.results).drop_front())
      dims[0] = {factor};
  }
  return rule;
}

SmallVector<Value> BatchNormOp::buildEvaluation(OpBuilder& builder) {
  if (getRunning().empty())
    return {};
  TensorBuilder b(builder, *this);
  Value mean = getRunning()[0], variance = getRunning()[1];
  Value result = buildFixedBatchNorm(b, getOperand(),
                                     {.scale = getScale(),
                                      .bias = getBias(),
                                      .mean = mean,
                                      .variance = variance,
                                      .epsilon = getEpsilon().convertToDouble(),
                                      .dim = static_cast<int64_t>(getDim())});
  Type statistic = tensorType(getMean()).getElementType();
  return {result, b.convert(mean, statistic), b.convert(variance, statistic)};
}

Value buildFixedBatchNorm(const TensorBuilder& b, Value x, const ChannelStatistics& statistics) {
  Type element = tensorType(x).getElementType();
  auto [scale, bias, mean, variance, epsilon, dim] = statistics;
  for (Value* vector : {&scale, &bias, &mean, &variance})
    *vector = b.convert(*vector, element);
  Value rstd = b.create<RsqrtOp>(b.shift(variance, epsilon));
  const auto along = [&](Value vector) {
    return b.broadcast(vector, tensorType(x).getShape(), statistics.dim);
  };
  Value normalised = b.mul(b.sub(x, along(mean)), along(rstd));
  return b.add(b.mul(normalised, along(scale)), along(bias));
}

} // namespace titan::ir
