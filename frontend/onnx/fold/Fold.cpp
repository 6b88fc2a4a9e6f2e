#include "frontend/onnx/fold/FoldRules.h"

#include <set>

namespace titan::frontend {

Folded fold(const Node& node, const HostInputs& inputs, int64_t largest) {
  if (!node.domain.empty())
    return nothing();
  for (auto rule : {foldElementwise, foldMovement, foldIndexing, foldConstruct, foldReduction})
    if (auto outputs = TITAN_TRY(rule(node, inputs, largest)))
      return outputs;
  return nothing();
}

bool isOnlyFolded(const Node& node) {
  static const std::set<std::string_view> ops = {"ConstantOfShape", "Mod",   "NonZero",
                                                 "Range",           "Shape", "Size"};
  return node.domain.empty() && ops.contains(node.opType);
}

} // namespace titan::frontend
