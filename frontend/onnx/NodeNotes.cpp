// What the user should know of an import beside the names of tensors: what exporters lose of nodes,
// and how norms of the batch and random numbers are trained.
#include "frontend/onnx/Import.h"
#include "frontend/onnx/IndexRanges.h"
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Scopes.h"
#include "frontend/onnx/name/Values.h"

#include <set>

using namespace mlir;

namespace titan::frontend {

/// Notes the nodes of ONNX' own ops of which `cause` is true.
static void noteNodes(Notes& notes, const Graph& graph, const NoteCause& cause,
                      llvm::function_ref<bool(const Node&)> isTrue) {
  for (const Node& node : graph.nodes)
    if (node.domain.empty() && isTrue(node))
      notes.add(cause, node.shown());
}

static constexpr NoteCause kUnsmoothed = {
    "{} may have had label_smoothing: PyTorch's exporter leaves it out, and the file does not say",
    "{} losses may have had label_smoothing, which PyTorch's exporter leaves out, and the file "
    "does "
    "not say: {}"};

/// The legacy exporter refuses label smoothing; torch.export's metadata says it, if it is there.
static void noteSmoothing(Notes& notes, const Graph& graph) {
  noteNodes(notes, graph, kUnsmoothed, [&](const Node& node) {
    return graph.fromPyTorch() && node.opType == "SoftmaxCrossEntropyLoss" && !scopeOf(node).known;
  });
}

static constexpr NoteCause kUnsummed = {
    "{} may have been index_put(accumulate=True), index_add or scatter_add, whose repeated indices "
    "PyTorch's legacy exporter does not sum: the last of them counts",
    "{} nodes may have been index_put(accumulate=True), index_add or scatter_add, whose repeated "
    "indices PyTorch's legacy exporter does not sum: the last of them counts: {}"};

/// The legacy exporter adds zeros, in which the updates stand, to the data.
static void noteUnsummedUpdates(Notes& notes, const Graph& graph) {
  std::set<std::string> filled, added;
  for (const Node& node : graph.nodes) {
    if (node.domain.empty() && node.opType == "ConstantOfShape")
      filled.insert(node.outputs[0]);
    if (node.domain.empty() && node.opType == "Add")
      added.insert(node.inputs.begin(), node.inputs.end());
  }
  const auto isFilled = [&](const std::string& value) {
    auto constant = graph.initializers.find(value);
    return constant != graph.initializers.end() ? isZeros(constant->second)
                                                : filled.contains(value);
  };
  noteNodes(notes, graph, kUnsummed, [&](const Node& node) {
    return graph.fromPyTorch() && node.opType.starts_with("Scatter") && !scopeOf(node).readsFx() &&
           node.text("reduction", "none") == "none" && isFilled(node.inputs[0]) &&
           added.contains(node.outputs[0]);
  });
}

static constexpr NoteCause kStrided = {
    "{} may have been as_strided(): PyTorch's legacy exporter takes its operand for contiguous, "
    "and "
    "computes something else where it is a transposed view",
    "{} nodes may have been as_strided(): PyTorch's legacy exporter takes their operands for "
    "contiguous, and computes something else where they are transposed views: {}"};

/// The legacy exporter looks the elements up in a list of all, at sums of strides times positions,
/// which it counts by NonZero.
static void noteStrided(Notes& notes, const Graph& graph) {
  std::set<std::string> lists, positions;
  const auto areAmong = [](const Node& node, const std::set<std::string>& values) {
    return std::ranges::any_of(node.inputs,
                               [&](const std::string& input) { return values.contains(input); });
  };
  for (const Node& node : graph.nodes) {
    if (!node.domain.empty() || scopeOf(node).readsFx())
      continue;
    if (node.opType == "Reshape")
      lists.insert(node.outputs[0]);
    const bool moves = node.opType == "Transpose" || node.opType == "Squeeze" ||
                       node.opType == "Cast" || node.opType == "Reshape" || node.opType == "Mul" ||
                       node.opType == "Add";
    if (node.opType == "NonZero" || (moves && areAmong(node, positions)))
      positions.insert(node.outputs[0]);
  }
  noteNodes(notes, graph, kStrided, [&](const Node& node) {
    return graph.fromPyTorch() && node.opType == "Gather" && node.inputs.size() == 2 &&
           lists.contains(node.inputs[0]) && positions.contains(node.inputs[1]);
  });
}

static constexpr NoteCause kLowestMask = {
    "{} may be the mask of scaled_dot_product_attention, in which torch.export writes the lowest "
    "number for minus infinity: a query whose keys are all masked attends to all alike then, and "
    "has no result in PyTorch; export to opset 18 or later",
    "{} nodes may be masks of scaled_dot_product_attention, in which torch.export writes the "
    "lowest number for minus infinity: a query whose keys are all masked attends to all alike "
    "then, and has no result in PyTorch; export to opset 18 or later: {}"};

/// The one element of a constant.
static std::optional<double> numberOf(const Graph& graph, const std::string& value) {
  auto constant = graph.initializers.find(value);
  if (constant == graph.initializers.end() || elementCount(constant->second.shape) != 1 ||
      !constant->second.missing.empty())
    return std::nullopt;
  Result<HostTensor> host = toHost(constant->second);
  return host.ok() && host->isFloat() ? std::optional(host->real(0)) : std::nullopt;
}

/// A conversion to another opset drops the fx node, by which such a mask is known.
static void noteLowestMasks(Notes& notes, const Graph& graph) {
  if (!isConverted(graph))
    return;
  noteNodes(notes, graph, kLowestMask, [&](const Node& node) {
    return node.opType == "Where" && node.inputs.size() == 3 &&
           !graph.initializers.contains(node.inputs[0]) && numberOf(graph, node.inputs[1]) == 0 &&
           numberOf(graph, node.inputs[2]) == std::numeric_limits<float>::lowest();
  });
}

static constexpr NoteCause kFixedStatistics = {
    "{} trains with fixed statistics, as the model was exported: model.mode = \"train\" "
    "normalises by the batch",
    "{} batch norms train with fixed statistics, as the model was exported: model.mode = "
    "\"train\" normalises by the batch: {}"};

static void noteFixedStatistics(Notes& notes, const Graph& graph) {
  noteNodes(notes, graph, kFixedStatistics, [](const Node& node) {
    return node.opType == "BatchNormalization" && !usesBatchStatistics(node);
  });
}

static constexpr NoteCause kLastStatistics = {
    "{} keeps the statistics of the last batch alone, as its momentum says: where the source "
    "averages those of all batches (momentum=None), the file does not say so; give it a momentum "
    "before the export",
    "{} batch norms keep the statistics of the last batch alone, as their momentum says: where the "
    "source averages those of all batches (momentum=None), the file does not say so; give them a "
    "momentum before the export: {}"};
static constexpr NoteCause kUnmovedStatistics = {
    "{} normalises by the batch and never moves its running statistics, as its momentum says: "
    "where the source averages those of all batches (momentum=None), the file does not say so; "
    "give it a momentum before the export",
    "{} batch norms normalise by the batch and never move their running statistics, as their "
    "momentum says: where the source averages those of all batches (momentum=None), the file does "
    "not say so; give them a momentum before the export: {}"};

/// A norm that averages all batches has a momentum that depends on their number. The legacy
/// exporter writes that of the first batch, or of none; of a later one it could be any norm's.
static void noteCumulativeStatistics(Notes& notes, const Graph& graph, bool trains) {
  for (const Node& node : graph.nodes) {
    if (!graph.fromPyTorch() || !node.domain.empty() || node.opType != "BatchNormalization" ||
        !(trains || usesBatchStatistics(node)))
      continue;
    const double kept = node.real("momentum", 0.9);
    if (kept == 0)
      notes.add(kLastStatistics, node.shown());
    else if (kept == 1)
      notes.add(kUnmovedStatistics, node.shown());
  }
}

static constexpr NoteCause kInstanceStatistics = {
    "{} normalises by each instance in evaluation too: the running statistics, which PyTorch takes "
    "after eval(), are not in the file",
    "{} norms normalise by each instance in evaluation too: the running statistics, which PyTorch "
    "takes after eval(), are not in the file: {}"};

/// Exported after train(), torch.nn.InstanceNorm leaves out the buffers that it moves.
static void noteInstanceStatistics(Notes& notes, const Graph& graph) {
  noteNodes(notes, graph, kInstanceStatistics, [](const Node& node) {
    const Scope scope = scopeOf(node);
    return node.opType == "InstanceNormalization" &&
           scope.target.starts_with("aten.instance_norm.") &&
           llvm::any_of(scope.operands,
                        [](const FxOperand& operand) { return operand.kind == 'b'; });
  });
}

static constexpr NoteCause kDrawsInEvaluation = {
    "{} draws random numbers, in evaluation too, there with seed and step 0",
    "{} nodes draw random numbers, in evaluation too, there with seed and step 0: {}"};

static constexpr NoteCause kComputedIndex = {
    "{} looks up at indices that the model computes: one beyond what it looks up takes the nearest "
    "place, where the source may have an error",
    "{} nodes look up at indices that the model computes: one beyond what they look up takes the "
    "nearest place, where the source may have an error: {}"};

static std::string nodeOf(Operation* op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  return fmt::format("node '{}'", name ? printable(name.getName().str()) : "");
}

/// The indices of a look-up, and the extent of the dimension that they are of; null: it is none.
static std::pair<Value, int64_t> lookedUp(Operation* op) {
  if (auto lookup = dyn_cast<ir::EmbeddingOp>(op))
    return {lookup.getIndices(), ir::tensorType(lookup.getTable()).getDimSize(0)};
  if (auto gather = dyn_cast<ir::GatherOp>(op))
    return {gather.getIndices(), ir::tensorType(gather.getOperand()).getDimSize(gather.getDim())};
  return {};
}

std::vector<std::string> notesOfModule(ModuleOp module) {
  Notes notes;
  IndexRanges ranges;
  module.walk([&](Operation* op) {
    ranges.visit(op);
    if (isa<ir::RandomOp>(op))
      notes.add(kDrawsInEvaluation, nodeOf(op));
    const auto [indices, extent] = lookedUp(op);
    if (!indices || ranges.isData(indices))
      return;
    const Range range = ranges.of(indices);
    if (range.low < 0 || range.high >= static_cast<double>(extent))
      notes.add(kComputedIndex, nodeOf(op));
  });
  return notes.lines();
}

/// TensorFlow optimizes what tf2onnx reads, and keeps no list of variables.
static void noteFrozenGraph(Notes& notes, const Graph& graph) {
  if (graph.fromTensorFlow())
    notes.add("tf2onnx exports what TensorFlow made of the model for inference: dropout and biases "
              "that were zeros are gone, and norms of the batch are numbers that are computed "
              "already");
}

std::vector<std::string> notesOf(const Graph& graph, const NameTable& names, const Recipe& recipe) {
  Notes all = graph.notes;
  all.append(names.notes);
  noteFrozenGraph(all, graph);
  noteSmoothing(all, graph);
  noteUnsummedUpdates(all, graph);
  noteStrided(all, graph);
  noteLowestMasks(all, graph);
  noteInstanceStatistics(all, graph);
  noteCumulativeStatistics(all, graph, recipe.model.mode == "train");
  if (recipe.model.mode != "train")
    noteFixedStatistics(all, graph);
  return all.lines();
}

} // namespace titan::frontend
