// Layers that torch.export's optimizer merged: where two of them have equal values and read the
// same tensor, as parallel norms of a fresh model, the file has one, which would have both
// gradients.
// What is left of the other is its name in the signature, and in the text of fx nodes that read it.
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kMergedLayers = {
    "{}: the exporter merged layers that compute the same, or equal parameters, so it may stand "
    "for "
    "both; export with optimize=False to train each",
    "{} tensors may each stand for several: the exporter merged layers that compute the same, or "
    "equal parameters; export with optimize=False to train each: {}"};

/// Does `node` read `input` for another value of the same op, which its fx node reads and the file
/// has not? Then all its values of that op are among its inputs, or this one is not its own.
static bool readsForAnother(const Facts& facts, const Node& node, const Scope& scope,
                            const std::string& input) {
  const std::string_view op = opOfValue(input);
  auto isOfOp = [&](const std::string& name) { return opOfValue(name) == op; };
  auto valueIsOfOp = [&](const FxOperand& value) { return isOfOp(value.mangled); };
  const bool isMissing = std::ranges::any_of(scope.values, [&](const FxOperand& value) {
    return valueIsOfOp(value) && !facts.isPresent(value.mangled);
  });
  if (!isMissing)
    return false;
  const bool isOwn = std::ranges::any_of(
      scope.values, [&](const FxOperand& value) { return value.mangled == input; });
  return !isOwn || std::ranges::count_if(node.inputs, isOfOp) >=
                       std::ranges::count_if(scope.values, valueIsOfOp);
}

/// The values that nodes read for others, which were merged with them.
static std::set<std::string> mergedValues(const Facts& facts) {
  std::set<std::string> merged;
  for (size_t i = 0; i < facts.graph.nodes.size(); ++i)
    for (const std::string& input : facts.graph.nodes[i].inputs)
      if (facts.producerOf(input) && !isAnonymous(input) &&
          readsForAnother(facts, facts.graph.nodes[i], facts.scopes()[i], input))
        merged.insert(input);
  return merged;
}

/// Are the names alike but for one segment, as those of layers beside each other?
static bool areBeside(std::string_view a, std::string_view b) {
  int differences = 0;
  while (true) {
    size_t endA = std::min(a.find('.'), a.size()), endB = std::min(b.find('.'), b.size());
    differences += a.substr(0, endA) != b.substr(0, endB);
    if (endA == a.size() || endB == b.size())
      return differences == 1 && endA == a.size() && endB == b.size() &&
             a.substr(0, endA) == b.substr(0, endB);
    a.remove_prefix(endA + 1);
    b.remove_prefix(endB + 1);
  }
}

/// "first.weight" of "blocks.0.first.weight": what is called alike in copies of a module.
static std::string_view endOf(std::string_view name) {
  size_t leaf = name.rfind('.');
  size_t module = leaf == std::string_view::npos || leaf == 0 ? leaf : name.rfind('.', leaf - 1);
  return module == std::string_view::npos ? name : name.substr(module + 1);
}

/// The parameters of `lost` that an fx node reads of which a node reads `tensor`, where nothing
/// says which of its arguments this is.
static std::set<std::string> readFor(const Facts& facts, const NamedTensor& tensor,
                                     const std::map<std::string, std::string>& lost) {
  std::set<std::string> names;
  for (const Use& use : facts.usesOf(tensor).uses) {
    FxArgument argument = argumentOf(facts.nodeOf(use), facts.scopeOf(use), use.operand,
                                     facts.file(tensor).shape.size());
    for (const FxOperand& operand : argument.lifted)
      if (auto found = lost.find(operand.mangled); found != lost.end())
        names.insert(found->second);
  }
  return names;
}

/// Did the optimizer run? It folds what it can, and merges equal tensors.
static bool isOptimized(const Facts& facts) {
  return std::ranges::any_of(facts.graph.initializers, [&](const auto& entry) {
    const Tensor& file = entry.second;
    return isFloating(file.dtype) && elementCount(file.shape) > 1 &&
           (!file.copyOf.empty() || facts.isMadeUp(entry.first));
  });
}

void doubtMergedLayers(Naming& naming) {
  const Facts& facts = naming.facts;
  std::vector<const SourceTensor*> lost = naming.lostParameters();
  const std::set<std::string> values = mergedValues(facts);
  if (lost.empty() && values.empty())
    return;
  std::map<std::string, std::string> byMangled;
  for (const SourceTensor* source : lost)
    byMangled.emplace(mangled(source->name), source->name);
  const bool mergedNodes = !values.empty(), optimized = mergedNodes || isOptimized(facts);
  for (NamedTensor& tensor : naming.table.tensors) {
    if (!naming.isWhole(tensor) || tensor.doubt)
      continue;
    const bool merged = !facts.file(tensor).copyOf.empty() || facts.hasCopies(tensor.initializer);
    const std::set<std::string> read = readFor(facts, tensor, byMangled);
    auto mayStandFor = [&](const std::string& name) {
      return read.contains(name) || (mergedNodes && areBeside(tensor.name, name)) ||
             (optimized && (endOf(tensor.name) == endOf(name) ||
                            (merged && leafOf(tensor.name) == leafOf(name))));
    };
    std::string others;
    for (const SourceTensor* source : lost)
      if (mayStandFor(source->name))
        others += (others.empty() ? " (perhaps " : ", ") + inQuotes(source->name);
    auto makesMerged = [&](const Use& use) {
      return std::ranges::any_of(facts.nodeOf(use).outputs, [&](const std::string& output) {
        return values.contains(output);
      });
    };
    // Where nothing is lost it stands for a copy, which nobody reads then.
    if (!others.empty())
      tensor.setDoubt(kMergedLayers, inQuotes(tensor.name) + others + ")");
    else if ((merged && mergedNodes) || std::ranges::any_of(facts.usesOf(tensor).uses, makesMerged))
      tensor.setDoubt(kMergedLayers, inQuotes(tensor.name));
  }
}

} // namespace titan::frontend
