#include "frontend/onnx/FoldRules.h"

namespace titan::frontend {

Folded fold(const Node& node, const HostInputs& inputs, int64_t largest) {
  if (!node.domain.empty())
    return nothing();
  for (auto rule : {foldElementwise, foldMovement, foldIndexing, foldConstruct, foldReduction})
    if (auto outputs = TITAN_TRY(rule(node, inputs, largest)))
      return outputs;
  return nothing();
}

} // namespace titan::frontend
