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

/// Does a node read the value of one fx node where its own reads another one of the same op, which
/// the file has not?
static bool hasMergedNodes(const Facts& facts) {
  for (size_t i = 0; i < facts.graph.nodes.size(); ++i) {
    const std::vector<FxOperand>& values = facts.scopes()[i].values;
    for (const std::string& input : facts.graph.nodes[i].inputs) {
      if (!facts.producerOf(input) || isAnonymous(input))
        continue;
      auto isInput = [&](const FxOperand& value) { return value.mangled == input; };
      auto isOther = [&](const FxOperand& value) {
        return value.mangled != input && opOfValue(value.mangled) == opOfValue(input) &&
               !facts.isPresent(value.mangled);
      };
      if (std::ranges::none_of(values, isInput) && std::ranges::any_of(values, isOther))
        return true;
    }
  }
  return false;
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
  if (lost.empty())
    return;
  std::map<std::string, std::string> byMangled;
  for (const SourceTensor* source : lost)
    byMangled.emplace(mangled(source->name), source->name);
  const bool mergedNodes = hasMergedNodes(facts), optimized = mergedNodes || isOptimized(facts);
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
    if (!others.empty())
      tensor.setDoubt(kMergedLayers, inQuotes(tensor.name) + others + ")");
  }
}

} // namespace titan::frontend
