#include "frontend/onnx/name/Dataflow.h"

namespace titan::frontend {

Dataflow::Dataflow(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const std::string& output : node.outputs)
      if (!output.empty())
        producers_.emplace(output, i);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.hasInput(k))
        reads_[node.inputs[k]].push_back({i, k});
  }
}

std::optional<size_t> Dataflow::producerOf(const std::string& value) const {
  const auto found = producers_.find(value);
  return found == producers_.end() ? std::nullopt : std::optional(found->second);
}

const std::vector<Read>& Dataflow::readsOf(const std::string& value) const {
  static const std::vector<Read> kNone;
  const auto found = reads_.find(value);
  return found == reads_.end() ? kNone : found->second;
}

} // namespace titan::frontend
