// What the readers of a tensor without a name tell of it. Scopes say of which module a node is, and
// a layer calls its matrix, and what it adds to the product, alike everywhere.
#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

namespace {

/// What a module calls a tensor.
struct Attribute {
  std::string name;
  bool guessed = false; ///< from shapes alone
};

/// The number of anonymous matrices, of `shape` if there is one, that `module` itself multiplies
/// by. nn.MultiheadAttention without biases has two: it calls no module for its projections.
size_t productsOf(const Facts& facts, const std::string& module, const Shape* shape) {
  return static_cast<size_t>(std::count_if(
      facts.graph.initializerOrder.begin(), facts.graph.initializerOrder.end(),
      [&](const std::string& name) {
        const std::vector<Use>& uses = facts.usesOf(name).uses;
        return facts.isMadeUp(name) &&
               (!shape || facts.graph.initializers.at(name).shape == *shape) &&
               std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
                 return use.role == Role::Weight && facts.scopeOf(use).module == module;
               });
      }));
}

/// What the module of `use` calls the matrix: as the bias that is added to the product
/// (`in_proj_bias` beside `in_proj_weight`, `qkv.bias` beside `qkv.weight`), as
/// nn.MultiheadAttention calls its projections, else `weight`, as nn.Linear does, which has one.
Attribute weightAttribute(const Naming& naming, const NamedTensor& tensor, const Use& use) {
  const Facts& facts = naming.facts;
  const std::string& module = facts.scopeOf(use).module;
  const std::string& product = facts.nodeOf(use).outputs.front();
  for (const Node& add : facts.graph.nodes) {
    if (add.opType != "Add" ||
        std::find(add.inputs.begin(), add.inputs.end(), product) == add.inputs.end())
      continue;
    for (const std::string& input : add.inputs) {
      if (!facts.graph.initializers.contains(input) || !input.starts_with(module + "."))
        continue;
      const std::string inside = input.substr(module.size() + 1);
      if (inside.ends_with("_bias") || inside.ends_with(".bias"))
        return {inside.substr(0, inside.size() - 4) + "weight"};
    }
  }
  Shape shape = facts.file(tensor).shape; // [in, out]
  bool fused = shape.size() == 2 && shape[1] == 3 * shape[0];
  Shape square{shape[0], shape[0]}, wide{shape[0], 3 * shape[0]};
  if (fused && (facts.graph.initializers.contains(module + ".out_proj.weight") ||
                productsOf(facts, module, &square) > 0))
    return {"in_proj_weight", /*guessed=*/true};
  bool projected = std::ranges::any_of(naming.projections, [&](const auto& entry) {
    return entry.second.piece.state == module + ".in_proj_weight";
  });
  if (shape == square && (productsOf(facts, module, &wide) > 0 || projected))
    return {"out_proj.weight", /*guessed=*/true};
  return {"weight", /*guessed=*/productsOf(facts, module, nullptr) > 1};
}

/// Does `module` itself do what nn.Linear does, a product and perhaps a sum, and nothing else?
bool isLayer(const Facts& facts, const std::string& module) {
  for (size_t i = 0; i < facts.graph.nodes.size(); ++i) {
    const std::string& op = facts.graph.nodes[i].opType;
    if (facts.scopes()[i].module == module && op != "MatMul" && op != "Gemm" && op != "Add" &&
        op != "Cast")
      return false;
  }
  return true;
}

/// Is an anonymous addend a bias? Gemm's third operand is; what an Add takes may be any constant.
bool isBiasOfLayer(const Facts& facts, const NamedTensor& tensor) {
  for (const Use& use : facts.usesOf(tensor).uses)
    if (use.role == Role::Bias && facts.nodeOf(use).opType != "Add" &&
        facts.nodeOf(use).opType != "Sum")
      return true;
  return false;
}

} // namespace

bool fromScope(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  if (!facts.graph.fromPyTorch() || !facts.isDifferentiable(tensor))
    return false;
  for (const Use& use : facts.usesOf(tensor).uses) {
    const Scope& scope = facts.scopeOf(use);
    // An fx node says itself what it reads (fromMetadata).
    if (scope.module.empty() || scope.readsFx())
      continue;
    bool weight = use.role == Role::Weight && file.shape.size() >= 2;
    bool bias = use.role == Role::Bias && file.shape.size() == 1;
    if (!weight && !bias)
      continue;
    Attribute attribute = weight ? weightAttribute(naming, tensor, use) : Attribute{"bias"};
    if (facts.isLegacyFold(tensor) && attribute.name == "weight" && !isLayer(facts, scope.module))
      continue;
    std::string name = scope.module + "." + attribute.name;
    if (facts.signature().known() && !facts.signature().byName(name))
      continue;
    bool transposed = weight && file.shape.size() == 2 && use.transposed;
    if (!naming.take(tensor, name, transposed))
      continue;
    tensor.kind = TensorKind::Parameter;
    tensor.guessed =
        !facts.signature().known() && (attribute.guessed || scope.place != ScopePlace::Told);
    return true;
  }
  return false;
}

bool fromRole(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  const bool isStatistic = tensor.role == Role::Statistic;
  // A part of a parameter's tensor, or a parameter that the file lacks.
  const bool isPart = file.nameless && (facts.isDifferentiable(tensor) || isStatistic);
  if (!isPart) {
    if (facts.signature().known() || (facts.isConverted && !isStatistic))
      return false;
    const bool isParameter = facts.isDifferentiable(tensor) && tensor.role != Role::Other &&
                             !file.shape.empty() &&
                             (tensor.role != Role::Bias || isBiasOfLayer(facts, tensor));
    if (!isStatistic && !isParameter)
      return false;
  }
  tensor.kind = isStatistic ? TensorKind::Buffer : TensorKind::Parameter;
  naming.nameStructurally(tensor);
  return true;
}

} // namespace titan::frontend
