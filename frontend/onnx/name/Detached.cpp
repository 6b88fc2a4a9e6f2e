// Values that the source detaches, where the export has lost the Identity of it. An optimizing one
// leaves the name of the value in the text of the fx node that reads it; which of the node's
// operands it is may be told, but nodes of equal operands are merged, and another reader may not
// have detached them. Others leave nothing but a sum that would be for nothing without it.
// Of torch.no_grad() the trace alone is left, which is that of torch.autocast, too.
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kDetached = {
    "the source detaches what it computes from {}, and the exporter's optimizer removed that: a "
    "gradient passes here; export with optimize=False",
    "the source detaches what it computes from {} parameters, and the exporter's optimizer removed "
    "that: gradients pass here; export with optimize=False: {}"};

static constexpr NoteCause kStraightThrough = {
    "what is computed from {} is added and subtracted again, as where the source detaches a part "
    "of that (a straight-through estimator), which this exporter does not write: a gradient passes "
    "here; export with torch.export and optimize=False",
    "what is computed from {} parameters is added and subtracted again, as where the source "
    "detaches a part of that (a straight-through estimator), which this exporter does not write: "
    "gradients pass here; export with torch.export and optimize=False: {}"};

static constexpr NoteCause kTracedApart = {
    "the source computes from {} in a region of its own, as under torch.no_grad() or "
    "torch.autocast, and the file does not say which: a gradient passes here; where it should not, "
    "export with detach() on what the region computes",
    "the source computes from {} parameters in a region of its own, as under torch.no_grad() or "
    "torch.autocast, and the file does not say which: gradients pass here; where they should not, "
    "export with detach() on what the region computes: {}"};

static bool isDetached(std::string_view value) { return opOfValue(value) == "detach"; }

/// The values of the graph that stand where the source has detached ones.
static std::vector<std::string> lostDetaches(const Facts& facts) {
  std::vector<std::string> values;
  for (size_t i = 0; i < facts.graph.nodes.size(); ++i) {
    const Node& node = facts.graph.nodes[i];
    const Scope& scope = facts.scopes()[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const std::vector<FxOperand> read = argumentOf(node, scope, k, /*rank=*/1).values;
      bool reads = std::ranges::any_of(read, [&](const FxOperand& value) {
        return isDetached(value.mangled) && !facts.isPresent(value.mangled);
      });
      if (node.hasInput(k) && reads)
        values.push_back(node.inputs[k]);
    }
  }
  return values;
}

/// Does `outer` undo what `inner`, its operand `k`, does: x + (y - x), (y - x) + x, (y + x) - x?
static bool cancels(const Node& outer, size_t k, const Node& inner) {
  const std::string& other = outer.inputs[1 - k];
  if (outer.opType == "Add")
    return inner.opType == "Sub" && inner.inputs[1] == other;
  return outer.opType == "Sub" && k == 0 && inner.opType == "Add" &&
         std::ranges::find(inner.inputs, other) != inner.inputs.end();
}

/// The operands of sums that are for nothing, unless one of them was detached.
static std::vector<std::string> straightThroughs(const Facts& facts) {
  std::vector<std::string> values;
  for (size_t i = 0; i < facts.graph.nodes.size(); ++i) {
    const Node& node = facts.graph.nodes[i];
    if (facts.scopes()[i].readsFx() || node.inputs.size() != 2)
      continue;
    for (size_t k : {0, 1})
      if (const Node* inner = facts.producerOf(node.inputs[k]); inner && cancels(node, k, *inner))
        values.insert(values.end(), inner->inputs.begin(), inner->inputs.end());
  }
  return values;
}

/// What the nodes of regions read that torch.export traced apart, as far as gradients pass.
static std::vector<std::string> readApart(const Facts& facts) {
  const GradientPaths gradients(facts.graph);
  std::vector<std::string> values;
  for (size_t i = 0; i < facts.graph.nodes.size(); ++i) {
    const Node& node = facts.graph.nodes[i];
    for (size_t k = 0; facts.scopes()[i].isTracedApart && k < node.inputs.size(); ++k)
      if (gradients.leadThrough(node, k))
        values.push_back(node.inputs[k]);
  }
  return values;
}

/// Doubts the parameters that `open` are computed from.
static void doubtBehind(Naming& naming, std::vector<std::string> open, const NoteCause& cause) {
  const Facts& facts = naming.facts;
  const GradientPaths gradients(facts.graph);
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
      naming.table.notes.add(cause, inQuotes(tensor.name));
    else
      tensor.setDoubt(cause, inQuotes(tensor.name));
  }
}

void doubtDetached(Naming& naming) {
  doubtBehind(naming, lostDetaches(naming.facts), kDetached);
  doubtBehind(naming, straightThroughs(naming.facts), kStraightThrough);
  doubtBehind(naming, readApart(naming.facts), kTracedApart);
}

} // namespace titan::frontend
