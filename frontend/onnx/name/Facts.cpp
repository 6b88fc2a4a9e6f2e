#include "frontend/onnx/name/Facts.h"

#include "frontend/onnx/name/Exporter.h"

#include <algorithm>

namespace titan::frontend {

Facts::Facts(const Graph& graph)
    : graph(graph), isConverted(frontend::isConverted(graph)), dataflow(graph),
      recurrentReads(graph, dataflow), uses_(findUses(graph)) {
  for (const Node& node : graph.nodes) {
    Scope& scope = scopes_.emplace_back(frontend::scopeOf(node));
    if (scope.place == ScopePlace::Unknown)
      scope.module.clear();
    if (!scope.module.empty())
      modules_.insert(scope.module);
    for (const FxOperand& operand : scope.operands)
      fxKinds_.emplace(operand.mangled, operand.kind);
    for (const FxOperand& value : scope.values)
      fxValues_.insert(value.mangled);
  }
  for (const std::string& name : graph.initializerOrder)
    if (!isMadeUp(name))
      byMangled_.emplace(fxNameOf(graph, name), name);
}

const std::string& Facts::nameInFile(const NamedTensor& tensor) const {
  const std::string& original = file(tensor).copyOf;
  return original.empty() ? file(tensor).name : original;
}

const std::string& Facts::firstModule(const NamedTensor& tensor) const {
  return scopeOf(usesOf(tensor).uses.front()).module;
}

bool Facts::isDifferentiable(const NamedTensor& tensor) const {
  return isFloating(file(tensor).dtype) && usesOf(tensor).differentiable;
}

const Node* Facts::producerOf(const std::string& value) const {
  const std::optional<size_t> node = dataflow.producerOf(value);
  return node ? &graph.nodes[*node] : nullptr;
}

bool Facts::isMadeUp(const std::string& initializer) const {
  const Tensor& tensor = graph.initializers.at(initializer);
  if (isAnonymous(initializer) || tensor.nameless)
    return true;
  if (tensor.restored && !isFloating(tensor.dtype)) // a counter, which no node of the source reads
    return false;
  if (signature().known())
    return !signature().byName(initializer);
  if (isConverted)
    return namesFxValue(initializer);
  return !fxKinds_.empty() && !fxKinds_.contains(mangled(initializer));
}

bool Facts::hasCopies(const std::string& initializer) const {
  return std::ranges::any_of(graph.initializers,
                             [&](const auto& entry) { return entry.second.copyOf == initializer; });
}

bool Facts::isLegacy() const {
  return graph.fromPyTorch() && !signature().known() && fxKinds_.empty();
}

bool Facts::isLegacyFold(const NamedTensor& tensor) const {
  const std::string& name = tensor.initializer;
  bool numbered = std::ranges::all_of(name, [](unsigned char c) { return c >= '0' && c <= '9'; });
  return isLegacy() && !file(tensor).fromConstantNode &&
         (numbered || name.starts_with("onnx::")); // "215" before PyTorch 1.12
}

bool Facts::isPresent(const std::string& name) const {
  return dataflow.producerOf(name) || graph.initializers.contains(name) ||
         std::ranges::any_of(graph.inputs, [&](const Port& input) { return input.name == name; });
}

bool Facts::isAmong(const std::vector<FxOperand>& values, const NamedTensor& tensor) const {
  const std::string& original = file(tensor).copyOf;
  return std::ranges::any_of(values, [&](const FxOperand& value) {
    return value.mangled == tensor.initializer || value.mangled == original;
  });
}

const std::string* Facts::byMangled(const std::string& name) const {
  auto found = byMangled_.find(name);
  return found == byMangled_.end() ? nullptr : &found->second;
}

std::string Facts::demangled(const std::string& text, const std::string& module) const {
  if (const SourceTensor* source = signature().byMangled(text))
    return source->name;
  std::string best;
  auto consider = [&](const std::string& candidate) {
    if (candidate.size() > best.size() && text.starts_with(mangled(candidate) + "_"))
      best = candidate;
  };
  consider(module);
  for (const std::string& candidate : modules_)
    consider(candidate);
  return best.empty() ? text : best + "." + text.substr(best.size() + 1);
}

} // namespace titan::frontend
