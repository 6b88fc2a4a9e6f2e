#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/SourceModel.h"

#include <algorithm>

namespace titan::frontend {

namespace {

/// What each Identity is another name of.
std::map<std::string, std::string> identities(const Graph& graph) {
  std::map<std::string, std::string> sources;
  for (const Node& node : graph.nodes)
    if (node.domain.empty() && node.opType == "Identity" && node.hasInput(0))
      sources.emplace(node.outputs[0], node.inputs[0]);
  return sources;
}

constexpr size_t kMean = 3, kVariance = 4;

/// The name of the running mean that the norm `node` reads; empty: it reads none. The source says
/// it, or the operand is called so: exporters write an Identity for the statistics that a norm
/// leaves to its next call, and for a mean that equals another tensor.
std::string runningMean(const Node& node, const Graph& graph,
                        const std::map<std::string, std::string>& identities) {
  std::string name, operand = node.inputs[kMean];
  const FxArgument argument = argumentOf(node, scopeOf(node), kMean, /*rank=*/1);
  if (argument.isPlaced && argument.lifted.size() == 1)
    if (const SourceTensor* source = graph.signature.byMangled(argument.lifted.front().mangled);
        source && leafOf(source->name) == "running_mean")
      name = source->name;
  for (auto source = identities.find(operand); source != identities.end();
       source = identities.find(operand)) {
    if (name.empty() && leafOf(operand) == "running_mean")
      name = operand;
    operand = source->second;
  }
  if (!graph.initializers.contains(operand))
    return {};
  return name.empty() && leafOf(operand) == "running_mean" ? operand : name;
}

/// Is the mean what an earlier call of the norm made of it? An optimizer leaves the first one
/// there.
bool readsAnUpdatedMean(const Node& node, const Scope& scope) {
  const FxArgument argument = argumentOf(node, scope, kMean, /*rank=*/1);
  return argument.isPlaced && argument.lifted.empty() && argument.values.size() == 1;
}

} // namespace

void addBatchCounters(Graph& graph) {
  if (!graph.fromPyTorch())
    return;
  const std::map<std::string, std::string> sources = identities(graph);
  std::map<std::string, std::string> means; // by module
  for (Node& node : graph.nodes) {
    if (!node.domain.empty() || node.opType != "BatchNormalization" || !node.hasInput(kVariance))
      continue;
    const Scope scope = scopeOf(node);
    std::string& mean = means[scope.module];
    if (const std::string own = runningMean(node, graph, sources); !own.empty())
      mean = own;
    else if (!readsAnUpdatedMean(node, scope))
      continue;
    if (mean.empty())
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
