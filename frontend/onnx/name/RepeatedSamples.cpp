// With a fixed batch, optimizers fold what each sample repeats.
#include "frontend/onnx/name/Namer.h"
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>

namespace titan::frontend {

/// Is every use of `name` an operand of an op that broadcasts it to another one's shape?
static bool onlyBroadcasts(const Graph& graph, const std::string& name) {
  size_t uses = 0;
  for (const Node& node : graph.nodes)
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != name)
        continue;
      bool binary = node.opType == "Add" || node.opType == "Mul" || node.opType == "Sub";
      if (!binary || graph.initializers.contains(node.inputs[1 - k]))
        return false;
      ++uses;
    }
  for (const Port& output : graph.outputs)
    uses = output.name == name ? 0 : uses;
  return uses > 0;
}

void shareRepeatedSamples(Graph& graph) {
  if (!graph.fromPyTorch())
    return;
  for (auto& [name, tensor] : graph.initializers) {
    bool folded = graph.signature.known() ? !graph.signature.byName(name) : isAnonymous(name);
    if (!folded || tensor.fromConstantNode || tensor.shape.size() < 3 || tensor.shape[0] < 2 ||
        !isFloating(tensor.dtype))
      continue;
    bool isBatch = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const Port& input) {
      return input.dims && !input.dims->empty() && input.dims->front().extent == tensor.shape[0];
    });
    if (!isBatch || !onlyBroadcasts(graph, name) || !hasEqualSlices(tensor))
      continue;
    auto samples = static_cast<uint64_t>(tensor.shape[0]);
    if (tensor.inlineBytes)
      tensor.inlineBytes = std::make_shared<const std::string>(
          tensor.inlineBytes->substr(0, tensor.inlineBytes->size() / samples));
    if (tensor.span)
      tensor.span->bytes /= samples;
    tensor.shape[0] = 1;
  }
}

} // namespace titan::frontend
