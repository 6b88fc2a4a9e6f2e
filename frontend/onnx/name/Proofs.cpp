// Why a tensor that a gradient may reach is none that is trained: numbers of the program, sines and
// cosines of positions, masks.
#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/name/Angles.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Recurrent.h"
#include "frontend/onnx/name/Rules.h"
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>

namespace titan::frontend {

Proof proofOf(const Facts& facts, const NamedTensor& constant) {
  const Tensor& file = facts.file(constant);
  if (!facts.usesOf(constant).differentiable)
    return Proof::NoGradient;
  // What is zeros or ones alone forbids nothing: it may be a parameter's initial value.
  if (file.assumed || (isMask(file) && !isUniform(file)))
    return Proof::Mask;
  if (facts.usesOf(constant).onlyAngles || holdsAngles(file, facts.graph))
    return Proof::Angles;
  // PyTorch's exporters write parameters as initializers; other producers name their numbers.
  bool isNumber = facts.graph.fromPyTorch()
                      ? file.fromConstantNode || (file.shape.empty() && facts.isMadeUp(file.name))
                      : file.shape.empty();
  return isNumber ? Proof::Number : Proof::None;
}

/// Ones or zeros where the source has None, as for the scale of a norm without one.
static bool standsForNone(const Facts& facts, const NamedTensor& tensor) {
  const Tensor& file = facts.file(tensor);
  return isUniform(file) && std::ranges::all_of(facts.usesOf(tensor).uses, [&](const Use& use) {
           return argumentOf(facts.nodeOf(use), facts.scopeOf(use), use.operand, file.shape.size())
               .isNone;
         });
}

/// The first states of recurrent layers that are made of nothing: zeros, which nn.LSTM starts from
/// where its caller has no others.
static bool areMadeStates(const Facts& facts, const NamedTensor& tensor) {
  return std::ranges::all_of(facts.usesOf(tensor).uses, [&](const Use& use) {
    const Node& node = facts.nodeOf(use);
    const Scope& scope = facts.scopeOf(use);
    // One sample of them is repeated for the layer, whose metadata that node has.
    const bool ofOneSample =
        node.outputs[0] == facts.file(tensor).name + kRepeated &&
        (scope.target.starts_with("aten.lstm.") || scope.target.starts_with("aten.gru.") ||
         scope.target.starts_with("aten.rnn_"));
    if (!ofOneSample && (gatesOf(node).empty() || use.operand < 5))
      return false;
    constexpr int states = 1; // of aten.lstm(input, hx, params, ...)
    const auto isOne = [](const FxOperand& operand) { return operand.position == states; };
    const auto isMade = [&](const FxOperand& operand) {
      return !isOne(operand) || namesNumbers(operand.mangled);
    };
    return std::ranges::any_of(scope.values, isOne) && std::ranges::all_of(scope.values, isMade) &&
           std::ranges::none_of(scope.operands, isOne);
  });
}

/// What people write for minus infinity, in all elements: the largest of nothing, from which no
/// parameter starts.
static bool standsForInfinity(const Tensor& file) {
  constexpr double kLeast = -1e30;
  if (!isFloating(file.dtype) || !isUniform(file))
    return false;
  Result<HostTensor> host = toHost(firstOf(file, {1}));
  return host.ok() && host->real(0) <= kLeast;
}

/// A number that is written in the program, or that an op needs, as attention its scale.
static bool isNumber(const Facts& facts, const NamedTensor& tensor) {
  const Tensor& file = facts.file(tensor);
  const std::string& name = facts.nameInFile(tensor);
  bool ofSource = !file.copyOf.empty() && !facts.isMadeUp(name); // merged into a parameter
  if (!ofSource && namesNumbers(name) && (facts.isConverted || facts.isFxValue(name)))
    return true;
  if (standsForNone(facts, tensor) || areMadeStates(facts, tensor) || standsForInfinity(file))
    return true;
  if (elementCount(file.shape) != 1)
    return false;
  return std::ranges::all_of(facts.usesOf(tensor).uses, [&](const Use& use) {
    const Node& node = facts.nodeOf(use);
    const Scope& scope = facts.scopeOf(use);
    if (facts.isConverted)
      return isAnonymous(name) &&
             (use.role == Role::Other || (use.role == Role::Bias && node.opType == "Add")) &&
             node.opType != "PRelu";
    if (!scope.readsFx() || facts.isAmong(scope.values, tensor))
      return false;
    FxArgument argument = argumentOf(node, scope, use.operand, file.shape.size());
    // A value that is in no file may have been folded into it.
    bool folded = (ofSource || argument.isSole) &&
                  std::ranges::any_of(argument.values, [&](const FxOperand& value) {
                    return !facts.isPresent(value.mangled) && !namesNumbers(value.mangled);
                  });
    return argument.lifted.empty() && !argument.isPlaced && !folded;
  });
}

Proof proofOfFolded(const Facts& facts, const NamedTensor& tensor) {
  const Tensor& file = facts.file(tensor);
  const TensorUses& uses = facts.usesOf(tensor);
  if (isNumber(facts, tensor))
    return Proof::Number;
  if (uses.onlyAngles || (!uses.indexedByInput && holdsAngles(file, facts.graph)))
    return Proof::Angles;
  // Ones and zeros alone may be what 1 + w started from.
  return isMask(file) && !isUniform(file) ? Proof::Mask : Proof::None;
}

bool areZeroStates(const Facts& facts, const NamedTensor& tensor) {
  const std::string& name = tensor.initializer;
  return facts.isConverted && isZeros(facts.file(tensor)) &&
         (areFirstStates(facts.graph, name) || areFirstStates(facts.graph, name + kRepeated));
}

bool isOpenMask(const Facts& facts, const NamedTensor& tensor) {
  const Tensor& file = facts.file(tensor);
  if (file.shape.size() != 4 || file.shape[1] != 1 || !isZeros(file))
    return false;
  auto isOfScores = [&](const Use& use) {
    const Node* node = &facts.nodeOf(use);
    for (int sums = 0; node->opType == "Add" && sums < 4; ++sums) {
      const std::vector<Read>& reads = facts.dataflow.readsOf(node->outputs[0]);
      if (reads.empty())
        return false;
      node = &facts.graph.nodes[reads.front().node];
    }
    return node->opType == "Softmax";
  };
  return std::ranges::all_of(facts.usesOf(tensor).uses, isOfScores);
}

} // namespace titan::frontend
