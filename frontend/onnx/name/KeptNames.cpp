// The kind of a tensor whose name the file has kept.
#include "frontend/onnx/name/Angles.h"
#include "frontend/onnx/name/Rules.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kAngles = {
    "{} holds sines and cosines of positions, or their frequencies: it is a constant and not "
    "trained, unless --names says kind = \"parameter\"",
    "{} tensors hold sines and cosines of positions, or their frequencies: they are constants and "
    "not trained, unless --names says kind = \"parameter\": {}"};
static constexpr NoteCause kTrainedAngles = {
    "{} holds sines and cosines, and an input says which rows are read: it is trained, unless "
    "--names says kind = \"buffer\"",
    "{} tensors hold sines and cosines, and inputs say which rows are read: they are trained, "
    "unless --names says kind = \"buffer\": {}"};
static constexpr NoteCause kPerhapsFrozen = {
    "parameter {} holds sines and cosines of positions: it is trained, for no export says what is "
    "frozen; model.frozen keeps it as it is",
    "{} parameters hold sines and cosines of positions: they are trained, for no export says what "
    "is frozen; model.frozen keeps them as they are: {}"};
static constexpr NoteCause kConstantNode = {
    "{} is of a Constant node and neither weight nor bias: it is a constant and not trained, "
    "unless --names says kind = \"parameter\"",
    "{} tensors are of Constant nodes and neither weights nor biases: they are constants and not "
    "trained, unless --names says kind = \"parameter\": {}"};
static constexpr NoteCause kPerhapsBuffer = {
    "{} is trained, and may be a buffer, which this exporter does not tell: --names can say "
    "kind = \"buffer\"",
    "{} tensors are trained, and may be buffers, which this exporter does not tell: --names can "
    "say "
    "kind = \"buffer\": {}"};

static constexpr NoteCause kPerhapsValue = {
    "{} is trained, and may be a value that the exporter computed, which a conversion to another "
    "opset does not tell from a parameter of the root module; export to opset 18 or later to be "
    "sure",
    "{} tensors are trained, and may be values that the exporter computed, which a conversion to "
    "another opset does not tell from parameters of the root module; export to opset 18 or later "
    "to be sure: {}"};

static constexpr NoteCause kBound = {
    "{} bounds a Clip and is taken for a number of the program: it is a constant and not trained, "
    "unless --names says kind = \"parameter\"",
    "{} tensors bound a Clip and are taken for numbers of the program: they are constants and not "
    "trained, unless --names says kind = \"parameter\": {}"};

static constexpr NoteCause kComputedVariable = {
    "{} is trained, and may be what TensorFlow or tf2onnx computed of variables: its name is not "
    "of one",
    "{} tensors are trained, and may be what TensorFlow or tf2onnx computed of variables: their "
    "names are not of any: {}"};

/// A bound of Clip in a file without metadata, in which numbers have names like parameters of the
/// root module: "linear_min".
static bool isBound(const Facts& facts, const NamedTensor& tensor) {
  return facts.isConverted && moduleOf(tensor.initializer).empty() &&
         elementCount(facts.file(tensor).shape) == 1 &&
         std::ranges::all_of(facts.usesOf(tensor).uses, [&](const Use& use) {
           return facts.nodeOf(use).opType == "Clip" && use.operand > 0;
         });
}

static bool isStatistic(std::string_view leaf) {
  return leaf == "running_mean" || leaf == "running_var";
}

/// Does the module of `tensor` compute a norm by its running statistics itself? Detection models
/// have such norms, all of whose tensors are buffers (FrozenBatchNorm2d).
static bool isOfWrittenNorm(const Facts& facts, const NamedTensor& tensor) {
  const std::string module(moduleOf(tensor.initializer));
  return !module.empty() && facts.graph.initializers.contains(module + ".running_var") &&
         std::ranges::none_of(facts.usesOf(tensor).uses, [&](const Use& use) {
           return facts.nodeOf(use).opType == "BatchNormalization";
         });
}

/// Is it a matrix of an Einsum? One of zeros and ones is no mask there: weights start as the
/// identity.
static bool isOfProduct(const Facts& facts, const NamedTensor& tensor) {
  return std::ranges::any_of(facts.usesOf(tensor).uses,
                             [&](const Use& use) { return facts.nodeOf(use).opType == "Einsum"; });
}

/// The kind of a tensor that has kept its name and takes part in floating arithmetic. state_dict()
/// lists parameters and buffers alike, and so does the TorchScript exporter; what torch.nn's layers
/// call weight and bias are parameters.
static void classifyLegacy(const Facts& facts, NamedTensor& tensor) {
  const Tensor& file = facts.file(tensor);
  tensor.kind = TensorKind::Parameter;
  // A graph that is frozen for inference has variables under the names of the ops that read them.
  if (facts.graph.fromTensorFlow() &&
      tensor.initializer.find("ReadVariableOp") == std::string::npos)
    tensor.doubt = &kComputedVariable;
  if (!facts.isLegacy())
    return;
  std::string_view leaf = leafOf(tensor.initializer);
  if (isStatistic(leaf)) {
    tensor.kind = TensorKind::Buffer;
    return;
  }
  if (isOfWrittenNorm(facts, tensor)) {
    tensor.doubt = &kPerhapsBuffer;
    return;
  }
  bool weight = leaf.starts_with("weight") || leaf.ends_with("weight");
  bool bias = leaf.starts_with("bias") || leaf.ends_with("bias");
  if (weight || (bias && (file.shape.size() <= 1 || tensor.role == Role::NormBias)) ||
      tensor.initializer.find("parametrizations.") != std::string::npos) {
    // "weight_0" is a value of a function that the exporter inlined.
    if (facts.isConverted && moduleOf(tensor.initializer).empty())
      tensor.doubt = &kPerhapsValue;
    return;
  }
  if (tensor.role == Role::Other && isPattern(file) && !isOfProduct(facts, tensor))
    tensor.kind = TensorKind::Buffer;
  else
    tensor.doubt = &kPerhapsBuffer;
}

void classify(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  if (file.assumed)
    return;
  tensor.guessed = facts.isConverted && facts.hasCopies(tensor.initializer);
  if (const SourceTensor* source = facts.signature().byName(tensor.initializer)) {
    // A buffer that is not persistent is no state: PyTorch's state_dict() has it not.
    tensor.kind = source->parameter    ? TensorKind::Parameter
                  : source->persistent ? TensorKind::Buffer
                                       : TensorKind::Constant;
    tensor.proof = Proof::Source;
    if (source->parameter && holdsAngles(file, facts.graph))
      naming.table.notes.add(kPerhapsFrozen, inQuotes(tensor.initializer));
    return;
  }
  auto fx = facts.fxKinds().find(mangled(tensor.initializer));
  if (fx != facts.fxKinds().end()) {
    tensor.kind = fx->second == 'p'   ? TensorKind::Parameter
                  : fx->second == 'b' ? TensorKind::Buffer
                                      : TensorKind::Constant;
    tensor.proof = Proof::Source;
    return;
  }
  if (tensor.role == Role::Statistic || tensor.role == Role::ClassWeight)
    tensor.kind = TensorKind::Buffer;
  else if (!isFloating(file.dtype) || !facts.usesOf(tensor).differentiable)
    tensor.kind = TensorKind::Constant;
  else if (isBound(facts, tensor))
    tensor.doubt = &kBound; // a constant
  else if (file.shape.empty() && !facts.graph.fromPyTorch())
    // PyTorch writes its own scalars without a name; other producers name theirs.
    tensor.kind = TensorKind::Constant;
  else if (file.fromConstantNode && (facts.graph.fromPyTorch() || tensor.role == Role::Other)) {
    // Library functions name their constants ("beta"); a Constant node that is a weight is
    // another producer's.
    tensor.kind = TensorKind::Constant;
    tensor.doubt = facts.graph.fromPyTorch() ? nullptr : &kConstantNode;
  } else if (!classifyAngles(naming, tensor)) {
    classifyLegacy(naming.facts, tensor);
  }
}

bool classifyAngles(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  bool table = tensor.role == Role::Other || tensor.role == Role::Embedding;
  if (!facts.usesOf(tensor).onlyAngles && !(table && holdsAngles(facts.file(tensor), facts.graph)))
    return false;
  bool lookedUp = facts.usesOf(tensor).indexedByInput;
  tensor.kind = lookedUp ? TensorKind::Parameter : TensorKind::Constant;
  tensor.doubt = lookedUp ? &kTrainedAngles : &kAngles;
  return true;
}

} // namespace titan::frontend
