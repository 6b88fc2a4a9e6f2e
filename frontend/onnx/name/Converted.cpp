// Exports of torch.export that a conversion to an older opset has stripped of all metadata: no
// signature, no scopes, no fx nodes. What is left are the names of nodes, values and tensors.
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kMatrix = {
    "{} was folded by the exporter and is taken for the weight of the layer whose bias is added; "
    "export to opset 18 or later, or with optimize=False, to be sure",
    "{} tensors were folded by the exporter and are taken for the weights of the layers whose "
    "biases are added; export to opset 18 or later, or with optimize=False, to be sure: {}"};

static constexpr NoteCause kShared = {
    "{} is read by several layers, and is one parameter here: nothing tells whether it was merged "
    "from copies of a layer; export to opset 18 or later to keep what tells",
    "{} tensors are read by several layers each, and are one parameter each here: nothing tells "
    "whether they were merged from copies of a layer; export to opset 18 or later to keep what "
    "tells: {}"};

void doubtShared(Naming& naming) {
  const Facts& facts = naming.facts;
  constexpr int64_t kLargestMerged = 1024; // of onnxscript
  for (NamedTensor& tensor : naming.table.tensors) {
    const std::vector<Use>& uses = facts.usesOf(tensor).uses;
    if (!facts.isConverted || tensor.kind != TensorKind::Parameter || tensor.isCopy ||
        elementCount(facts.file(tensor).shape) > kLargestMerged || uses.size() < 2)
      continue;
    const std::string shown =
        fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(tensor.name));
    if (tensor.doubt)
      naming.table.notes.add(kShared, shown);
    else
      tensor.setDoubt(kShared, shown);
  }
}

bool fromBiasBeside(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  if (!facts.isConverted || !isAnonymous(tensor.initializer) || !isFloating(file.dtype) ||
      file.shape.size() != 2)
    return false;
  for (const Use& use : facts.usesOf(tensor).uses) {
    const Node& product = facts.nodeOf(use);
    if (use.role != Role::Weight || !use.transposed)
      continue;
    std::string bias = product.opType == "Gemm" && product.hasInput(2) ? product.inputs[2] : "";
    for (const Node& add : facts.graph.nodes)
      if (add.opType == "Add" && add.inputs.size() == 2)
        for (size_t k : {0, 1})
          if (add.inputs[1 - k] == product.outputs.front())
            bias = add.inputs[k];
    auto beside = facts.graph.initializers.find(bias);
    if (beside == facts.graph.initializers.end() || facts.isMadeUp(bias) ||
        !leafOf(bias).ends_with("bias") || beside->second.shape != Shape{file.shape[1]})
      continue;
    if (!naming.take(tensor, bias.substr(0, bias.size() - 4) + "weight", /*transposed=*/true))
      continue;
    tensor.kind = TensorKind::Parameter;
    tensor.guessed = true;
    tensor.setDoubt(
        kMatrix, fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(tensor.name)));
    return true;
  }
  return false;
}

} // namespace titan::frontend
