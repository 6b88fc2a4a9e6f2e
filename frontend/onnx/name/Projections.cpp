// nn.MultiheadAttention keeps its three projections in one parameter, in_proj_weight [3E, E].
// Where queries come from elsewhere than keys and values (a decoder's attention to the encoder), an
// export that folds constants has two matrices of it, one for the queries [E, E] and one for the
// rest [E, 2E], both transposed, and the same of in_proj_bias. Where all three come from elsewhere,
// it has three matrices [E, E]; a fourth is that of the output, which the module multiplies by too.
#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

namespace {

/// Rows [first, first + rows) of a state [3E, E], stored transposed, or of a state [3E].
Piece rowsOf(int64_t first, int64_t rows, int64_t width, bool matrix) {
  if (matrix)
    return {{first, 0}, {0, 0}, {rows, width}, {1, 0}};
  return {{first}, {0}, {rows}, {0}};
}

/// Does a node of `module` itself, not of one in it, read the initializer `name`?
bool readsItself(const Facts& facts, const std::string& module, const std::string& name) {
  return facts.graph.initializers.contains(name) &&
         std::ranges::any_of(facts.usesOf(name).uses,
                             [&](const Use& use) { return facts.scopeOf(use).module == module; });
}

} // namespace

void findProjections(Naming& naming) {
  const Facts& facts = naming.facts;
  if (!facts.graph.fromPyTorch())
    return;
  struct Product {
    std::string matrix;
    size_t node;
  };
  std::map<std::string, std::vector<Product>> products; // by module
  for (const std::string& name : facts.graph.initializerOrder) {
    const Tensor& file = facts.graph.initializers.at(name);
    if (!facts.isMadeUp(name) || !isFloating(file.dtype) || file.shape.size() != 2)
      continue;
    const std::vector<Use>& uses = facts.usesOf(name).uses;
    if (uses.size() == 1 && uses[0].role == Role::Weight && uses[0].transposed &&
        !facts.scopeOf(uses[0]).module.empty())
      products[facts.scopeOf(uses[0]).module].push_back({name, uses[0].node});
  }
  // The anonymous vector that is added to a product.
  auto biasOf = [&](const Product& product, int64_t length) -> std::string {
    for (const Node& add : facts.graph.nodes)
      if (add.opType == "Add" && add.inputs.size() == 2)
        for (size_t k : {0, 1})
          if (auto bias = facts.graph.initializers.find(add.inputs[k]);
              bias != facts.graph.initializers.end() &&
              add.inputs[1 - k] == facts.graph.nodes[product.node].outputs.front() &&
              bias->second.shape == Shape{length} && facts.isMadeUp(bias->first) &&
              facts.usesOf(bias->first).uses.size() == 1)
            return bias->first;
    return {};
  };
  for (auto& [module, list] : products) {
    std::sort(list.begin(), list.end(),
              [](const Product& a, const Product& b) { return a.node < b.node; });
    auto shapeOf = [&](const Product& p) { return facts.graph.initializers.at(p.matrix).shape; };
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
    else if (squares.size() == (readsItself(facts, module, module + ".out_proj.weight") ? 3 : 4))
      parts = {squares[0], squares[1], squares[2]};
    const std::string weight = module + ".in_proj_weight", bias = module + ".in_proj_bias";
    if (parts.empty() || !naming.isFree(weight))
      continue;
    naming.reserve(weight);
    const int64_t width = shapeOf(parts.front())[0];
    std::vector<std::string> biases;
    int64_t first = 0;
    for (const Product& part : parts) {
      const int64_t rows = shapeOf(part)[1];
      naming.projections[part.matrix] = {{weight, rowsOf(first, rows, width, true)}, Role::Weight};
      biases.push_back(biasOf(part, rows));
      first += rows;
    }
    if (std::ranges::count(biases, "") > 0 || !naming.isFree(bias))
      continue;
    naming.reserve(bias);
    first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t rows = shapeOf(parts[i])[1];
      naming.projections[biases[i]] = {{bias, rowsOf(first, rows, width, false)}, Role::Bias};
      first += rows;
    }
  }
}

bool fromProjection(Naming& naming, NamedTensor& tensor) {
  auto found = naming.projections.find(tensor.initializer);
  if (found == naming.projections.end())
    return false;
  tensor.name = found->second.piece.state;
  tensor.pieces = {found->second.piece};
  tensor.kind = TensorKind::Parameter;
  tensor.role = found->second.role;
  tensor.guessed = !naming.facts.signature().known();
  return true;
}

} // namespace titan::frontend
