// Conversions to an older opset: no signature and no metadata, but the names of nodes.
#include "frontend/onnx/testing/FoldedFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class Converted : public testing::FoldedFixture {
protected:
  void node(const char* type, const std::vector<std::string>& inputs, const std::string& output) {
    model_.node(type, inputs, {output}, "node_" + output);
  }
};

TEST_F(Converted, StraightThroughEstimatorsAreNoted) {
  floats("a.w", {2}, {0.31f, 0.72f});
  floats("b.w", {2}, {0.21f, 0.44f});
  floats("c.w", {2}, {0.11f, 0.52f});
  floats("d.w", {2}, {0.12f, 0.57f});
  node("Mul", {"x", "a.w"}, "a");
  node("Round", {"a"}, "rounded");
  node("Sub", {"rounded", "a"}, "lost");
  node("Add", {"a", "lost"}, "straight");
  node("Mul", {"straight", "b.w"}, "b");
  node("Softmax", {"b"}, "soft");
  node("Add", {"soft", "straight"}, "sum");
  node("Sub", {"sum", "soft"}, "difference");
  node("Mul", {"difference", "c.w"}, "c");
  node("Sub", {"c", "straight"}, "rest");
  node("Add", {"rest", "soft"}, "other");
  node("Mul", {"other", "d.w"}, "y");
  read();
  EXPECT_NE(notes().find("what is computed from 2 parameters is added and subtracted again, as "
                         "where the source detaches a part of that"),
            std::string::npos)
      << notes();
}

// The second call reads the statistics that the first one leaves.
TEST_F(Converted, StatisticsOfANormThatIsCalledTwiceAreOne) {
  for (const char* name : {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"})
    floats(name, {2}, {0.31f, 0.72f});
  node("BatchNormalization",
       {"x", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"}, "once");
  node("Identity", {"norm.running_mean"}, "mean");
  node("Identity", {"norm.running_var"}, "variance");
  node("BatchNormalization", {"once", "norm.weight", "norm.bias", "mean", "variance"}, "y");
  read();
  EXPECT_FALSE(graph_.initializers.contains("mean"));
  EXPECT_FALSE(graph_.initializers.contains("variance"));
}

TEST_F(Converted, AMatrixIsCalledAfterTheBiasBesideItByAGuess) {
  floats("val_0", {2, 2}, kDrawn);
  floats("fc.bias", {2}, {0.5f, 0.25f});
  node("MatMul", {"x", "val_0"}, "val_1");
  node("Add", {"val_1", "fc.bias"}, "y");
  read();
  EXPECT_EQ(names_.find("val_0")->name, "fc.weight");
  EXPECT_TRUE(names_.find("val_0")->guessed);
  EXPECT_EQ(names_.find("val_0")->pieces[0].piece.dims, (std::vector<int64_t>{1, 0}));
}

TEST_F(Converted, TheNameOfAValueIsNoParameters) {
  floats("exp", {}, {1.37f});
  floats("p0", {}, {0.31f});
  floats("val_3", {1}, {0.7f});
  node("Mul", {"x", "exp"}, "mul");
  node("Mul", {"mul", "val_3"}, "mul_1");
  node("Add", {"mul_1", "p0"}, "y");
  read();
  EXPECT_TRUE(names_.find("exp")->isPart);
  EXPECT_EQ(names_.find("exp")->name, "mul_0.weight");
  EXPECT_EQ(names_.find("p0")->name, "p0");
  EXPECT_FALSE(names_.find("p0")->structural);
  EXPECT_EQ(names_.find("val_3")->kind, TensorKind::Constant);
}

TEST_F(Converted, ABoundIsANumberWithANote) {
  floats("linear_min", {}, {0});
  node("Clip", {"x", "linear_min"}, "y");
  read();
  EXPECT_EQ(names_.find("linear_min")->kind, TensorKind::Constant);
  EXPECT_NE(notes().find("'linear_min' bounds a Clip"), std::string::npos) << notes();
}

TEST_F(Converted, ANameOfTheRootMayBeThatOfAValue) {
  // "weight" of the function that torch.lerp becomes.
  floats("weight_0", {2}, {0.31f, 0.72f});
  node("Mul", {"x", "weight_0"}, "y");
  read();
  EXPECT_EQ(names_.find("weight_0")->kind, TensorKind::Parameter);
  EXPECT_NE(notes().find("'weight_0' is trained, and may be a value"), std::string::npos)
      << notes();
}

TEST_F(Converted, ASmallLayerThatIsReadTwiceIsOneWithANote) {
  // A layer that is called twice, or two copies of one: nothing tells.
  floats("val_0", {2, 2}, kDrawn);
  floats("a.bias", {2}, {0.5f, 0.25f});
  node("MatMul", {"x", "val_0"}, "val_1");
  node("Add", {"val_1", "a.bias"}, "linear");
  node("MatMul", {"linear", "val_0"}, "val_2");
  node("Add", {"val_2", "a.bias"}, "y");
  read();
  EXPECT_EQ(operand(0, 1).name, operand(2, 1).name);
  EXPECT_EQ(operand(1, 1).name, operand(3, 1).name);
  EXPECT_NE(notes().find("2 tensors are read by several layers each"), std::string::npos)
      << notes();
  EXPECT_NE(notes().find("'val_0' (here 'a.weight'), 'a.bias'"), std::string::npos) << notes();
}

TEST_F(Converted, AMatrixThatIsTurnedIsReadOnce) {
  floats("a.weight", {2, 2}, kDrawn);
  node("Transpose", {"a.weight"}, "val_0");
  node("MatMul", {"x", "val_0"}, "y");
  read();
  EXPECT_EQ(notes().find("is read by several layers"), std::string::npos) << notes();
}

TEST_F(Converted, WhatIsReadTwiceMayBeAPart) {
  floats("a.in_proj_weight", {4, 2}, {0.31f, -0.72f, 0.113f, 0.944f, 0.5f, 0.25f, -0.6f, 0.7f});
  model_.node("Split", {"a.in_proj_weight"}, {"split_0", "split_1"}, "node_split");
  node("MatMul", {"x", "split_0"}, "linear");
  node("MatMul", {"linear", "split_1"}, "linear_1");
  node("MatMul", {"linear_1", "split_1"}, "y");
  auto isDoubted = [&] {
    read();
    return notes().find("'a.in_proj_weight' is read by several layers") != std::string::npos;
  };
  EXPECT_TRUE(isDoubted()) << notes();
  model_.model.mutable_graph()->mutable_node(3)->set_input(1, "split_0");
  EXPECT_TRUE(isDoubted()) << notes();
  model_.model.mutable_graph()->mutable_node(3)->set_op_type("Add");
  model_.model.mutable_graph()->mutable_node(3)->set_input(1, "linear");
  EXPECT_FALSE(isDoubted()) << notes();
}

TEST_F(Converted, ALayerBesideOneThatIsMissingMayStandForBoth) {
  // Copies of a layer for one input: their nodes were merged as well as their tensors.
  floats("a.weight", {2, 2}, kDrawn);
  floats("b.weight", {2, 2}, {0.31f, 0.113f, -0.72f, 0.944f});
  node("MatMul", {"x", "a.weight"}, "linear");
  node("MatMul", {"linear", "b.weight"}, "y");
  auto isDoubted = [&](const char* last) {
    model_.model.mutable_graph()->mutable_node(1)->set_name(last);
    read();
    return notes().find("2 tensors may each stand for several") != std::string::npos;
  };
  EXPECT_TRUE(isDoubted("node_linear_2")) << notes();
  EXPECT_FALSE(isDoubted("node_linear_1")) << notes();
  EXPECT_FALSE(isDoubted("node_add_7")) << notes();
  EXPECT_FALSE(isDoubted("linear_7")) << notes();
}

TEST_F(Converted, SmallVectorsOfTwoLayersAreTwo) {
  floats("val_0", {2, 2}, kDrawn);
  floats("val_3", {2, 2}, {0.31f, 0.113f, -0.72f, 0.944f});
  floats("a.scale", {2}, {0.5f, 0.25f});
  node("MatMul", {"x", "val_0"}, "val_1");
  node("Mul", {"val_1", "a.scale"}, "mul");
  node("MatMul", {"mul", "val_3"}, "val_2");
  node("Mul", {"val_2", "a.scale"}, "y");
  read();
  EXPECT_NE(operand(1, 1).name, operand(3, 1).name);
  EXPECT_TRUE(names_.find("a.scale")->guessed) << "nothing tells which of the two it is";
}

} // namespace
} // namespace titan::frontend
