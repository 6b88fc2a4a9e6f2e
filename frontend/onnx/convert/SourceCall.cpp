#include "frontend/onnx/convert/SourceCall.h"

namespace titan::frontend {

SourceCall sourceCallOf(const Node& node) {
  auto found = node.metadata.find("pkg.torch.onnx.fx_node");
  if (found == node.metadata.end())
    return {};
  constexpr std::string_view begin = "[target=";
  const std::string_view text = found->second;
  const size_t at = text.find(begin), end = at == text.npos ? at : text.find(']', at);
  if (end == text.npos)
    return {};
  return {text.substr(at + begin.size(), end - at - begin.size()), text.substr(end + 1)};
}

bool usesBatchStatistics(const Node& node) {
  if (node.integer("training_mode", 0) != 0)
    return true;
  // Up to opset 13 its other outputs say so.
  if (node.opset < 14 && node.outputs.size() > 1 && !node.outputs[1].empty())
    return true;
  const auto [target, arguments] = sourceCallOf(node);
  return target.find("batch_norm") != target.npos && target.find("no_training") == target.npos &&
         arguments.find(", True, ") != arguments.npos;
}

} // namespace titan::frontend
