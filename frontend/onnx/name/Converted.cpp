// Exports of torch.export that a conversion to an older opset has stripped of all metadata: no
// signature, no scopes, no fx nodes. What is left are the names of nodes, values and tensors.
#include "frontend/onnx/name/Namer.h"

#include <algorithm>

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

bool isConverted(const Graph& graph) {
  if (!graph.fromPyTorch() || graph.signature.known())
    return false;
  // torch.export calls its nodes "node_linear_1", the legacy exporter "/fc/MatMul".
  bool exported = false;
  for (const Node& node : graph.nodes) {
    if (node.name.starts_with('/') || node.metadata.contains("pkg.torch.onnx.name_scopes"))
      return false;
    exported |= node.name.starts_with("node_");
  }
  return exported;
}

bool namesFxValue(std::string_view name) {
  // What optimizers fold: arithmetic, movement, reductions and products of parameters.
  static constexpr std::string_view ops[] = {
      "_to_copy",     "_weight_norm", "_weight_norm_interface",
      "abs",          "add",          "bmm",
      "broadcast_to", "cat",          "clamp",
      "clone",        "concat",       "contiguous",
      "cos",          "cumsum",       "detach",
      "diag",         "div",          "einsum",
      "elu",          "embedding",    "exp",
      "expand",       "expm1",        "flatten",
      "flip",         "gather",       "gelu",
      "getitem",      "index",        "index_select",
      "inverse",      "linear",       "linalg_vector_norm",
      "log",          "log1p",        "log_softmax",
      "masked_fill",  "matmul",       "mean",
      "mm",           "movedim",      "mul",
      "neg",          "norm",         "outer",
      "permute",      "pow",          "prod",
      "reciprocal",   "relu",         "repeat",
      "reshape",      "roll",         "rsqrt",
      "rsub",         "select",       "sigmoid",
      "silu",         "sin",          "slice",
      "softmax",      "softplus",     "split",
      "sqrt",         "squeeze",      "stack",
      "sub",          "sum",          "t",
      "tanh",         "tile",         "to",
      "transpose",    "tril",         "triu",
      "unfold",       "unsqueeze",    "view",
      "where"};
  return std::ranges::find(ops, opOfValue(name)) != std::end(ops) || namesNumbers(name);
}

/// Copies of a layer, whose small tensors were merged, look like one layer that is called twice.
void Namer::doubtShared() {
  constexpr int64_t kLargestMerged = 1024; // of onnxscript
  for (NamedTensor& tensor : table_.tensors) {
    const std::vector<Use>& uses = usesOf(tensor).uses;
    if (!converted_ || tensor.kind != TensorKind::Parameter || tensor.isCopy ||
        elementCount(fileTensor(tensor).shape) > kLargestMerged || uses.size() < 2)
      continue;
    const std::string shown =
        fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(tensor.name));
    if (tensor.doubt)
      table_.notes.add(kShared, shown);
    else
      tensor.setDoubt(kShared, shown);
  }
}

/// Was it separated from others of its values? Which of them has the name, nothing tells.
bool Namer::hasCopies(const std::string& name) const {
  return std::ranges::any_of(graph_.initializers,
                             [&](const auto& entry) { return entry.second.copyOf == name; });
}

/// A linear layer's weight is folded when it is transposed, its bias keeps its name: what is added
/// to the product tells what the matrix is most likely called.
bool Namer::fromBiasBeside(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  if (!converted_ || !isAnonymous(tensor.initializer) || !isFloating(file.dtype) ||
      file.shape.size() != 2)
    return false;
  for (const Use& use : usesOf(tensor).uses) {
    const Node& product = graph_.nodes[use.node];
    if (use.role != Role::Weight || !use.transposed)
      continue;
    std::string bias = product.opType == "Gemm" && product.hasInput(2) ? product.inputs[2] : "";
    for (const Node& add : graph_.nodes)
      if (add.opType == "Add" && add.inputs.size() == 2)
        for (size_t k : {0, 1})
          if (add.inputs[1 - k] == product.outputs.front())
            bias = add.inputs[k];
    auto beside = graph_.initializers.find(bias);
    if (beside == graph_.initializers.end() || isMadeUp(bias) || !leafOf(bias).ends_with("bias") ||
        beside->second.shape != Shape{file.shape[1]})
      continue;
    if (!take(tensor, bias.substr(0, bias.size() - 4) + "weight", /*transposed=*/true))
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
