// With a fixed batch, optimizers fold what each sample repeats, and with a fixed length what each
// position does. What is repeated is one parameter, which has the gradient of all.
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Names.h"
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

/// Lets the readers of `name` read it repeated to `shape`.
static void repeatTo(Graph& graph, const std::string& name, const Shape& shape) {
  Node expand;
  expand.opType = "Expand";
  expand.inputs = {name, name + "#shape"};
  expand.outputs = {name + "#repeated"};
  bool isFirst = true;
  for (Node& node : graph.nodes)
    for (std::string& input : node.inputs) {
      if (input != name)
        continue;
      // Where it is from is what its readers say.
      if (std::exchange(isFirst, false))
        std::tie(expand.opset, expand.metadata, expand.module, expand.place) =
            std::tie(node.opset, node.metadata, node.module, node.place);
      input = expand.outputs[0];
    }
  Tensor extents;
  extents.name = expand.inputs[1];
  extents.dtype = DType::I64;
  extents.shape = {static_cast<int64_t>(shape.size())};
  extents.inlineBytes = std::make_shared<const std::string>(
      reinterpret_cast<const char*>(shape.data()), shape.size() * sizeof(int64_t));
  graph.initializerOrder.push_back(extents.name);
  graph.initializers.emplace(extents.name, std::move(extents));
  graph.nodes.insert(graph.nodes.begin(), std::move(expand));
}

/// Repeated rows of torch.export, and repeated samples.
static void share(Graph& graph, const std::string& name, bool fromFx) {
  Tensor& tensor = graph.initializers.at(name);
  Shape repeated = tensor.shape; // what readers need, who broadcast samples themselves
  bool isRepeated = false;
  // onnxscript folds nothing to more elements, but for movements, which repeat nothing.
  constexpr int64_t kLargestFold = 1 << 18;
  bool perhapsRows = fromFx && elementCount(tensor.shape) <= kLargestFold &&
                     isFree(graph, name + "#shape") && isFree(graph, name + "#repeated");
  for (size_t dim = 0; dim + 1 < tensor.shape.size(); ++dim) {
    const int64_t extent = tensor.shape[dim];
    if (extent == 1)
      continue;
    Tensor rows = tensor;
    rows.shape.erase(rows.shape.begin(), rows.shape.begin() + static_cast<long>(dim));
    // Rows that are equal by chance, such as zeros, may each be trained.
    bool drawn = perhapsRows && isDrawn(tensor);
    bool isBatch = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const Port& input) {
      return dim == 0 && input.dims && !input.dims->empty() && input.dims->front().extent == extent;
    });
    isBatch = isBatch && (drawn || tensor.shape.size() >= 3) && onlyBroadcasts(graph, name);
    if ((!isBatch && !drawn) || !hasEqualSlices(rows))
      break;
    Shape kept = tensor.shape; // of the first slice, before which all extents are 1
    kept[dim] = 1;
    tensor = firstOf(tensor, kept);
    if (isBatch)
      repeated[dim] = 1;
    isRepeated |= !isBatch;
  }
  if (isRepeated)
    repeatTo(graph, name, repeated);
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
