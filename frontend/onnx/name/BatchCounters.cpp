#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/SourceModel.h"

#include <algorithm>

namespace titan::frontend {

/// What each Identity is another name of: exporters write one for the statistics that a norm leaves
/// to its next call.
static std::map<std::string, std::string> identities(const Graph& graph) {
  std::map<std::string, std::string> sources;
  for (const Node& node : graph.nodes)
    if (node.domain.empty() && node.opType == "Identity" && node.hasInput(0)) {
      auto source = sources.find(node.inputs[0]);
      sources[node.outputs[0]] = source == sources.end() ? node.inputs[0] : source->second;
    }
  return sources;
}

void addBatchCounters(Graph& graph) {
  if (!graph.fromPyTorch())
    return;
  constexpr size_t kMean = 3, kVariance = 4;
  const std::map<std::string, std::string> sources = identities(graph);
  for (Node& node : graph.nodes) {
    if (!node.domain.empty() || node.opType != "BatchNormalization" || !node.hasInput(kVariance))
      continue;
    auto source = sources.find(node.inputs[kMean]);
    const std::string mean = source == sources.end() ? node.inputs[kMean] : source->second;
    if (!graph.initializers.contains(mean) || leafOf(mean) != "running_mean")
      continue;
    const std::string name =
        mean.substr(0, mean.size() - leafOf(mean).size()) + "num_batches_tracked";
    // Norms that only look like PyTorch's have none.
    if (graph.signature.known() && !graph.signature.byName(name))
      continue;
    auto known = graph.initializers.find(name);
    if (known != graph.initializers.end() && !known->second.restored)
      continue;
    node.inputs.resize(kBatchCounter + 1);
    node.inputs[kBatchCounter] = name;
    if (known != graph.initializers.end())
      continue; // a norm that is called twice
    Tensor counter;
    counter.name = name;
    counter.dtype = DType::I64;
    counter.restored = true;
    auto& order = graph.initializerOrder;
    auto behind = std::find(order.begin(), order.end(), node.inputs[kVariance]);
    order.insert(behind == order.end() ? behind : behind + 1, name);
    graph.initializers.emplace(name, std::move(counter));
  }
}

} // namespace titan::frontend
