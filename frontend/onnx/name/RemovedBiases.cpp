// Biases that onnxscript took out of the file because they are all zeros, as those of every fresh
// model are. The node says so, and its fx node still names the parameter.
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/SourceModel.h"

#include <algorithm>

namespace titan::frontend {

namespace {

constexpr NoteCause kNamedAfterWeight = {
    "bias {} of zeros was left out by the exporter: it is called after the weight beside it",
    "{} biases of zeros were left out by the exporter: they are called after the weights beside "
    "them: {}"};

/// Did onnxscript remove the bias of `node`?
bool lostItsBias(const Node& node) {
  if (node.opType != "Gemm" && node.opType != "Conv" && node.opType != "ConvTranspose")
    return false;
  const std::vector<std::string_view> rules = rewriterRules(node);
  return !node.hasInput(2) && node.hasInput(1) &&
         std::ranges::find(rules, "RemoveOptionalBiasFrom" + node.opType) != rules.end();
}

/// The argument of the ATen op that is its bias; -1: not known.
int biasPosition(std::string_view target) {
  if (target.starts_with("aten.addmm."))
    return 0;
  if (target.starts_with("aten.linear.") || target.starts_with("aten.conv"))
    return 2;
  return -1;
}

/// Extent of the output's features, which the bias has one element for; nothing where the weight is
/// computed.
std::optional<int64_t> outputChannels(const Graph& graph, const Node& node) {
  auto weight = graph.initializers.find(node.inputs[1]);
  if (weight == graph.initializers.end())
    return std::nullopt;
  const Shape& shape = weight->second.shape;
  if (node.opType == "Gemm")
    return shape.size() == 2 ? std::optional(shape[node.integer("transB", 0) != 0 ? 0 : 1])
                             : std::nullopt;
  if (shape.size() < 3)
    return std::nullopt;
  if (node.opType == "Conv")
    return shape[0];
  int64_t groups = node.integer("group", 1); // of [in, out / groups, kernel...]
  return groups >= 1 && groups <= shape[0] ? std::optional(shape[1] * groups) : std::nullopt;
}

/// What the source calls `operand`: by the signature, else as an attribute of the node's module.
std::string nameOf(const Graph& graph, const Scope& scope, const FxOperand& operand) {
  if (const SourceTensor* source = graph.signature.byMangled(operand.mangled))
    return source->name;
  std::string module = mangled(scope.module);
  if (scope.module.empty() || !operand.mangled.starts_with(module + "_"))
    return operand.mangled;
  return scope.module + "." + operand.mangled.substr(module.size() + 1);
}

struct Found {
  std::string name; ///< empty: none
  bool guessed = false;
};

/// The parameter that `node` lost; nothing where it lost something else. Without fx metadata (a
/// conversion to an older opset drops it) it is called as the weight beside it.
std::optional<Found> lostParameter(const Graph& graph, const Node& node) {
  Scope scope = scopeOf(node);
  if (!scope.target.empty()) {
    int position = biasPosition(scope.target);
    for (const FxOperand& operand : scope.operands)
      if (position >= 0 && operand.kind == 'p' && operand.position == position)
        return Found{nameOf(graph, scope, operand)};
    return std::nullopt;
  }
  const std::string& weight = node.inputs[1];
  if (isAnonymous(weight) || leafOf(weight) != "weight")
    return Found{};
  std::string name = weight.substr(0, weight.size() - leafOf(weight).size()) + "bias";
  if (graph.signature.known() && !graph.signature.byName(name))
    return Found{};
  return Found{name, /*guessed=*/true};
}

} // namespace

void restoreRemovedBiases(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (!lostItsBias(node))
      continue;
    std::optional<Found> found = lostParameter(graph, node);
    std::optional<int64_t> channels = outputChannels(graph, node);
    if (!found || !channels)
      continue;
    Tensor bias;
    bias.name = found->name.empty() ? node.outputs.front() + "#bias" : found->name;
    bias.nameless = found->name.empty();
    bias.dtype = graph.initializers.at(node.inputs[1]).dtype;
    bias.shape = {*channels};
    bias.restored = true;
    auto known = graph.initializers.find(bias.name);
    if (known != graph.initializers.end() &&
        (known->second.shape != bias.shape || known->second.dtype != bias.dtype))
      continue;
    node.inputs.resize(3);
    node.inputs[2] = bias.name;
    if (known != graph.initializers.end())
      continue; // merged with others, or a layer that is called twice
    if (found->guessed)
      graph.notes.add(kNamedAfterWeight, inQuotes(bias.name));
    auto& order = graph.initializerOrder;
    order.insert(std::find(order.begin(), order.end(), node.inputs[1]) + 1, bias.name);
    graph.initializers.emplace(bias.name, std::move(bias));
  }
}

} // namespace titan::frontend
