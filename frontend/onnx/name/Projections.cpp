// nn.MultiheadAttention keeps its three projections in one parameter, in_proj_weight [3E, E].
// Where queries come from elsewhere than keys and values (a decoder's attention to the encoder), an
// export that folds constants has two matrices of it, one for the queries [E, E] and one for the
// rest [E, 2E], both transposed, and the same of in_proj_bias. Where all three come from elsewhere,
// it has three matrices [E, E]; a fourth is that of the output, which the module multiplies by too.
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

/// Looks for modules that multiply by such matrices themselves.
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
    std::vector<Product> squares;
    for (const Product& product : list)
      if (shapeOf(product)[0] == shapeOf(product)[1])
        squares.push_back(product);
    auto wide = std::find_if(list.begin(), list.end(),
                             [&](const Product& p) { return shapeOf(p)[1] == 2 * shapeOf(p)[0]; });
    std::vector<Product> parts;
    // What projects the result reads that of the queries.
    if (wide != list.end() && !squares.empty() && shapeOf(squares.front())[0] == shapeOf(*wide)[0])
      parts = {squares.front(), *wide};
    else if (squares.size() == (readsItself(module, module + ".out_proj.weight") ? 3 : 4))
      parts = {squares[0], squares[1], squares[2]};
    const std::string weight = module + ".in_proj_weight", bias = module + ".in_proj_bias";
    auto isFree = [&](const std::string& name) {
      return !taken_.contains(name) && (!signature().known() || signature().byName(name));
    };
    if (parts.empty() || !isFree(weight))
      continue;
    taken_.insert(weight);
    const int64_t width = shapeOf(parts.front())[0];
    std::vector<std::string> biases;
    int64_t first = 0;
    for (const Product& part : parts) {
      const int64_t rows = shapeOf(part)[1];
      projections_[part.matrix] = {{weight, rowsOf(first, rows, width, true)}, Role::Weight};
      biases.push_back(biasOf(part, rows));
      first += rows;
    }
    if (std::ranges::count(biases, "") > 0 || !isFree(bias))
      continue;
    taken_.insert(bias);
    first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t rows = shapeOf(parts[i])[1];
      projections_[biases[i]] = {{bias, rowsOf(first, rows, width, false)}, Role::Bias};
      first += rows;
    }
  }
}

/// Does a node of `module` itself, not of one in it, read the initializer `name`?
bool Namer::readsItself(const std::string& module, const std::string& name) const {
  auto found = uses_.find(name);
  return found != uses_.end() && std::ranges::any_of(found->second.uses, [&](const Use& use) {
           return scopes_[use.node].module == module;
         });
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
