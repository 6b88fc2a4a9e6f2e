#include "test/frontend/RaiseOpset.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace titan::frontend {

namespace {

constexpr int64_t oldest = 7;

/// Since opset 1.
const std::set<std::string> alwaysTheSame = {
    "Elu",  "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "Not", "ReduceLogSum",
    "Selu", "Softplus",          "Softsign"};

/// Since opset 6. AveragePool only gained an attribute.
const std::set<std::string> sameSinceSix = {"Abs",
                                            "AveragePool",
                                            "Clip",
                                            "Concat",
                                            "Constant",
                                            "Conv",
                                            "ConvTranspose",
                                            "Exp",
                                            "Flatten",
                                            "Gather",
                                            "InstanceNormalization",
                                            "LeakyRelu",
                                            "LogSoftmax",
                                            "MatMul",
                                            "Max",
                                            "MaxPool",
                                            "Min",
                                            "Neg",
                                            "Pad",
                                            "ReduceMean",
                                            "ReduceSum",
                                            "Relu",
                                            "Reshape",
                                            "Sigmoid",
                                            "Slice",
                                            "Softmax",
                                            "Split",
                                            "Sqrt",
                                            "Squeeze",
                                            "Sum",
                                            "Tanh",
                                            "Tile",
                                            "Transpose",
                                            "Unsqueeze"};

/// Of ops that are otherwise the same in opsets 6 and 7. The suite's `axis` is where trailing
/// dimensions are, which is what broadcasting means since; another one would show in the results.
const std::map<std::string, std::set<std::string>> droppedAttributes = {
    {"Add", {"broadcast", "axis"}},     {"Sub", {"broadcast", "axis"}},
    {"Mul", {"broadcast", "axis"}},     {"Div", {"broadcast", "axis"}},
    {"Pow", {"broadcast", "axis"}},     {"Gemm", {"broadcast"}},
    {"BatchNormalization", {"is_test"}}};

template <typename Protos> auto* findNamed(Protos* protos, const std::string& name) {
  auto found = std::find_if(protos->pointer_begin(), protos->pointer_end(),
                            [&](const auto* proto) { return proto->name() == name; });
  return found == protos->pointer_end() ? nullptr : *found;
}

/// A slope for each channel had one dimension, and is broadcast since: [C] -> [C, 1, ...].
bool raisePRelu(const ::onnx::NodeProto& node, ::onnx::GraphProto& graph) {
  const auto* x = findNamed(graph.mutable_input(), node.input(0));
  auto* slope = findNamed(graph.mutable_initializer(), node.input(1));
  auto* info = findNamed(graph.mutable_input(), node.input(1));
  if (!x || !slope || !info || slope->dims_size() != 1)
    return false;
  if (slope->dims(0) == 1)
    return true;
  for (int d = 2; d < x->type().tensor_type().shape().dim_size(); ++d) {
    slope->add_dims(1);
    info->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(1);
  }
  return true;
}

bool raise(::onnx::NodeProto& node, ::onnx::GraphProto& graph, int64_t opset) {
  if (alwaysTheSame.contains(node.op_type()))
    return true;
  if (opset < 6)
    return false;
  if (node.op_type() == "PRelu")
    return raisePRelu(node, graph);
  auto dropped = droppedAttributes.find(node.op_type());
  if (dropped == droppedAttributes.end())
    return sameSinceSix.contains(node.op_type());
  auto& attributes = *node.mutable_attribute();
  attributes.erase(std::remove_if(attributes.begin(), attributes.end(),
                                  [&](const ::onnx::AttributeProto& attribute) {
                                    return dropped->second.contains(attribute.name());
                                  }),
                   attributes.end());
  return true;
}

} // namespace

void raiseOpset(::onnx::ModelProto& model) {
  if (model.opset_import_size() != 1 || model.opset_import(0).version() >= oldest)
    return;
  ::onnx::ModelProto raised = model;
  raised.mutable_opset_import(0)->set_version(oldest);
  ::onnx::GraphProto& graph = *raised.mutable_graph();
  for (::onnx::NodeProto& node : *graph.mutable_node())
    if (!raise(node, graph, model.opset_import(0).version()))
      return;
  model = std::move(raised);
}

} // namespace titan::frontend
