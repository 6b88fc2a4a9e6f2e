// With a fixed batch, optimizers fold what each sample repeats, and with a fixed length what each
// position does. What is repeated is one parameter, which has the gradient of all.
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/Recurrent.h"
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace titan::frontend {

/// Is every use of `name` an operand of an op that broadcasts it to another one's shape?
static bool onlyBroadcasts(const Graph& graph, const std::string& name) {
  size_t uses = 0;
  for (const Node& node : graph.nodes)
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != name)
        continue;
      bool binary = node.opType == "Add" || node.opType == "Mul" || node.opType == "Sub";
      if (!binary || graph.initializers.contains(node.inputs[1 - k]))
        return false;
      ++uses;
    }
  for (const Port& output : graph.outputs)
    uses = output.name == name ? 0 : uses;
  return uses > 0;
}

/// Is there no value `name` in the graph?
static bool isFree(const Graph& graph, const std::string& name) {
  return !graph.initializers.contains(name) &&
         std::ranges::none_of(graph.nodes, [&](const Node& node) {
           return std::ranges::find(node.outputs, name) != node.outputs.end();
         });
}

static const std::string kJoined = "#joined", kShape = "#shape";

/// A node `type` of `value` and `shape`, which gives `value` + `suffix`.
static Node movement(Graph& graph, const char* type, const std::string& value, const Shape& shape,
                     const std::string& suffix) {
  Node node;
  node.opType = type;
  node.inputs = {value, value + suffix + kShape};
  node.outputs = {value + suffix};
  Tensor extents;
  extents.name = node.inputs[1];
  extents.dtype = DType::I64;
  extents.shape = {static_cast<int64_t>(shape.size())};
  extents.inlineBytes = std::make_shared<const std::string>(
      reinterpret_cast<const char*>(shape.data()), shape.size() * sizeof(int64_t));
  graph.initializerOrder.push_back(extents.name);
  graph.initializers.emplace(extents.name, std::move(extents));
  return node;
}

/// Lets the readers of `name` read it repeated to `repeated`, whose samples are joined with another
/// dimension where the shape in the file has one less.
static void repeatTo(Graph& graph, const std::string& name, const Shape& repeated,
                     const Shape& inFile) {
  std::vector<Node> nodes{movement(graph, "Expand", name, repeated, kRepeated)};
  if (repeated.size() != inFile.size())
    nodes.push_back(movement(graph, "Reshape", nodes[0].outputs[0], inFile, kJoined));
  bool isFirst = true;
  for (Node& reader : graph.nodes)
    for (std::string& input : reader.inputs) {
      if (input != name)
        continue;
      // Where it is from is what its readers say.
      if (std::exchange(isFirst, false))
        for (Node& node : nodes)
          std::tie(node.opset, node.metadata, node.module, node.place) =
              std::tie(reader.opset, reader.metadata, reader.module, reader.place);
      input = nodes.back().outputs[0];
    }
  graph.nodes.insert(graph.nodes.begin(), nodes.begin(), nodes.end());
}

/// Is `extent` the fixed batch of an input?
static bool isBatch(const Graph& graph, int64_t extent) {
  return std::ranges::any_of(graph.inputs, [&](const Port& input) {
    return input.dims && !input.dims->empty() && input.dims->front().extent == extent;
  });
}

/// The first slice of `tensor` along `dim`; nothing where others differ from it.
static std::optional<Tensor> sliceOfEqual(const Tensor& tensor, size_t dim) {
  const auto at = tensor.shape.begin() + static_cast<long>(dim);
  const int64_t outer = elementCount(Shape(tensor.shape.begin(), at));
  Tensor slice = tensor;
  slice.shape[dim] = 1;
  if (outer == 1) {
    Tensor rows = tensor;
    rows.shape.assign(at, tensor.shape.end());
    return hasEqualSlices(rows) ? std::optional(firstOf(tensor, slice.shape)) : std::nullopt;
  }
  Result<std::string> bytes = tensor.missing.empty() ? tensor.read() : std::string();
  if (!bytes.ok() || bytes->empty())
    return std::nullopt;
  const size_t block = bytes->size() / static_cast<size_t>(outer),
               step = block / static_cast<size_t>(*at);
  std::string first;
  for (size_t from = 0; from < bytes->size(); from += block) {
    const auto begin = bytes->begin() + static_cast<long>(from);
    if (!std::equal(begin + static_cast<long>(step), begin + static_cast<long>(block), begin))
      return std::nullopt;
    first.append(*bytes, from, step);
  }
  if (!slice.stored)
    slice.stored = std::make_shared<const Tensor>(tensor);
  slice.span.reset();
  slice.file.reset();
  slice.inlineBytes = std::make_shared<const std::string>(std::move(first));
  return slice;
}

/// [batch * n, …] of which all n rows repeat, as heads do that are merged with samples, as
/// [batch, n, …]; else the shape of `tensor`.
static Shape withBatchApart(const Graph& graph, const Tensor& tensor) {
  if (hasEqualSlices(tensor))
    return tensor.shape;
  for (const Port& input : graph.inputs) {
    const int64_t batch =
        input.dims && !input.dims->empty() ? input.dims->front().extent.value_or(1) : 1;
    if (batch < 2 || tensor.shape[0] % batch != 0)
      continue;
    Tensor apart = tensor;
    apart.shape[0] /= batch;
    apart.shape.insert(apart.shape.begin(), batch);
    if (hasEqualSlices(apart))
      return apart.shape;
  }
  return tensor.shape;
}

/// The dimension of samples of what torch.export repeated, as its name or its readers say; nothing
/// where they do not, or several may be it.
static std::optional<size_t> dimOfSamples(const Graph& graph, const Tensor& tensor) {
  if (areFirstStates(graph, tensor.name))
    return 1;
  static constexpr std::string_view ops[] = {"broadcast_to", "expand", "repeat", "tile"};
  if (std::ranges::find(ops, opOfValue(tensor.name)) == std::end(ops))
    return std::nullopt;
  std::optional<size_t> found;
  for (size_t dim = 0; dim + 1 < tensor.shape.size(); ++dim) {
    if (tensor.shape[dim] == 1 || !isBatch(graph, tensor.shape[dim]))
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found;
}

/// A vector among dimensions of 1: one of channels, as a norm of images has them, however many
/// samples there are.
static bool isVector(const Shape& shape) {
  return std::ranges::count_if(shape, [](int64_t extent) { return extent != 1; }) == 1;
}

/// Repeated rows of torch.export, and repeated samples.
static void share(Graph& graph, const std::string& name, bool fromFx) {
  Tensor& tensor = graph.initializers.at(name);
  const Shape inFile = tensor.shape;
  // onnxscript folds nothing to more elements, but for movements, which repeat nothing.
  constexpr int64_t kLargestFold = 1 << 18;
  const bool perhapsRows = fromFx && inFile.size() >= 2 && elementCount(inFile) <= kLargestFold &&
                           isFree(graph, name + kRepeated) &&
                           isFree(graph, name + kRepeated + kShape);
  // Rows that are equal by chance, such as zeros, may each be trained.
  const bool drawn = perhapsRows && isDrawn(tensor);
  const std::optional<size_t> samples = perhapsRows ? dimOfSamples(graph, tensor) : std::nullopt;
  if (drawn)
    tensor.shape = withBatchApart(graph, tensor);
  Shape repeated = tensor.shape; // what readers need, who broadcast samples themselves
  bool isRepeated = false, isBehind = false;
  for (size_t dim = 0; dim + 1 < tensor.shape.size(); ++dim) {
    const int64_t extent = tensor.shape[dim];
    if (extent == 1)
      continue;
    const bool ofBatch = isBatch(graph, extent);
    const bool isLeading = ofBatch && dim == 0 && (drawn || inFile.size() >= 3) &&
                           !isVector(inFile) && repeated.size() == inFile.size() &&
                           onlyBroadcasts(graph, name);
    const bool isRow =
        (drawn && (ofBatch || !isBehind)) || (ofBatch && samples == std::optional(dim));
    std::optional<Tensor> slice = isLeading || isRow ? sliceOfEqual(tensor, dim) : std::nullopt;
    if (!slice) {
      isBehind = true;
      continue;
    }
    tensor = std::move(*slice);
    if (isLeading)
      repeated[dim] = 1;
    isRepeated |= !isLeading;
  }
  if (isRepeated)
    repeatTo(graph, name, repeated, inFile);
}

void shareRepeatedSamples(Graph& graph) {
  if (!graph.fromPyTorch())
    return;
  bool converted = isConverted(graph), known = graph.signature.known();
  for (const std::string& name : std::vector<std::string>(graph.initializerOrder)) {
    const Tensor& tensor = graph.initializers.at(name);
    bool folded = known       ? !graph.signature.byName(name)
                  : converted ? isAnonymous(name) || namesFxValue(name)
                              : isAnonymous(name);
    if (folded && !tensor.fromConstantNode && isFloating(tensor.dtype))
      share(graph, name, known || converted);
  }
}

} // namespace titan::frontend
