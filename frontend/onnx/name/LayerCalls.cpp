#include "frontend/onnx/name/LayerCalls.h"

#include <algorithm>
#include <ranges>
#include <set>

namespace titan::frontend {

/// How many nodes a search for a product visits at most.
static constexpr size_t kFarthest = 64;

LayerCalls::LayerCalls(const Graph& graph)
    : graph_(graph), dataflow_(graph), recurrent_(graph, dataflow_) {}

/// The initializer behind operand `k` of a contraction, through movement of its elements.
std::string LayerCalls::matrixOf(const Node& node, size_t k) const {
  if (!node.hasInput(k))
    return {};
  std::string value = node.inputs[k];
  for (int steps = 0; steps < 4; ++steps) {
    if (auto tensor = graph_.initializers.find(value); tensor != graph_.initializers.end())
      return tensor->second.shape.size() >= 2 ? value : std::string();
    const std::optional<size_t> producer = dataflow_.producerOf(value);
    if (!producer)
      break;
    const Node& before = graph_.nodes[*producer];
    bool moves =
        before.opType == "Transpose" || before.opType == "Identity" || before.opType == "Cast";
    if (!moves || !before.hasInput(0))
      break;
    value = before.inputs[0];
  }
  return {};
}

NearProduct LayerCalls::productOf(size_t index) const {
  const Node& node = graph_.nodes[index];
  if (node.opType != "MatMul" && node.opType != "Gemm" && node.opType != "Conv" &&
      node.opType != "ConvTranspose")
    return {};
  for (size_t k : {1, 0})
    if (std::string matrix = matrixOf(node, k); !matrix.empty())
      return {matrix, index, 0};
  return {};
}

NearProduct LayerCalls::productBeside(const Read& read) const {
  const Node& node = graph_.nodes[read.node];
  if (node.opType != "Add")
    return productOf(read.node);
  std::string value = node.inputs[1 - read.operand];
  for (int steps = 0; steps < 4; ++steps) {
    const std::optional<size_t> producer = dataflow_.producerOf(value);
    if (!producer)
      break;
    if (NearProduct product = productOf(*producer); !product.matrix.empty())
      return product;
    const Node& before = graph_.nodes[*producer];
    bool moves = before.opType == "Reshape" || before.opType == "Transpose";
    if (!moves || !before.hasInput(0))
      break;
    value = before.inputs[0];
  }
  return {};
}

/// The nearest product after the node `start`, or before it.
NearProduct LayerCalls::nearest(size_t start, bool after) const {
  std::vector<size_t> level{start};
  std::set<size_t> seen{start};
  for (int distance = 0; !level.empty() && seen.size() < kFarthest; ++distance) {
    std::vector<size_t> next;
    for (size_t index : level) {
      const Node& node = graph_.nodes[index];
      for (const std::string& value : after ? node.outputs : node.inputs) {
        if (after) {
          for (const Read& read : std::views::take(readsOf(value), kFarthest))
            next.push_back(read.node);
        } else if (std::optional<size_t> producer = dataflow_.producerOf(value)) {
          next.push_back(*producer);
        }
      }
    }
    std::sort(next.begin(), next.end());
    level.clear();
    for (size_t index : next) {
      const Node& node = graph_.nodes[index];
      NearProduct product = productOf(index);
      if (node.opType == "Gather")
        product = {matrixOf(node, 0), index, 0}; // the table of an embedding
      if (!product.matrix.empty())
        return {product.matrix, product.node, distance};
      if (seen.insert(index).second)
        level.push_back(index);
    }
  }
  return {};
}

ReadPlace LayerCalls::placeOf(const Read& read) const {
  ReadPlace place{&graph_.nodes[read.node], read.operand, recurrent_.partOf(read),
                  productBeside(read),      {},           {}};
  if (!place.part && place.beside.matrix.empty()) {
    place.after = nearest(read.node, true);
    place.before = nearest(read.node, false);
  }
  return place;
}

/// Of one layer, or of two calls: a layer reads the gates of a parameter one by one.
bool LayerCalls::areOfOneLayer(const RecurrentPart& a, const RecurrentPart& b) const {
  const std::string matrix = recurrent_.matrixBeside(a);
  return a == b || (a.place == b.place && !matrix.empty() && matrix == recurrent_.matrixBeside(b));
}

bool LayerCalls::areOfOneLayer(const ReadPlace& a, const ReadPlace& b) const {
  if (a.part || b.part)
    return a.part && b.part && areOfOneLayer(*a.part, *b.part);
  if (a.node->opType != b.node->opType || a.index != b.index)
    return false;
  if (!a.beside.matrix.empty() || !b.beside.matrix.empty())
    return a.beside.isAnotherCallOf(b.beside);
  bool after = a.after.isAnotherCallOf(b.after), before = a.before.isAnotherCallOf(b.before);
  return (after && (before || !a.before.contradicts(b.before))) ||
         (before && !a.after.contradicts(b.after));
}

std::string LayerCalls::nameInRecurrence(const Read& read) const {
  const std::optional<RecurrentPart> part = recurrent_.partOf(read);
  return part ? recurrent_.nameOf(*part) : std::string();
}

} // namespace titan::frontend
