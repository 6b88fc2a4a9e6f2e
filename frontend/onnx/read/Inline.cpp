#include "frontend/onnx/read/Inline.h"

#include "frontend/onnx/read/Branches.h"
#include "frontend/onnx/read/Reader.h"

#include <algorithm>
#include <tuple>

namespace titan::frontend {

namespace {

using Attributes = std::map<std::string, ::onnx::AttributeProto>;
using FunctionKey = std::tuple<std::string, std::string, std::string>; // domain, name, overload

std::string normalizedDomain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

constexpr size_t kDeepestCall = 64;

class Inliner {
public:
  explicit Inliner(const ::onnx::ModelProto& model) : model_(model) {}

  Result<std::vector<Node>> run() {
    for (const ::onnx::FunctionProto& function : model_.functions()) {
      FunctionKey key{normalizedDomain(function.domain()), function.name(), overloadOf(function)};
      if (!functions_.try_emplace(key, &function).second)
        return Error::badInput("local function '{}' is defined twice", printable(function.name()));
    }
    auto opsets = TITAN_TRY(opsetsOf(model_.opset_import()));
    for (const ::onnx::NodeProto& node : model_.graph().node())
      TITAN_TRY(add(node, opsets, {}, nullptr, {}));
    return std::move(nodes_);
  }

private:
  /// Values and attributes of the call that a body is expanded for.
  struct Frame {
    std::map<std::string, std::string> values;
    Attributes attributes;
    std::string prefix;
  };

  std::string rename(const std::string& value, Frame* frame) {
    if (!frame || value.empty())
      return value;
    auto [it, fresh] = frame->values.try_emplace(value, frame->prefix + value);
    return it->second;
  }

  Status add(const ::onnx::NodeProto& proto, const std::map<std::string, int64_t>& opsets,
             std::vector<FunctionKey> stack, Frame* frame,
             const std::map<std::string, std::string>& outerMetadata) {
    std::string domain = normalizedDomain(proto.domain());
    Node node = nodeOf(proto);
    if (frame)
      node.name = frame->prefix + node.name;
    // A function body from a library carries no scopes of its own: it computes for its caller.
    for (const auto& [key, value] : outerMetadata)
      node.metadata.try_emplace(key, value);
    for (std::string& input : node.inputs)
      input = rename(input, frame);
    for (std::string& output : node.outputs)
      output = rename(output, frame);
    for (const ::onnx::AttributeProto& attribute : proto.attribute()) {
      // A body's tensors are copied at every call.
      copiedBytes_ += frame ? attribute.ByteSizeLong() : 0;
      if (copiedBytes_ > kLargestModelFile)
        return Error::badInput("local functions copy more than {} bytes of attributes",
                               kLargestModelFile);
      if (attribute.ref_attr_name().empty()) {
        node.attributes.push_back(attribute);
        continue;
      }
      if (!frame)
        return Error::badInput("{}: attribute '{}' refers to a function's attribute outside of a "
                               "function",
                               node.shown(), printable(attribute.name()));
      auto it = frame->attributes.find(attribute.ref_attr_name());
      if (it == frame->attributes.end())
        continue; // not given by the caller: the op's default holds
      node.attributes.push_back(it->second);
      node.attributes.back().set_name(attribute.name());
    }

    FunctionKey key{domain, proto.op_type(), overloadOf(proto)};
    auto function = functions_.find(key);
    if (function != functions_.end())
      return expand(node, *function->second, key, std::move(stack));

    if (auto it = opsets.find(domain); it != opsets.end())
      node.opset = it->second;
    else if (domain.empty())
      return Error::badInput("{}: the model imports no ONNX opset", node.shown());
    if (isIf(node) || isLoop(node))
      TITAN_TRY(prepareSubgraphs(node, frame));
    nodes_.push_back(std::move(node));
    if (nodes_.size() > kMostNodes)
      return Error::badInput("has more than {} nodes when local functions are inlined", kMostNodes);
    return {};
  }

  /// What a branch or a body reads is there before the node. In a function its names would have to
  /// change: there a node has no graphs that could be taken.
  static Status prepareSubgraphs(Node& node, const Frame* frame) {
    if (isIf(node) && (node.inputs.size() != 1 || node.inputs.front().empty()))
      return Error::badInput("{}: has {} inputs, not a condition alone", node.shown(),
                             node.inputs.size());
    if (frame)
      node.attributes.clear();
    if (std::optional<size_t> inputs = isLoop(node) ? bodyInputs(node) : std::nullopt) {
      if (node.inputs.size() > *inputs)
        return Error::badInput("{}: has {} inputs, its body {}", node.shown(), node.inputs.size(),
                               *inputs);
      node.inputs.resize(*inputs);
    }
    for (const std::string& name : readBySubgraphs(node))
      node.inputs.push_back(name);
    return {};
  }

  Status expand(const Node& call, const ::onnx::FunctionProto& function, const FunctionKey& key,
                std::vector<FunctionKey> stack) {
    if (std::find(stack.begin(), stack.end(), key) != stack.end())
      return Error::badInput("local function '{}' calls itself", printable(function.name()));
    if (stack.size() >= kDeepestCall)
      return Error::badInput("local functions call each other more than {} deep", kDeepestCall);
    stack.push_back(key);
    if (static_cast<int>(call.inputs.size()) > function.input_size() ||
        static_cast<int>(call.outputs.size()) > function.output_size())
      return Error::badInput("{}: {} inputs and {} outputs, but local function '{}' has {} and {}",
                             call.shown(), call.inputs.size(), call.outputs.size(),
                             printable(function.name()), function.input_size(),
                             function.output_size());
    if (++calls_ > kMostNodes)
      return Error::badInput("has more than {} calls of local functions", kMostNodes);
    Frame frame;
    frame.prefix = fmt::format("{}#{}/", function.name(), calls_);
    // An input that the caller leaves out is absent in the body too.
    for (int i = 0; i < function.input_size(); ++i)
      frame.values[function.input(i)] =
          i < static_cast<int>(call.inputs.size()) ? call.inputs[i] : std::string();
    // An output is bound to the caller's name, except where it passes an input through.
    std::vector<std::pair<std::string, std::string>> forwarded;
    for (int i = 0; i < static_cast<int>(call.outputs.size()); ++i) {
      const std::string& inner = function.output(i);
      if (call.outputs[i].empty())
        continue;
      if (auto it = frame.values.find(inner); it != frame.values.end())
        forwarded.emplace_back(it->second, call.outputs[i]);
      else
        frame.values[inner] = call.outputs[i];
    }
    for (const ::onnx::AttributeProto& attribute : attributeDefaultsOf(function))
      frame.attributes[attribute.name()] = attribute;
    for (const ::onnx::AttributeProto& attribute : call.attributes)
      frame.attributes[attribute.name()] = attribute;

    auto opsets = TITAN_TRY(opsetsOf(function.opset_import()));
    for (const ::onnx::NodeProto& node : function.node())
      TITAN_TRY(add(node, opsets, stack, &frame, call.metadata));
    for (const auto& [from, to] : forwarded) {
      Node identity;
      identity.name = call.name;
      identity.opType = "Identity";
      identity.opset = kNewestOpset;
      identity.inputs = {from};
      identity.outputs = {to};
      identity.metadata = call.metadata;
      nodes_.push_back(std::move(identity));
    }
    return {};
  }

  const ::onnx::ModelProto& model_;
  std::map<FunctionKey, const ::onnx::FunctionProto*> functions_;
  std::vector<Node> nodes_;
  size_t calls_ = 0;
  uint64_t copiedBytes_ = 0;
};

} // namespace

Node nodeOf(const ::onnx::NodeProto& proto) {
  Node node;
  node.name = proto.name();
  node.domain = normalizedDomain(proto.domain());
  node.opType = proto.op_type();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  node.metadata = metadataOf(proto);
  return node;
}

Result<std::vector<Node>> inlineFunctions(const ::onnx::ModelProto& model) {
  return Inliner(model).run();
}

} // namespace titan::frontend
