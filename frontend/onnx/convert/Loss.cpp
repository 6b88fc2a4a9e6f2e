// Losses inside of the model. Classes are dimension 1 of the scores; titan's loss has them last.
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/name/Scopes.h"

#include <charconv>

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

struct Classes {
  Value scores;  ///< [targets..., C]
  Value targets; ///< [targets...]
  Value weights; ///< [C], one for each class; null: all count alike
  int64_t ignored = INT64_MIN;
};

/// [N, C, rest...] as [N, rest..., C].
Value classesLast(Conversion& c, Value scores) {
  SmallVector<int64_t> permutation{0};
  for (int64_t d = 2; d < c.rankOf(scores); ++d)
    permutation.push_back(d);
  permutation.push_back(1);
  return c.transposed(scores, permutation);
}

Result<Classes> classesOf(Conversion& c) {
  Classes classes;
  Value scores = TITAN_TRY(c.floatOperand(0));
  classes.targets = TITAN_TRY(c.integerOperand(1));
  Shape shape = c.shapeOf(scores), wanted = shape;
  if (shape.size() < 2)
    return c.error("scores of {} have no classes", toString(shape));
  wanted.erase(wanted.begin() + 1);
  if (c.shapeOf(classes.targets) != wanted)
    return c.error("targets of {} for scores of {}", toString(c.shapeOf(classes.targets)),
                   toString(shape));
  if (c.has(2)) {
    classes.weights = TITAN_TRY(c.floatOperand(2));
    if (c.shapeOf(classes.weights) != Shape{shape[1]})
      return c.error("class weights of {} for scores of {}", toString(c.shapeOf(classes.weights)),
                     toString(shape));
  }
  classes.scores = classesLast(c, scores);
  classes.ignored = c.node.integer("ignore_index", INT64_MIN);
  constexpr int64_t kMost = int64_t(1) << 31;
  if (classes.ignored != INT64_MIN && (classes.ignored > kMost || classes.ignored < -kMost))
    return c.error("ignore_index = {}", classes.ignored);
  return classes;
}

/// Of each class in its place along the last dimension of the scores, where it is the target's:
/// `values`, of the scores' shape, else 0; summed over the classes. A target that is no class
/// picks nothing.
Value pickedOf(Conversion& c, const Classes& classes, Value values) {
  const int64_t last = c.rankOf(classes.scores) - 1;
  Value match = c.isIndex(classes.targets, last, c.shapeOf(classes.scores)[last]);
  return c.reduce(ReduceKind::Sum, c.select(match, values, c.splatLike(values, 0)), {last});
}

/// Of each target, where some may be ignored.
Value isCounted(Conversion& c, const Classes& classes) {
  Value ignored = c.splatLike(classes.targets, static_cast<double>(classes.ignored));
  return c.compare(ComparePredicate::NE, classes.targets, ignored);
}

/// What each target counts, in `element`: the weight of its class, 0 where it is ignored. Null: all
/// count 1.
Value weightsOf(Conversion& c, const Classes& classes, Type element) {
  Value weights;
  if (classes.weights) {
    Shape shape = c.shapeOf(classes.scores);
    weights = pickedOf(c, classes,
                       c.broadcast(c.convert(classes.weights, element), shape,
                                   {static_cast<int64_t>(shape.size()) - 1}));
  }
  if (classes.ignored == INT64_MIN)
    return weights;
  Value valid = isCounted(c, classes);
  return weights ? c.select(valid, weights, c.splatLike(weights, 0)) : c.convert(valid, element);
}

/// What label smoothing adds to the loss of each target where classes have weights, as PyTorch has
/// it: s / C * the sum over all classes of weight * nll; 0 where the target is ignored.
Value smoothingOf(Conversion& c, const Classes& classes, double smoothing, Type element) {
  const Shape shape = c.shapeOf(classes.scores);
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  Value logs =
      c.create<LogSoftmaxOp>(c.convert(classes.scores, element), c.builder.getI64IntegerAttr(last));
  Value factors =
      c.scale(c.convert(classes.weights, element), -smoothing / static_cast<double>(shape[last]));
  Value sum = c.reduce(ReduceKind::Sum, c.mul(logs, c.broadcast(factors, shape, {last})), {last});
  return classes.ignored == INT64_MIN ? sum
                                      : c.select(isCounted(c, classes), sum, c.splatLike(sum, 0));
}

enum class Reduction { None, Sum, Mean };

Result<Reduction> reductionOf(Conversion& c) {
  const std::string reduction = c.node.text("reduction", "mean");
  if (reduction == "none")
    return Reduction::None;
  if (reduction == "sum")
    return Reduction::Sum;
  if (reduction == "mean")
    return Reduction::Mean;
  return c.error("reduction = '{}' is not known", printable(reduction));
}

/// `loss` per target as `reduction` says. The mean divides by the sum of `weights`; null: by the
/// number of targets.
Value reduced(Conversion& c, Value loss, Reduction reduction, Value weights = {}) {
  if (reduction == Reduction::None)
    return loss;
  const auto count = static_cast<double>(tensorType(loss).getNumElements());
  Value sum = c.reduceAll(ReduceKind::Sum, loss);
  if (reduction == Reduction::Sum)
    return sum;
  return weights ? c.div(sum, c.reduceAll(ReduceKind::Sum, weights)) : c.mean(sum, count);
}

/// `loss` per target as the node's reduction says, 0 where it is ignored. The mean is over what the
/// targets count: torch.nn.CrossEntropyLoss with a weight divides by the sum of their weights.
/// `smoothing` is what `loss` does not contain yet.
Status reduced(Conversion& c, const Classes& classes, Value loss, Type element,
               double smoothing = 0) {
  const Reduction reduction = TITAN_TRY(reductionOf(c));
  Value weights;
  if (classes.weights || reduction == Reduction::Mean)
    weights = weightsOf(c, classes, tensorType(loss).getElementType());
  if (classes.weights)
    loss = c.mul(loss, weights);
  if (smoothing != 0)
    loss = c.add(c.scale(loss, 1 - smoothing),
                 smoothingOf(c, classes, smoothing, tensorType(loss).getElementType()));
  return c.give(c.convert(reduced(c, loss, reduction, weights), element));
}

/// ONNX has no label smoothing, and PyTorch's exporter leaves it out without a word; the text of
/// the source's call has it.
Result<double> labelSmoothing(Conversion& c) {
  const std::string text = scopeOf(c.node).labelSmoothing;
  if (text.empty())
    return 0;
  double value = -1;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end || !(value >= 0 && value <= 1))
    return c.error(
        "label_smoothing = '{}' of the source is no number in [0, 1]: export the scores, "
        "and set loss.label_smoothing",
        printable(text));
  return value;
}

/// PyTorch's cross-entropy of a probability for each class, which ONNX has not: its exporters write
/// the op with targets of floats. Nothing is ignored, and the mean is over all targets whatever
/// their classes weigh.
Status lossOfProbabilities(Conversion& c, double smoothing) {
  Value scores = TITAN_TRY(c.floatOperand(0)), targets = TITAN_TRY(c.floatOperand(1));
  const Shape shape = c.shapeOf(scores);
  if (shape.size() < 2 || targets.getType() != scores.getType())
    return c.error("probabilities of {} for scores of {}", toString(c.shapeOf(targets)),
                   toString(shape));
  const Reduction reduction = TITAN_TRY(reductionOf(c));
  if (smoothing != 0)
    targets = c.shift(c.scale(targets, 1 - smoothing), smoothing / static_cast<double>(shape[1]));
  Value logs = c.create<LogSoftmaxOp>(scores, c.builder.getI64IntegerAttr(1));
  if (c.has(2)) {
    Value weights = TITAN_TRY(c.floatOperand(2));
    if (c.shapeOf(weights) != Shape{shape[1]})
      return c.error("class weights of {} for scores of {}", toString(c.shapeOf(weights)),
                     toString(shape));
    targets = c.mul(targets, c.broadcast(weights, shape, {1}));
  }
  Value loss = c.neg(c.reduce(ReduceKind::Sum, c.mul(logs, targets), {1}));
  return c.give(reduced(c, loss, reduction));
}

Status softmaxCrossEntropyLoss(Conversion& c) {
  if (c.fromPyTorch && c.isFloat(TITAN_TRY(c.operand(1))) && !c.wants(1))
    return lossOfProbabilities(c, TITAN_TRY(labelSmoothing(c)));
  Classes classes = TITAN_TRY(classesOf(c));
  Type element = tensorType(classes.scores).getElementType();
  if (c.wants(1)) {
    Value scores = TITAN_TRY(c.operand(0));
    c.results[1] = c.create<LogSoftmaxOp>(scores, c.builder.getI64IntegerAttr(1));
  }
  const double smoothing = TITAN_TRY(labelSmoothing(c));
  const bool hasWeights = bool(classes.weights);
  Value loss =
      c.pickLoss(classes.scores, classes.targets, classes.ignored, hasWeights ? 0 : smoothing);
  return reduced(c, classes, loss, element, hasWeights ? smoothing : 0);
}

/// Of log-probabilities. Those of a softmax are its scores' cross-entropy; others are picked one by
/// one.
Status negativeLogLikelihoodLoss(Conversion& c) {
  Classes classes = TITAN_TRY(classesOf(c));
  Type element = tensorType(classes.scores).getElementType();
  Value input = TITAN_TRY(c.operand(0)), loss;
  auto logs = input.getDefiningOp<LogSoftmaxOp>();
  if (logs && logs.getDim() == 1) {
    loss = c.pickLoss(classesLast(c, logs.getOperand()), classes.targets, classes.ignored);
  } else {
    loss = c.neg(pickedOf(c, classes, classes.scores));
    if (classes.ignored != INT64_MIN)
      loss = c.select(isCounted(c, classes), loss, c.splatLike(loss, 0));
  }
  return reduced(c, classes, loss, element);
}

} // namespace

ArrayRef<ConverterEntry> lossConverters() {
  static const ConverterEntry table[] = {
      {"NegativeLogLikelihoodLoss", 12, negativeLogLikelihoodLoss, ""},
      {"SoftmaxCrossEntropyLoss", 12, softmaxCrossEntropyLoss, ""},
  };
  return table;
}

} // namespace titan::frontend
