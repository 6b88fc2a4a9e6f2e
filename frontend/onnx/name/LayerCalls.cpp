#include "frontend/onnx/name/LayerCalls.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

/// How many nodes a search for a product visits at most.
static constexpr size_t kFarthest = 64;

LayerCalls::LayerCalls(const Graph& graph) : graph_(graph), recurrent_(graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs)
      producer_.emplace(output, i);
    for (size_t k = 0; k < graph.nodes[i].inputs.size(); ++k)
      reads_[graph.nodes[i].inputs[k]].push_back({i, k});
  }
}

const std::vector<Operand>& LayerCalls::readsOf(const std::string& tensor) const {
  static const std::vector<Operand> kNone;
  const auto reads = reads_.find(tensor);
  return reads == reads_.end() ? kNone : reads->second;
}

/// The initializer behind operand `k` of a contraction, through movement of its elements.
std::string LayerCalls::matrixOf(const Node& node, size_t k) const {
  if (!node.hasInput(k))
    return {};
  std::string value = node.inputs[k];
  for (int steps = 0; steps < 4; ++steps) {
    if (auto tensor = graph_.initializers.find(value); tensor != graph_.initializers.end())
      return tensor->second.shape.size() >= 2 ? value : std::string();
    auto at = producer_.find(value);
    if (at == producer_.end())
      break;
    const Node& before = graph_.nodes[at->second];
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

NearProduct LayerCalls::productBeside(const Operand& read) const {
  const Node& node = graph_.nodes[read.node];
  if (node.opType != "Add")
    return productOf(read.node);
  std::string value = node.inputs[1 - read.index];
  for (int steps = 0; steps < 4; ++steps) {
    auto at = producer_.find(value);
    if (at == producer_.end())
      break;
    if (NearProduct product = productOf(at->second); !product.matrix.empty())
      return product;
    const Node& before = graph_.nodes[at->second];
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
        if (auto at = producer_.find(value); !after && at != producer_.end())
          next.push_back(at->second);
        if (auto readers = reads_.find(value); after && readers != reads_.end())
          for (size_t i = 0; i < std::min(readers->second.size(), kFarthest); ++i)
            next.push_back(readers->second[i].node);
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

ReadPlace LayerCalls::placeOf(const Operand& read) const {
  ReadPlace place{&graph_.nodes[read.node], read.index, recurrent_.partOf(read.node, read.index),
                  productBeside(read),      {},         {}};
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

std::string LayerCalls::nameInRecurrence(const Operand& read) const {
  const std::optional<RecurrentPart> part = recurrent_.partOf(read.node, read.index);
  return part ? recurrent_.nameOf(*part) : std::string();
}

} // namespace titan::frontend
