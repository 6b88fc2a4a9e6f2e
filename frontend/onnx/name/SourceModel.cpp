#include "frontend/onnx/name/SourceModel.h"

#include "frontend/onnx/name/Namer.h"

#include <set>

namespace titan::frontend {

static constexpr NoteCause kMerged = {
    "{} was merged from several parameters of equal value; they are separate here",
    "{} tensors were each merged from several parameters of equal value; they are separate here: "
    "{}"};

void addCopy(Graph& graph, const std::string& original, const std::string& name, bool nameless) {
  Tensor copy = graph.initializers.at(original);
  copy.name = name;
  copy.copyOf = original;
  copy.nameless = nameless;
  graph.initializers.emplace(name, std::move(copy));
  graph.initializerOrder.push_back(name);
}

void splitMergedTensors(Graph& graph) {
  /// The parameter of the fx node that operand `k` of `node` is; empty: not known.
  auto parameterOf = [&](const Node& node, const Scope& scope, size_t k) -> std::string {
    if (scope.operands.empty())
      return {};
    std::string own = mangled(node.inputs[k]);
    std::vector<std::string> tokens;
    for (const FxOperand& operand : scope.operands) {
      if (operand.mangled == own)
        return own;
      // A linear's weight is its second argument, its bias the third.
      bool linear = scope.target.starts_with("aten.linear.");
      bool bias = node.opType == "Add" || k == 2;
      if (!linear || operand.position == (bias ? 2 : 1))
        tokens.push_back(operand.mangled);
    }
    std::string leaf = "_" + mangled(leafOf(node.inputs[k]));
    if (tokens.size() > 1)
      std::erase_if(tokens, [&](const std::string& token) { return !token.ends_with(leaf); });
    return tokens.size() == 1 ? tokens.front() : std::string();
  };
  std::set<std::string> parameters; // that fx nodes name
  std::vector<Scope> scopes;
  for (const Node& node : graph.nodes)
    for (const FxOperand& operand : scopes.emplace_back(scopeOf(node)).operands)
      parameters.insert(operand.mangled);
  auto isSourceName = [&](const std::string& name) {
    return graph.signature.known() ? graph.signature.byName(name) != nullptr
                                   : parameters.contains(mangled(name));
  };
  std::map<std::string, std::map<std::string, std::string>>
      copies; // initializer -> parameter -> name
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    const Scope& scope = scopes[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      auto tensor = graph.initializers.find(node.inputs[k]);
      if (tensor == graph.initializers.end() || tensor->second.shape.empty())
        continue;
      std::string original = node.inputs[k], parameter = parameterOf(node, scope, k);
      if (parameter.empty())
        continue;
      auto& names = copies[original];
      // The file's name stays with its own parameter, whoever is used first; an anonymous tensor is
      // that of its first use.
      if (names.empty())
        names.emplace(isSourceName(original) ? mangled(original) : parameter, original);
      auto [it, fresh] = names.try_emplace(parameter, "");
      if (fresh) {
        it->second = fmt::format("{}#{}", original, names.size() - 1);
        addCopy(graph, original, it->second, /*nameless=*/true);
        graph.notes.add(kMerged, inQuotes(original));
      }
      node.inputs[k] = it->second;
    }
  }
}

void recoverSource(Graph& graph) {
  restoreRemovedBiases(graph);
  shareRepeatedSamples(graph);
  separateEqualTensors(graph);
  splitMergedTensors(graph);
  splitMergedLayers(graph);
  resolveScopes(graph);
}

} // namespace titan::frontend
