// nn.MultiheadAttention keeps its three projections in one parameter, in_proj_weight [3E, E].
// Where queries come from elsewhere than keys and values (a decoder's attention to the encoder), an
// export that folds constants has two matrices of it, one for the queries [E, E] and one for the
// rest [E, 2E], both transposed, and the same of in_proj_bias.
#include "frontend/onnx/name/Namer.h"

#include <algorithm>

namespace titan::frontend {

namespace {

/// Rows [first, first + rows) of a state [3E, E], stored transposed, or of a state [3E].
Piece rowsOf(int64_t first, int64_t rows, int64_t width, bool matrix) {
  if (matrix)
    return {{first, 0}, {0, 0}, {rows, width}, {1, 0}};
  return {{first}, {0}, {rows}, {0}};
}

} // namespace

/// Looks for modules that multiply by a square matrix, and by one that is twice as wide.
void Namer::findProjections() {
  if (!graph_.fromPyTorch())
    return;
  struct Product {
    std::string matrix;
    size_t node;
  };
  std::map<std::string, std::vector<Product>> products; // by module
  for (const std::string& name : graph_.initializerOrder) {
    const Tensor& file = graph_.initializers.at(name);
    if (!isMadeUp(name) || !isFloating(file.dtype) || file.shape.size() != 2)
      continue;
    const std::vector<Use>& uses = uses_.at(name).uses;
    if (uses.size() == 1 && uses[0].role == Role::Weight && uses[0].transposed &&
        !scopes_[uses[0].node].module.empty())
      products[scopes_[uses[0].node].module].push_back({name, uses[0].node});
  }
  // The anonymous vector that is added to a product.
  auto biasOf = [&](const Product& product, int64_t length) -> std::string {
    for (const Node& add : graph_.nodes)
      if (add.opType == "Add" && add.inputs.size() == 2)
        for (size_t k : {0, 1})
          if (auto bias = graph_.initializers.find(add.inputs[k]);
              bias != graph_.initializers.end() &&
              add.inputs[1 - k] == graph_.nodes[product.node].outputs.front() &&
              bias->second.shape == Shape{length} && isMadeUp(bias->first) &&
              uses_.at(bias->first).uses.size() == 1)
            return bias->first;
    return {};
  };
  for (auto& [module, list] : products) {
    std::sort(list.begin(), list.end(),
              [](const Product& a, const Product& b) { return a.node < b.node; });
    auto shapeOf = [&](const Product& p) { return graph_.initializers.at(p.matrix).shape; };
    auto wide = std::find_if(list.begin(), list.end(),
                             [&](const Product& p) { return shapeOf(p)[1] == 2 * shapeOf(p)[0]; });
    if (wide == list.end())
      continue;
    const int64_t width = shapeOf(*wide)[0];
    // The first one: what projects the result reads that of the queries.
    auto query = std::find_if(list.begin(), list.end(),
                              [&](const Product& p) { return shapeOf(p) == Shape{width, width}; });
    const std::string weight = module + ".in_proj_weight", bias = module + ".in_proj_bias";
    auto isFree = [&](const std::string& name) {
      return !taken_.contains(name) && (!signature().known() || signature().byName(name));
    };
    if (query == list.end() || !isFree(weight))
      continue;
    taken_.insert(weight);
    projections_[query->matrix] = {{weight, rowsOf(0, width, width, true)}, Role::Weight};
    projections_[wide->matrix] = {{weight, rowsOf(width, 2 * width, width, true)}, Role::Weight};
    const std::string ofQuery = biasOf(*query, width), ofRest = biasOf(*wide, 2 * width);
    if (ofQuery.empty() || ofRest.empty() || !isFree(bias))
      continue;
    taken_.insert(bias);
    projections_[ofQuery] = {{bias, rowsOf(0, width, width, false)}, Role::Bias};
    projections_[ofRest] = {{bias, rowsOf(width, 2 * width, width, false)}, Role::Bias};
  }
}

bool Namer::fromProjection(NamedTensor& tensor) {
  auto found = projections_.find(tensor.initializer);
  if (found == projections_.end())
    return false;
  tensor.name = found->second.first.state;
  tensor.pieces = {found->second.first};
  tensor.kind = TensorKind::Parameter;
  tensor.role = found->second.second;
  tensor.guessed = !signature().known();
  return true;
}

} // namespace titan::frontend
