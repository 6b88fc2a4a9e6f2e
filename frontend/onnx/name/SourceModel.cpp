#include "frontend/onnx/name/SourceModel.h"

namespace titan::frontend {

void addCopy(Graph& graph, const std::string& original, const std::string& name, bool nameless) {
  Tensor copy = graph.initializers.at(original);
  copy.name = name;
  copy.copyOf = original;
  copy.nameless = nameless;
  graph.initializers.emplace(name, std::move(copy));
  graph.initializerOrder.push_back(name);
}

void recoverSource(Graph& graph) {
  separateNormsOfGroups(graph);
  restoreRemovedBiases(graph);
  addBatchCounters(graph);
  shareRepeatedSamples(graph);
  separateEqualTensors(graph);
  splitMergedTensors(graph);
  splitMergedLayers(graph);
  resolveScopes(graph);
}

} // namespace titan::frontend
