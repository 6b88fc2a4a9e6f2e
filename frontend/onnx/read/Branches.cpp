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

} // namespace

bool isIf(const Node& node) { return node.domain.empty() && node.opType == "If"; }

std::set<std::string> readByBranches(const Node& node) {
  std::set<std::string> found;
  for (const ::onnx::AttributeProto& attribute : node.attributes)
    if (attribute.has_g())
      addReads(attribute.g(), {}, found);
  return found;
}

Result<Branch> branchOf(const Node& node, bool condition) {
  const char* name = condition ? "then_branch" : "else_branch";
  const ::onnx::AttributeProto* attribute = node.find(name);
  if (!attribute || !attribute->has_g())
    return Error::badInput("{}: has no {}, or is in a local function, which is not supported",
                           node.shown(), name);
  const ::onnx::GraphProto& graph = attribute->g();
  if (graph.initializer_size() > 0 || graph.sparse_initializer_size() > 0)
    return Error::badInput("{}: its {} has weights of its own, which is not supported",
                           node.shown(), name);
  if (graph.output_size() != static_cast<int>(node.outputs.size()))
    return Error::badInput("{}: its {} has {} outputs, the node {}", node.shown(), name,
                           graph.output_size(), node.outputs.size());
  Branch branch;
  for (const ::onnx::NodeProto& proto : graph.node()) {
    Node& inner = branch.nodes.emplace_back(nodeOf(proto));
    inner.opset = node.opset;
    inner.attributes.assign(proto.attribute().begin(), proto.attribute().end());
  }
  for (const ::onnx::ValueInfoProto& output : graph.output())
    branch.outputs.push_back(output.name());
  return branch;
}

} // namespace titan::frontend
