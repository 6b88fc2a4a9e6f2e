#include "frontend/onnx/read/SharedNames.h"

#include <algorithm>
#include <cctype>

namespace titan::frontend {

namespace {

/// Does the fx node of `node` read `operand`, "b_mean" or "mean"?
bool readsInFx(const Node& node, const std::string& operand) {
  const auto fx = node.metadata.find("pkg.torch.onnx.fx_node");
  if (fx == node.metadata.end())
    return false;
  const std::string &text = fx->second, token = "%" + operand;
  for (size_t at = text.find(token, text.find("args = (")); at != std::string::npos;
       at = text.find(token, at + 1)) {
    const auto next = static_cast<unsigned char>((text + " ")[at + token.size()]);
    if (!std::isalnum(next) && next != '_')
      return true;
  }
  return false;
}

/// Does the node mean the result `name`, or the tensor? Nothing: it does not tell, or means both.
std::optional<bool> meansResult(const Node& node, const std::string& name) {
  const bool result = readsInFx(node, name);
  const bool tensor =
      readsInFx(node, "p_" + name) || readsInFx(node, "b_" + name) || readsInFx(node, "c_" + name);
  return result == tensor ? std::nullopt : std::optional(result);
}

/// Renames what node `producer` calls `name`, and who reads that.
Status renameResult(Graph& graph, size_t producer, const std::string& name) {
  const std::string own = name + std::string(kOfResult);
  for (size_t i = producer + 1; i < graph.nodes.size(); ++i) {
    Node& reader = graph.nodes[i];
    if (std::ranges::find(reader.inputs, name) == reader.inputs.end())
      continue;
    const std::optional<bool> result = meansResult(reader, name);
    if (!result)
      return Error::badInput("{} reads '{}', the name of a tensor and of what {} computes: nothing "
                             "tells which; export with another name for the tensor",
                             reader.shown(), printable(name), graph.nodes[producer].shown());
    if (*result)
      std::ranges::replace(reader.inputs, name, own);
  }
  std::ranges::replace(graph.nodes[producer].outputs, name, own);
  return {};
}

} // namespace

Status renameSharedResults(Graph& graph, const std::function<bool(const std::string&)>& isTensor) {
  if (!graph.fromPyTorch())
    return {};
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& output : std::vector(graph.nodes[i].outputs)) {
      const bool isReturned =
          std::ranges::any_of(graph.outputs, [&](const Port& port) { return port.name == output; });
      if (!output.empty() && isTensor(output) && !isReturned)
        TITAN_TRY(renameResult(graph, i, output));
    }
  return {};
}

} // namespace titan::frontend
