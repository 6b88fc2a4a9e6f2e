#include "compiler/Autodiff/Loss.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

/// The dimension of an output of `rank` dimensions that the recipe counts, perhaps from the end.
static int64_t classDim(const LossRecipe& loss, int64_t rank) {
  return loss.classDim < 0 ? rank + loss.classDim : loss.classDim;
}

FailureOr<RankedTensorType> targetType(const LossRecipe& loss, RankedTensorType output,
                                       StringRef outputName, int64_t micro, Location loc) {
  Builder builder(loc.getContext());
  if (!isa<FloatType>(output.getElementType()))
    return emitError(loc) << "output '" << outputName << "' is " << output
                          << ": a loss needs floats";
  if (loss.kind == "output") {
    if (output.getNumElements() != 1)
      return emitError(loc) << "loss.kind = \"output\": output '" << outputName << "' is " << output
                            << ", not one number";
    return RankedTensorType();
  }
  if (loss.kind == "cross_entropy") {
    if (output.getRank() < 2)
      return emitError(loc) << "loss.kind = \"cross_entropy\": output '" << outputName << "' is "
                            << output << ", not [rows, ..., classes]";
    const int64_t rank = output.getRank(), dim = classDim(loss, rank);
    if (dim < 1 || dim >= rank)
      return emitError(loc) << "loss.class_dim = " << loss.classDim << ": output '" << outputName
                            << "' is " << output
                            << ", whose classes are in one of the dimensions 1 to " << rank - 1;
    const auto classes = static_cast<size_t>(output.getDimSize(dim));
    if (!loss.classWeights.empty() && loss.classWeights.size() != classes)
      return emitError(loc) << "loss.class_weights has " << loss.classWeights.size()
                            << " weights: output '" << outputName << "' is " << output << ", with "
                            << classes << " classes";
    SmallVector<int64_t> rows(output.getShape());
    rows.erase(rows.begin() + dim);
    // A model that flattens [micro, positions] for its loss.
    if (rows.size() == 1 && rows[0] != micro && micro > 0 && rows[0] % micro == 0)
      rows = {micro, rows[0] / micro};
    return RankedTensorType::get(rows, builder.getI64Type());
  }
  if (output.getRank() < 1)
    return emitError(loc) << "loss.kind = \"" << loss.kind << "\": output '" << outputName
                          << "' is a scalar, not [rows, ...]: is it the loss (kind = \"output\")?";
  return RankedTensorType::get(output.getShape(), builder.getF32Type());
}

namespace {

Type i64(const TensorBuilder& b) { return b.builder.getI64Type(); }

Value countTrue(const TensorBuilder& b, Value flags) {
  return b.reduceAll(ReduceKind::Sum, b.convert(flags, i64(b)));
}

/// Is the row of each element of a tensor of `shape` below `validRows`?
Value validMask(const TensorBuilder& b, ArrayRef<int64_t> shape, Value validRows) {
  Value rows = b.create<IotaOp>(RankedTensorType::get(shape, i64(b)), 0);
  return b.compare(ComparePredicate::LT, rows, b.broadcast(validRows, shape, {}));
}

/// The weight of each target's class, 0 for those that are not `valid`.
Value weightsOf(const TensorBuilder& b, const LossRecipe& loss, Value targets, Value valid,
                Type element) {
  const auto classes = static_cast<int64_t>(loss.classWeights.size());
  Value table = b.constant(RankedTensorType::get({classes, 1}, element), loss.classWeights);
  Value known = b.select(valid, targets, b.splatLike(targets, 0));
  Value weights = b.reshape(b.create<EmbeddingOp>(table, known), tensorType(targets).getShape());
  return b.select(valid, weights, b.splatLike(weights, 0));
}

/// What label smoothing adds to the loss of each target where classes have weights, as
/// torch.nn.functional.cross_entropy: s / C * the sum over all classes of weight * nll.
Value smoothingOf(const TensorBuilder& b, const LossRecipe& loss, Value logits, Value valid,
                  Type element) {
  const RankedTensorType type = tensorType(logits);
  const int64_t last = type.getRank() - 1, classes = type.getDimSize(last);
  std::vector<double> factors = loss.classWeights;
  for (double& factor : factors)
    factor *= -loss.labelSmoothing / static_cast<double>(classes);
  Value logs =
      b.create<LogSoftmaxOp>(b.convert(logits, element), b.builder.getI64IntegerAttr(last));
  Value table = b.constant(RankedTensorType::get({classes}, element), factors);
  Value terms = b.mul(logs, b.broadcast(table, type.getShape(), {last}));
  Value sum = b.reduce(ReduceKind::Sum, terms, {last});
  return b.select(valid, sum, b.splatLike(sum, 0));
}

LossTerms crossEntropy(const TensorBuilder& b, const LossRecipe& loss, Value logits, Value targets,
                       Value validRows) {
  ArrayRef<int64_t> rows = tensorType(targets).getShape();
  Value ignored = b.splatLike(targets, static_cast<double>(loss.ignoreIndex));
  if (validRows) // padding is ignored like any other target
    targets = b.select(validMask(b, rows, validRows), targets, ignored);
  const int64_t rank = tensorType(logits).getRank(), dim = classDim(loss, rank);
  if (dim != rank - 1) {
    SmallVector<int64_t> classesLast = llvm::to_vector(llvm::seq(rank));
    std::rotate(classesLast.begin() + dim, classesLast.begin() + dim + 1, classesLast.end());
    logits = b.transpose(logits, classesLast);
  }
  SmallVector<int64_t> shape(rows);
  shape.push_back(tensorType(logits).getShape().back());
  if (tensorType(logits).getShape() != ArrayRef(shape))
    logits = b.reshape(logits, shape);
  Type f32 = b.builder.getF32Type(), element = tensorType(logits).getElementType();
  auto lossType = RankedTensorType::get(rows, element.isF64() ? element : f32);
  const bool hasWeights = !loss.classWeights.empty();
  Value losses = b.create<CrossEntropyOp>(
      lossType, logits, targets, b.builder.getI64IntegerAttr(loss.ignoreIndex),
      b.builder.getF64FloatAttr(hasWeights ? 0 : loss.labelSmoothing));
  Value valid = b.compare(ComparePredicate::NE, targets, ignored);
  LossTerms terms;
  if (hasWeights) {
    Value weights = weightsOf(b, loss, targets, valid, lossType.getElementType());
    losses = b.mul(losses, weights);
    if (loss.labelSmoothing != 0)
      losses = b.add(b.scale(losses, 1 - loss.labelSmoothing),
                     smoothingOf(b, loss, logits, valid, lossType.getElementType()));
    terms.weight = b.convert(b.reduceAll(ReduceKind::Sum, weights), f32);
  }
  terms.sum = b.convert(b.reduceAll(ReduceKind::Sum, losses), f32);
  terms.count = countTrue(b, valid);
  if (validRows) {
    Value best = b.create<ArgmaxOp>(logits, static_cast<int64_t>(rows.size()));
    Value hit = b.compare(ComparePredicate::EQ, best, targets);
    terms.correct = countTrue(b, b.create<AndOp>(hit, valid));
  }
  return terms;
}

LossTerms outputLoss(const TensorBuilder& b, Value output, Value validRows, int64_t rows) {
  auto scalar = RankedTensorType::get({}, i64(b));
  Value sum = b.reshape(b.convert(output, b.builder.getF32Type()), {});
  if (!validRows)
    return {sum, b.splat(scalar, 1), {}, {}};
  // The model has already averaged over the rows, padding included: only a full batch counts.
  Value full =
      b.compare(ComparePredicate::GE, validRows, b.splat(scalar, static_cast<double>(rows)));
  return {
      b.select(full, sum, b.splatLike(sum, 0)), b.convert(full, i64(b)), {}, b.splat(scalar, 0)};
}

Value elementwiseLoss(const TensorBuilder& b, StringRef kind, Value output, Value targets) {
  if (kind == "bce_with_logits")
    return b.create<BceWithLogitsOp>(output, targets);
  Value difference = b.sub(output, targets);
  return kind == "l1" ? b.create<AbsOp>(difference) : b.mul(difference, difference);
}

} // namespace

LossTerms buildLoss(const TensorBuilder& b, const LossRecipe& loss, Value output, Value targets,
                    Value validRows, int64_t rows) {
  if (loss.kind == "output")
    return outputLoss(b, output, validRows, rows);
  if (loss.kind == "cross_entropy")
    return crossEntropy(b, loss, output, targets, validRows);
  auto scalar = RankedTensorType::get({}, i64(b));
  Value losses = elementwiseLoss(b, loss.kind, b.convert(output, b.builder.getF32Type()), targets);
  int64_t elements = tensorType(losses).getNumElements();
  if (!validRows)
    return {b.reduceAll(ReduceKind::Sum, losses),
            b.splat(scalar, static_cast<double>(elements)),
            {},
            {}};
  Value mask = validMask(b, tensorType(losses).getShape(), validRows);
  Value kept = b.select(mask, losses, b.splatLike(losses, 0));
  return {b.reduceAll(ReduceKind::Sum, kept), countTrue(b, mask), {}, b.splat(scalar, 0)};
}

} // namespace titan::autodiff
