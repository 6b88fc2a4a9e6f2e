#include "frontend/onnx/read/Branches.h"

#include "frontend/onnx/read/Inline.h"

#include <algorithm>

namespace titan::frontend {

namespace {

/// Adds to `found` what the nodes and outputs of `graph` read that is not among `inside`.
void addReads(const ::onnx::GraphProto& graph, std::set<std::string> inside,
              std::set<std::string>& found) {
  auto add = [&](const std::string& name) {
    if (!name.empty() && !inside.contains(name))
      found.insert(name);
  };
  for (const ::onnx::TensorProto& tensor : graph.initializer())
    inside.insert(tensor.name());
  for (const ::onnx::ValueInfoProto& input : graph.input())
    inside.insert(input.name());
  for (const ::onnx::NodeProto& node : graph.node())
    inside.insert(node.output().begin(), node.output().end());
  for (const ::onnx::NodeProto& node : graph.node()) {
    std::ranges::for_each(node.input(), add);
    for (const ::onnx::AttributeProto& attribute : node.attribute())
      if (attribute.has_g())
        addReads(attribute.g(), inside, found);
  }
  for (const ::onnx::ValueInfoProto& output : graph.output())
    add(output.name());
}

const ::onnx::GraphProto* graphOf(const Node& node, const char* name) {
  const ::onnx::AttributeProto* attribute = node.find(name);
  return attribute && attribute->has_g() ? &attribute->g() : nullptr;
}

Result<Subgraph> subgraphOf(const Node& node, const char* name) {
  const ::onnx::GraphProto* graph = graphOf(node, name);
  if (!graph)
    return Error::badInput("{}: has no {}, or is in a local function, which is not supported",
                           node.shown(), name);
  if (graph->initializer_size() > 0 || graph->sparse_initializer_size() > 0)
    return Error::badInput("{}: its {} has weights of its own, which is not supported",
                           node.shown(), name);
  Subgraph found;
  for (const ::onnx::NodeProto& proto : graph->node()) {
    Node& inner = found.nodes.emplace_back(nodeOf(proto));
    inner.opset = node.opset;
    inner.attributes.assign(proto.attribute().begin(), proto.attribute().end());
    for (const auto& [key, value] : node.metadata)
      inner.metadata.try_emplace(key, value);
  }
  for (const ::onnx::ValueInfoProto& input : graph->input())
    found.inputs.push_back(input.name());
  for (const ::onnx::ValueInfoProto& output : graph->output())
    found.outputs.push_back(output.name());
  return found;
}

} // namespace

bool isIf(const Node& node) { return node.domain.empty() && node.opType == "If"; }
bool isLoop(const Node& node) { return node.domain.empty() && node.opType == "Loop"; }

std::set<std::string> readBySubgraphs(const Node& node) {
  std::set<std::string> found;
  for (const ::onnx::AttributeProto& attribute : node.attributes)
    if (attribute.has_g())
      addReads(attribute.g(), {}, found);
  return found;
}

std::optional<size_t> bodyInputs(const Node& node) {
  const ::onnx::GraphProto* body = graphOf(node, "body");
  return body ? std::optional<size_t>(body->input_size()) : std::nullopt;
}

Result<Subgraph> branchOf(const Node& node, bool condition) {
  const char* name = condition ? "then_branch" : "else_branch";
  Subgraph branch = TITAN_TRY(subgraphOf(node, name));
  if (branch.outputs.size() != node.outputs.size())
    return Error::badInput("{}: its {} has {} outputs, the node {}", node.shown(), name,
                           branch.outputs.size(), node.outputs.size());
  return branch;
}

Result<Subgraph> bodyOf(const Node& node) {
  Subgraph body = TITAN_TRY(subgraphOf(node, "body"));
  if (body.inputs.size() < kLoopControls || body.outputs.size() != node.outputs.size() + 1 ||
      body.outputs.size() + 1 < body.inputs.size())
    return Error::badInput("{}: its body has {} inputs and {} outputs, the node {} outputs",
                           node.shown(), body.inputs.size(), body.outputs.size(),
                           node.outputs.size());
  return body;
}

} // namespace titan::frontend
