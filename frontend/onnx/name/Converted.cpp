// Exports of torch.export that a conversion to an older opset has stripped of all metadata: no
// signature, no scopes, no fx nodes. What is left are the names of nodes, values and tensors.
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Rules.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace titan::frontend {

static constexpr NoteCause kMatrix = {
    "{} was folded by the exporter and is taken for the weight of the layer whose bias is added; "
    "export to opset 18 or later, or with optimize=False, to be sure",
    "{} tensors were folded by the exporter and are taken for the weights of the layers whose "
    "biases are added; export to opset 18 or later, or with optimize=False, to be sure: {}"};

static constexpr NoteCause kShared = {
    "{} is read by several layers, and is one parameter here: nothing tells whether it was merged "
    "from copies of a layer; export to opset 18 or later to keep what tells",
    "{} tensors are read by several layers each, and are one parameter each here: nothing tells "
    "whether they were merged from copies of a layer; export to opset 18 or later to keep what "
    "tells: {}"};

static constexpr NoteCause kBesideGap = {
    "{}: the source has more layers of its kind than the file, so equal ones may have been merged, "
    "and it may stand for several; export to opset 18 or later to keep what tells",
    "{} tensors may each stand for several: the source has more layers of their kind than the "
    "file, so equal ones may have been merged; export to opset 18 or later to keep what tells: {}"};

static constexpr int64_t kLargestMerged = 1024; // elements, of onnxscript

static void addDoubt(Naming& naming, NamedTensor& tensor, const NoteCause& cause) {
  std::string shown = inQuotes(tensor.initializer);
  if (tensor.name != tensor.initializer)
    shown += fmt::format(" (here {})", inQuotes(tensor.name));
  if (tensor.doubt)
    naming.table.notes.add(cause, shown);
  else
    tensor.setDoubt(cause, shown);
}

/// May the tensor be one of a converted file that stands for equal ones?
static bool mayBeMerged(const Facts& facts, const NamedTensor& tensor) {
  return facts.isConverted && tensor.kind == TensorKind::Parameter && !tensor.isCopy &&
         elementCount(facts.file(tensor).shape) <= kLargestMerged;
}

/// Is something read twice of the tensor: itself, or a part of it as a node cuts or turns it? A
/// recurrent layer reads it gate by gate.
static bool isShared(const Facts& facts, const NamedTensor& tensor) {
  static const std::set<std::string_view> kMoves = {
      "Split", "Slice", "Gather", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Identity"};
  std::vector<std::string> values = {tensor.initializer};
  for (size_t i = 0; i < values.size(); ++i) {
    std::set<size_t> readers;
    std::vector<RecurrentPart> parts;
    for (const Read& read : facts.dataflow.readsOf(values[i])) {
      const auto part = facts.recurrentReads.partOf(read);
      if (part && std::ranges::find(parts, *part) != parts.end())
        continue;
      if (part)
        parts.push_back(*part);
      if (!readers.insert(read.node).second)
        continue;
      if (readers.size() > 1)
        return true;
      const Node& node = facts.graph.nodes[read.node];
      if (kMoves.contains(node.opType))
        values.insert(values.end(), node.outputs.begin(), node.outputs.end());
    }
  }
  return false;
}

void doubtShared(Naming& naming) {
  for (NamedTensor& tensor : naming.table.tensors)
    if (mayBeMerged(naming.facts, tensor) && isShared(naming.facts, tensor))
      addDoubt(naming, tensor, kShared);
}

/// The fx values that the node computes, perhaps: its outputs are called after them, but for those
/// of the graph, and it may be called after the first. "linear_2" of "node_linear_2".
static std::vector<std::string_view> fxValuesOf(const Node& node) {
  constexpr std::string_view kPrefix = "node_";
  std::vector<std::string_view> values(node.outputs.begin(), node.outputs.end());
  if (node.name.starts_with(kPrefix))
    values.push_back(std::string_view(node.name).substr(kPrefix.size()));
  return values;
}

/// The ops of which the file has not all layers: fx numbers the values of an op in turn, and the
/// file has "linear_2" and "linear_4" only.
static std::set<std::string_view> layersWithGaps(const Facts& facts) {
  std::map<std::string_view, std::set<size_t>> numbers;
  for (const Node& node : facts.graph.nodes)
    for (std::string_view value : fxValuesOf(node)) {
      const std::string_view op = opOfValue(value);
      if (!isLayer(op))
        continue;
      size_t number = 0; // "linear" is the first
      if (value.size() > op.size())
        std::from_chars(value.data() + op.size() + 1, value.data() + value.size(), number);
      numbers[op].insert(number);
    }
  std::set<std::string_view> gaps;
  for (const auto& [op, found] : numbers)
    if (found.size() <= *found.rbegin())
      gaps.insert(op);
  return gaps;
}

void doubtLayersBesideGaps(Naming& naming) {
  const Facts& facts = naming.facts;
  if (!facts.isConverted)
    return;
  const std::set<std::string_view> gaps = layersWithGaps(facts);
  // Of a layer that is several nodes, the last one has its name.
  std::map<std::string_view, const Node*> readers; // of values without a name
  for (const Node& node : facts.graph.nodes)
    for (const std::string& input : node.inputs)
      if (isAnonymous(input))
        readers[input] = &node;
  auto isBesideGap = [&](const Use& use) {
    const Node& node = facts.nodeOf(use);
    const auto reader = readers.find(node.outputs.front());
    return std::ranges::any_of(
        fxValuesOf(reader == readers.end() ? node : *reader->second),
        [&](std::string_view value) { return gaps.contains(opOfValue(value)); });
  };
  for (NamedTensor& tensor : naming.table.tensors)
    if (mayBeMerged(facts, tensor) && std::ranges::any_of(facts.usesOf(tensor).uses, isBesideGap))
      addDoubt(naming, tensor, kBesideGap);
}

bool fromBiasBeside(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  if (!facts.isConverted || !isAnonymous(tensor.initializer) || !isFloating(file.dtype) ||
      file.shape.size() != 2)
    return false;
  for (const Use& use : facts.usesOf(tensor).uses) {
    const Node& product = facts.nodeOf(use);
    if (use.role != Role::Weight || !use.transposed)
      continue;
    std::string bias = product.opType == "Gemm" && product.hasInput(2) ? product.inputs[2] : "";
    for (const Node& add : facts.graph.nodes)
      if (add.opType == "Add" && add.inputs.size() == 2)
        for (size_t k : {0, 1})
          if (add.inputs[1 - k] == product.outputs.front())
            bias = add.inputs[k];
    auto beside = facts.graph.initializers.find(bias);
    if (beside == facts.graph.initializers.end() || facts.isMadeUp(bias) ||
        !leafOf(bias).ends_with("bias") || beside->second.shape != Shape{file.shape[1]})
      continue;
    if (!naming.take(tensor, bias.substr(0, bias.size() - 4) + "weight", /*transposed=*/true))
      continue;
    tensor.kind = TensorKind::Parameter;
    tensor.guessed = true;
    tensor.setDoubt(
        kMatrix, fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(tensor.name)));
    return true;
  }
  return false;
}

} // namespace titan::frontend
