#include "frontend/onnx/name/Exporter.h"

#include "frontend/onnx/name/FxArguments.h"

#include <algorithm>
#include <cctype>

namespace titan::frontend {

bool isAnonymous(std::string_view name) {
  auto digitsFrom = [&](size_t i) {
    return i < name.size() && std::all_of(
                                  name.begin() + static_cast<long>(i), name.end(),
                                  [](unsigned char c) { return std::isdigit(c); });
  };
  if (digitsFrom(0) || name.find("::") != std::string_view::npos || name.starts_with('/'))
    return true;
  for (std::string_view prefix : {"val_", "_val_", "Constant_", "lifted_tensor_",
                                  "const_fold_opt__", "_inlfunc_", "graph_constant"})
    if (name.starts_with(prefix) && (digitsFrom(prefix.size()) || prefix.size() > 8))
      return true;
  // "Identity_output_0", "node_Cast_3_output_0"
  size_t output = name.rfind("_output_");
  return output != std::string_view::npos && digitsFrom(output + 8);
}

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

std::vector<std::string_view> rewriterRules(const Node& node) {
  std::vector<std::string_view> rules;
  auto found = node.metadata.find("pkg.onnxscript.rewriter.rule_name");
  std::string_view list = found == node.metadata.end() ? "" : std::string_view(found->second);
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view rule = list.substr(0, comma);
    rule.remove_prefix(std::min(rule.find_first_not_of(' '), rule.size()));
    rules.push_back(rule.substr(0, rule.find_last_not_of(' ') + 1));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return rules;
}

bool holdsFoldedNorm(const Node& node) {
  const bool takesWeights =
      node.opType == "Conv" || node.opType == "ConvTranspose" || node.opType == "Gemm";
  if (!node.domain.empty() || !takesWeights)
    return false;
  // A conversion to another opset drops the fx node.
  const std::vector<std::string_view> rules = rewriterRules(node);
  return scopeOf(node).isBatchNorm || std::ranges::any_of(rules, [](std::string_view rule) {
           return rule.starts_with("FuseBatchNormInto");
         });
}

} // namespace titan::frontend
