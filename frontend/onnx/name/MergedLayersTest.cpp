// Norms and biases that were merged for their values, in graphs without metadata.
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

/// Blocks x + (norm(x) @ matrix + bias) over tensors that exporters merge: `weights` names the
/// matrix of each block. All norms and biases are one tensor each.
class Merged : public ::testing::Test {
protected:
  void build(const std::vector<std::string>& weights, const std::string& scope = "") {
    model_ = ModelBuilder();
    model_.model.set_producer_name("pytorch");
    model_.input("x", {-1, 2}).output("y");
    model_.floats("first.norm.weight", {2}, scale_);
    model_.floats("first.norm.bias", {2}, bias_);
    std::string value = "x";
    for (size_t i = 0; i < weights.size(); ++i) {
      std::string number = std::to_string(i), path = scope.empty() ? "" : scope + number + "/";
      if (std::find(weights.begin(), weights.begin() + i, weights[i]) == weights.begin() + i)
        model_.floats(weights[i], {2, 2}, {1, 2, 3, static_cast<float>(i)});
      auto add = [&](const char* type, std::vector<std::string> inputs, const std::string& result) {
        model_.node(type, inputs, {result}, path.empty() ? "" : path + type);
      };
      add("LayerNormalization", {value, "first.norm.weight", "first.norm.bias"}, "n" + number);
      add("MatMul", {"n" + number, weights[i]}, "p" + number);
      add("Add", {"p" + number, "first.norm.bias"}, "b" + number);
      std::string result = i + 1 == weights.size() ? "y" : "x" + number;
      add("Add", {value, "b" + number}, result);
      value = result;
    }
  }
  Graph read() { return parseGraph(model_.bytes(), "m.onnx", "").take(); }
  /// Of norms and biases, in the order of use.
  std::vector<std::string> names(const Graph& graph) {
    NameTable table = nameTensors(graph).take();
    std::vector<std::string> found;
    for (const Node& node : graph.nodes)
      for (const std::string& input : node.inputs)
        if (const NamedTensor* tensor = table.find(input);
            tensor && graph.initializers.at(input).shape.size() == 1) {
          EXPECT_EQ(tensor->kind, TensorKind::Parameter) << input;
          found.push_back(tensor->name);
        }
    return found;
  }

  std::vector<float> scale_{1, 1}, bias_{0, 0};
  ModelBuilder model_;
};

TEST_F(Merged, EachLayerHasItsOwn) {
  build({"val_1", "val_2"});
  Graph graph = read();
  EXPECT_EQ(names(graph), (std::vector<std::string>{"first.norm.weight", "first.norm.bias",
                                                    "add_0.bias", "layernormalization_1.weight",
                                                    "layernormalization_1.bias", "add_2.bias"}));
  EXPECT_EQ(graph.notes.lines().size(), 2u);
  EXPECT_EQ(graph.initializers.at("first.norm.weight#1").copyOf, "first.norm.weight");
}

TEST_F(Merged, WhatAsksForTheShapeOrComparesIsNoLayer) {
  build({"val_1", "val_2"});
  // First in the graph: it would take the name, and be a constant.
  model_.node("Shape", {"first.norm.weight"}, {"shape"}, "");
  model_.node("Greater", {"x", "first.norm.bias"}, {"positive"}, "");
  model_.node("Where", {"positive", "x", "x"}, {"selected"}, "");
  model_.node("Expand", {"selected", "shape"}, {"expanded"}, "");
  auto* nodes = model_.model.mutable_graph()->mutable_node();
  std::rotate(nodes->pointer_begin(), nodes->pointer_end() - 4, nodes->pointer_end());
  nodes->Mutable(4)->set_input(0, "expanded");
  for (int i = 0; i < nodes->size(); ++i) // as a conversion to another opset leaves them
    nodes->Mutable(i)->set_name("node_" + std::to_string(i));
  Graph graph = read();
  NameTable table = nameTensors(graph).take();
  EXPECT_EQ(graph.nodes[4].inputs[1], "first.norm.weight");
  for (const char* name : {"first.norm.weight", "first.norm.bias"})
    EXPECT_EQ(table.find(name)->kind, TensorKind::Parameter) << name;
  EXPECT_TRUE(graph.initializers.contains("first.norm.weight#1"));
  EXPECT_FALSE(graph.initializers.contains("first.norm.weight#2"));
}

TEST_F(Merged, WithoutDataToo) {
  build({"val_1", "val_2"});
  for (int i : {0, 1}) {
    ::onnx::TensorProto& tensor = *model_.model.mutable_graph()->mutable_initializer(i);
    tensor.clear_raw_data();
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto* entry = tensor.add_external_data();
    entry->set_key("location");
    entry->set_value("missing.data");
  }
  EXPECT_EQ(names(read())[3], "layernormalization_1.weight");
}

TEST_F(Merged, ALayerThatIsCalledTwiceStaysOne) {
  build({"val_1", "val_1"});
  Graph graph = read();
  // The norm's bias and the product's are two, the calls of each one.
  EXPECT_EQ(names(graph),
            (std::vector<std::string>{"first.norm.weight", "first.norm.bias", "add_0.bias",
                                      "first.norm.weight", "first.norm.bias", "add_0.bias"}));
}

TEST_F(Merged, AThirdLayerBesideOneThatIsCalledTwice) {
  build({"val_1", "val_2", "val_1"});
  std::vector<std::string> found = names(read());
  EXPECT_EQ(found[0], "first.norm.weight");
  EXPECT_EQ(found[3], "layernormalization_1.weight");
  EXPECT_EQ(found[6], "first.norm.weight");
  EXPECT_EQ(found[5], "add_2.bias");
  EXPECT_EQ(found[8], found[2]);
}

TEST_F(Merged, ValuesThatWereDrawnAreOneNorm) {
  scale_ = {1, 2};
  build({"val_1", "val_2"});
  std::vector<std::string> found = names(read());
  EXPECT_EQ(found[3], "first.norm.weight");
  EXPECT_EQ(found[4], "layernormalization_1.bias");
}

TEST_F(Merged, ScopesSayWhatIsOne) {
  build({"val_1", "val_2"}, "/first/norm_");
  std::vector<std::string> found = names(read());
  EXPECT_EQ(found[0], found[3]);
}

TEST_F(Merged, TheSignatureNamesAsManyAsItLists) {
  build({"val_1", "val_2"});
  std::string lines = "p_first_norm_weight: PARAMETER target='first.norm.weight'\n"
                      "p_first_norm_bias: PARAMETER target='first.norm.bias'\n"
                      "p_first_up_bias: PARAMETER target='first.up.bias'\n"
                      "p_second_norm_weight: PARAMETER target='second.norm.weight'\n"
                      "p_second_norm_bias: PARAMETER target='second.norm.bias'\n";
  auto withSignature = [&](const std::string& text) {
    Graph graph;
    ModelBuilder model = model_;
    model.signature(text);
    return parseGraph(model.bytes(), "m.onnx", "").take();
  };
  EXPECT_EQ(names(withSignature(lines + "p_second_up_bias: PARAMETER target='second.up.bias'\n")),
            (std::vector<std::string>{"first.norm.weight", "first.norm.bias", "first.up.bias",
                                      "second.norm.weight", "second.norm.bias", "second.up.bias"}));
  // One name too few for the biases: they are made up, the norms are not.
  std::vector<std::string> found = names(withSignature(lines));
  EXPECT_EQ(found[3], "second.norm.weight");
  EXPECT_EQ(found[4], "layernormalization_1.bias");
  // Nothing is lost: the source has one norm.
  found = names(withSignature("p_first_norm_weight: PARAMETER target='first.norm.weight'\n"
                              "p_first_norm_bias: PARAMETER target='first.norm.bias'\n"));
  EXPECT_EQ(found,
            (std::vector<std::string>{"first.norm.weight", "first.norm.bias", "first.norm.bias",
                                      "first.norm.weight", "first.norm.bias", "first.norm.bias"}));
}

} // namespace
} // namespace titan::frontend
