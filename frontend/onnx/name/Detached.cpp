// Values that the source detaches, or that it computes of detached ones: no gradient passes there
// in PyTorch. ONNX has no such op. torch.export leaves an Identity, or the name of the value in the
// text of the fx node that reads it.
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kDetached = {
    "the source detaches what it computes from {}, which ONNX does not say: a gradient passes "
    "here; "
    "model.frozen keeps a parameter as it is",
    "the source detaches what it computes from {} parameters, which ONNX does not say: gradients "
    "pass here; model.frozen keeps parameters as they are: {}"};

static bool isDetached(std::string_view value) { return opOfValue(value) == "detach"; }

/// The values of the graph that stand where the source has detached ones.
static std::vector<std::string> detachedValues(const Facts& facts) {
  std::vector<std::string> values;
  for (size_t i = 0; i < facts.graph.nodes.size(); ++i) {
    const Node& node = facts.graph.nodes[i];
    const Scope& scope = facts.scopes()[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const std::vector<FxOperand> read = argumentOf(node, scope, k, /*rank=*/1).values;
      bool reads = std::ranges::any_of(read, [&](const FxOperand& value) {
        return isDetached(value.mangled) && !facts.isPresent(value.mangled);
      });
      bool isOpItself = node.opType == "Identity" && scope.target.starts_with("aten.detach.");
      if (node.hasInput(k) && (reads || isOpItself))
        values.push_back(node.inputs[k]);
    }
  }
  return values;
}

void doubtDetached(Naming& naming) {
  const Facts& facts = naming.facts;
  const GradientPaths gradients(facts.graph);
  std::vector<std::string> open = detachedValues(facts);
  std::set<std::string> seen(open.begin(), open.end());
  while (!open.empty()) {
    const Node* node = facts.producerOf(open.back());
    open.pop_back();
    for (size_t k = 0; node && k < node->inputs.size(); ++k)
      if (gradients.leadThrough(*node, k) && seen.insert(node->inputs[k]).second)
        open.push_back(node->inputs[k]);
  }
  for (NamedTensor& tensor : naming.table.tensors) {
    if (tensor.kind != TensorKind::Parameter || !seen.contains(tensor.initializer))
      continue;
    if (tensor.doubt)
      naming.table.notes.add(kDetached, inQuotes(tensor.name));
    else
      tensor.setDoubt(kDetached, inQuotes(tensor.name));
  }
}

} // namespace titan::frontend
