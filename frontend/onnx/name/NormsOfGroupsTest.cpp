// torch.nn.GroupNorm as PyTorch's exporters write it: names, values and metadata are theirs.
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan::frontend {
namespace {

using ::testing::HasSubstr;
using testing::ModelBuilder;

/// What the norm reads, and what scales and shifts it.
struct Operands {
  std::vector<std::string> numbers, parameters;
};

class NormsOfGroups : public ::testing::Test {
protected:
  NormsOfGroups() {
    model_.model.set_producer_name("pytorch");
    model_.input("x", {-1, 4, 3}).output("y");
    model_.integers("view", {0, 2, -1});
    model_.integers("whole", {-1, 4, 3});
  }

  /// The nodes of module `name`, a norm of two groups of `from`.
  void addNorm(const std::string& name, const std::string& from, const std::string& to,
               const Operands& of) {
    const auto add = [&](const char* op, const std::vector<std::string>& inputs,
                         const std::string& output) {
      ::onnx::NodeProto& node = model_.node(op, inputs, {output}, nodeName(name, op));
      if (!hasMetadata_)
        return;
      const auto set = [&](const char* key, const std::string& value) {
        ModelBuilder::setMetadata(node, key, value);
      };
      set("pkg.torch.onnx.name_scopes", "['', '" + name + "', '" + to + "']");
      set("pkg.torch.onnx.class_hierarchy", "['M', 'GroupNorm', 'aten.group_norm.default']");
      set("pkg.torch.onnx.fx_node",
          "%" + to + " : [num_users=1] = call_function[target=torch.ops.aten.group_norm.default]" +
              "(args = (%" + from + ", 2, " +
              (parameters_.empty() ? "%p_" + name + "_weight, %p_" + name + "_bias" : parameters_) +
              ", 1e-05, False), kwargs = {})");
    };
    add("Reshape", {from, "view"}, name + "v");
    add("InstanceNormalization", {name + "v", of.numbers[0], of.numbers[1]}, name + "n");
    add("Reshape", {name + "n", "whole"}, name + "b");
    add("Mul", {name + "b", of.parameters[0]}, name + "m");
    add("Add", {name + "m", of.parameters[1]}, to);
  }

  void sign(const std::vector<std::string>& modules) {
    std::string lines;
    for (const std::string& name : modules)
      for (const char* leaf : {"weight", "bias"})
        lines += "p_" + name + "_" + leaf + ": PARAMETER target='" + name + "." + leaf + "'\n";
    model_.signature(lines);
  }

  /// The numbers of an exporter, and the parameters of a fresh norm.
  void addFresh() {
    model_.floats("val_8", {2}, {1, 1});
    model_.floats("val_11", {2}, {0, 0});
    model_.floats("val_20", {4, 1}, {1, 1, 1, 1});
    model_.floats("val_22", {4, 1}, {0, 0, 0, 0});
  }
  static Operands fresh() { return {{"val_8", "val_11"}, {"val_20", "val_22"}}; }

  void addConstant(const std::string& name, float number) {
    auto& constant = model_.node("Constant", {}, {name}, name.substr(0, name.rfind("_output_")));
    auto* value = constant.add_attribute();
    value->set_name("value");
    value->set_type(::onnx::AttributeProto::TENSOR);
    value->mutable_t()->set_data_type(::onnx::TensorProto::FLOAT);
    value->mutable_t()->add_dims(2);
    value->mutable_t()->add_float_data(number);
    value->mutable_t()->add_float_data(number);
  }

  void read() {
    graph_ = parseGraph(model_.bytes(), "m.onnx", "").take();
    names_ = nameTensors(graph_).take();
  }

  /// The states in the file's order, with their shapes.
  std::string states() const {
    std::string text;
    for (const NamedState& state : names_.states)
      text += (text.empty() ? "" : " ") + state.name + toString(state.shape);
    return text;
  }
  std::string notes() const {
    std::string text;
    for (const Notes& notes : {graph_.notes, names_.notes})
      for (const std::string& line : notes.lines())
        text += line + "\n";
    return text;
  }

  ModelBuilder model_{20};
  bool hasMetadata_ = true, isLegacy_ = false;
  std::string parameters_; ///< arguments of all norms; empty: weight and bias of their modules
  Graph graph_;
  NameTable names_;

private:
  std::string nodeName(const std::string& module, const std::string& op) const {
    return isLegacy_ ? "/" + module + "/" + op : "node_" + op + "_" + module;
  }
};

const std::vector<float> kOnes(4, 1), kZeros(4, 0);

TEST_F(NormsOfGroups, WhatScalesAndShiftsAreTheParameters) {
  addFresh();
  addNorm("g", "x", "y", fresh());
  sign({"g"});
  read();
  EXPECT_EQ(states(), "g.weight[4] g.bias[4]");
  EXPECT_EQ(notes(), "");
}

// Fresh norms are equal: the optimizer keeps one tensor of each value.
TEST_F(NormsOfGroups, MergedOnesAreParametersOfTheirOwn) {
  addFresh();
  addNorm("g", "x", "z", fresh());
  addNorm("h", "z", "y", fresh());
  sign({"g", "h"});
  read();
  EXPECT_EQ(states(), "g.weight[4] g.bias[4] h.weight[4] h.bias[4]");
}

// Ones that the exporter wrote were merged with a parameter, whose name they have.
TEST_F(NormsOfGroups, TheExportersNumbersAreNoParameterWhateverTheyAreCalled) {
  model_.floats("g.weight", {2}, {1, 1});
  model_.floats("g.bias", {2}, {0, 0});
  model_.floats("val_20", {4, 1}, {1, 2, 3, 4});
  model_.floats("val_22", {4, 1}, {5, 6, 7, 8});
  addNorm("g", "x", "y", {{"g.weight", "g.bias"}, {"val_20", "val_22"}});
  sign({"g"});
  read();
  EXPECT_EQ(states(), "g.weight[4] g.bias[4]");
  const NamedTensor* scale = names_.find("val_20");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->name, "g.weight");
}

TEST_F(NormsOfGroups, NumbersThatAnotherReadsStayItsParameter) {
  model_.floats("l.weight", {2}, {1, 1});
  model_.floats("val_11", {2}, {0, 0});
  model_.floats("val_20", {4, 1}, kOnes);
  model_.floats("val_22", {4, 1}, kZeros);
  model_.input("w", {-1, 2});
  addNorm("g", "x", "y", {{"l.weight", "val_11"}, {"val_20", "val_22"}});
  model_.output("z").node("Mul", {"w", "l.weight"}, {"z"}, "node_z");
  model_.signature("p_l_weight: PARAMETER target='l.weight'\n"
                   "p_g_weight: PARAMETER target='g.weight'\n"
                   "p_g_bias: PARAMETER target='g.bias'\n");
  read();
  EXPECT_EQ(states(), "l.weight[2] g.weight[4] g.bias[4]");
  EXPECT_EQ(names_.find(graph_.nodes[1].inputs[1])->kind, TensorKind::Constant);
}

// No exporter writes so, but nothing else would be the parameters.
TEST_F(NormsOfGroups, AScaleOfItsOwnIsAParameterWhereNoneIsBehind) {
  model_.floats("g.weight", {2}, {1, 1});
  model_.floats("g.bias", {2}, {0, 0});
  model_.output("gb");
  model_.floats("val_20", {4, 1}, kOnes);
  model_.floats("val_22", {4, 1}, kZeros);
  addNorm("g", "x", "y", {{"g.weight", "g.bias"}, {"val_20", "val_22"}});
  sign({"g"});
  read();
  EXPECT_EQ(names_.find("g.weight")->kind, TensorKind::Parameter);
  EXPECT_EQ(names_.find("g.bias")->kind, TensorKind::Parameter);
}

// affine=False
TEST_F(NormsOfGroups, OnesAndZerosForNoneAreConstants) {
  addFresh();
  parameters_ = "None, None";
  addNorm("g", "x", "y", fresh());
  model_.signature("x: USER_INPUT\n");
  read();
  EXPECT_EQ(states(), "");
}

// The TorchScript exporter folds the view of the parameters.
TEST_F(NormsOfGroups, LegacyFoldsAreTheParametersByAGuess) {
  hasMetadata_ = false;
  isLegacy_ = true;
  addConstant("/g/Constant_1_output_0", 1);
  addConstant("/g/Constant_2_output_0", 0);
  model_.floats("onnx::Mul_23", {4, 1}, {1, 2, 3, 4});
  model_.floats("onnx::Add_24", {4, 1}, {5, 6, 7, 8});
  addNorm("g", "x", "y",
          {{"/g/Constant_1_output_0", "/g/Constant_2_output_0"}, {"onnx::Mul_23", "onnx::Add_24"}});
  read();
  EXPECT_EQ(states(), "g.weight[4] g.bias[4]");
  EXPECT_TRUE(names_.find("onnx::Mul_23")->guessed);
  EXPECT_EQ(names_.find("onnx::Mul_23")->role, Role::NormScale);
  EXPECT_EQ(names_.find("onnx::Add_24")->role, Role::NormBias);
  EXPECT_THAT(notes(), HasSubstr("2 tensors were reshaped by the exporter and are taken for the "
                                 "parameters of the norms of groups that they belong to"));
}

TEST_F(NormsOfGroups, ALegacyNormThatIsCalledTwiceIsOne) {
  hasMetadata_ = false;
  isLegacy_ = true;
  addConstant("/g/Constant_1_output_0", 1);
  addConstant("/g/Constant_2_output_0", 0);
  model_.floats("onnx::Mul_23", {4, 1}, {1, 2, 3, 4});
  model_.floats("onnx::Add_24", {4, 1}, {5, 6, 7, 8});
  const Operands of{{"/g/Constant_1_output_0", "/g/Constant_2_output_0"},
                    {"onnx::Mul_23", "onnx::Add_24"}};
  addNorm("g", "x", "z", of);
  addNorm("g_1", "z", "y", of);
  read();
  EXPECT_EQ(states(), "g.weight[4] g.bias[4]");
}

// A conversion to an older opset leaves no metadata, and numbers under the exporter's names.
TEST_F(NormsOfGroups, ConvertedFilesHaveStructuralNames) {
  hasMetadata_ = false;
  addFresh();
  addNorm("g", "x", "y", fresh());
  read();
  EXPECT_EQ(states(), "mul_0.weight[4] add_0.bias[4]");
  EXPECT_TRUE(names_.find("val_20")->structural);
}

// Norms beside matrices of their own are several, whatever was merged.
TEST_F(NormsOfGroups, ConvertedFilesHaveParametersForEachNorm) {
  hasMetadata_ = false;
  addFresh();
  for (const char* name : {"c.weight", "d.weight"})
    model_.floats(name, {4, 4, 1},
                  std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2});
  model_.node("Conv", {"x", "c.weight"}, {"a"}, "node_conv1d");
  addNorm("g", "a", "b", fresh());
  model_.node("Conv", {"b", "d.weight"}, {"c"}, "node_conv1d_1");
  addNorm("h", "c", "y", fresh());
  read();
  EXPECT_EQ(states(), "mul_0.weight[4] add_0.bias[4] c.weight[4, 4, 1] d.weight[4, 4, 1] "
                      "mul_1.weight[4] add_1.bias[4]");
  EXPECT_THAT(notes(), HasSubstr("'val_20' was merged from parameters of equal value"));
}

// The source's own norm of instances between views of its own.
TEST_F(NormsOfGroups, ANormOfInstancesKeepsItsParameters) {
  hasMetadata_ = false;
  isLegacy_ = true;
  model_.floats("g.weight", {2}, {1, 1});
  model_.floats("g.bias", {2}, {0, 0});
  model_.floats("s", {4, 1}, kOnes);
  model_.floats("t", {4, 1}, kZeros);
  addNorm("g", "x", "y", {{"g.weight", "g.bias"}, {"s", "t"}});
  read();
  EXPECT_EQ(states(), "g.weight[2] g.bias[2] s[4, 1] t[4, 1]");
}

} // namespace
} // namespace titan::frontend
