// ONNX's Attention, RotaryEmbedding and RMSNormalization as single titan ops.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;
constexpr int kInt64 = ::onnx::TensorProto::INT64, kBool = ::onnx::TensorProto::BOOL;

class AttentionTest : public testing::ImportFixture {
protected:
  static void setReal(::onnx::NodeProto& node, const std::string& name, float value) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::FLOAT);
    attribute->set_f(value);
  }
  /// [batch, heads, positions, width] for query, key and value, with 4 and 2 heads.
  static ModelBuilder grouped() {
    ModelBuilder model(25);
    model.input("q", {-1, 4, 6, 2}).input("k", {-1, 2, 6, 2}).input("v", {-1, 2, 6, 2});
    model.output("y");
    return model;
  }
};

TEST_F(AttentionTest, HeadsComeAfterPositions) {
  ModelBuilder model = grouped();
  ModelBuilder::setInt(model.node("Attention", {"q", "k", "v"}, {"y"}), "is_causal", 1);
  std::string text = import(model);
  EXPECT_HAS(text, "titan.attention");
  EXPECT_HAS(text, " causal ");
  EXPECT_HAS(text, "scale 0.70710678");
  EXPECT_HAS(text, "(tensor<8x6x4x2xf32>, tensor<8x6x2x2xf32>, tensor<8x6x2x2xf32>)");
}

TEST_F(AttentionTest, RankThreeSplitsTheWidth) {
  ModelBuilder model(23);
  model.input("q", {-1, 6, 8}).input("k", {-1, 6, 4}).input("v", {-1, 6, 4}).output("y");
  auto& node = model.node("Attention", {"q", "k", "v"}, {"y"});
  ModelBuilder::setInt(node, "q_num_heads", 4);
  ModelBuilder::setInt(node, "kv_num_heads", 2);
  std::string text = import(model);
  EXPECT_HAS(text, "tensor<8x6x8xf32> to tensor<8x6x4x2xf32>");
  EXPECT_LACKS(text, "titan.transpose");
}

TEST_F(AttentionTest, MasksGetTheirRank) {
  ModelBuilder model = grouped();
  model.input("mask", {6, 6}, kBool);
  model.node("Attention", {"q", "k", "v", "mask"}, {"y"});
  EXPECT_HAS(import(model), "tensor<6x6xi1> to tensor<1x1x6x6xi1>");
}

/// Scores that are masked by a selection between zero and the lowest number.
TEST_F(AttentionTest, WhatABooleanMaskForbidsHasNoPart) {
  const auto masked = [&](const char* source) {
    ModelBuilder model = grouped();
    model.input("kt", {-1, 4, 2, 6}).input("v4", {-1, 4, 6, 2}).input("mask", {-1, 1, 6, 6}, kBool);
    model.floats("zero", {}, {0});
    model.floats("lowest", {}, {-3.4028235e38f});
    model.node("MatMul", {"q", "kt"}, {"scores"});
    ModelBuilder::setSource(model.node("Where", {"mask", "zero", "lowest"}, {"bias"}), "", source,
                            "%q, %k, %v, %mask");
    model.node("Add", {"scores", "bias"}, {"sum"});
    ModelBuilder::setInt(model.node("Softmax", {"sum"}, {"p"}), "axis", -1);
    model.node("MatMul", {"p", "v4"}, {"y"});
    return import(model);
  };
  EXPECT_HAS(masked("scaled_dot_product_attention.default"), "mask %arg5 scale");
  EXPECT_HAS(masked("where.self"), "-3.40282347E+38");
}

/// A conversion to another opset drops the metadata by which it is known.
TEST_F(AttentionTest, ALowestNumberWithoutMetadataHasANote) {
  const auto masked = [&](float forbidden) {
    ModelBuilder model = grouped();
    model.model.set_producer_name("pytorch");
    model.input("mask", {-1, 1, 6, 6}, kBool).input("scores", {-1, 4, 6, 6});
    model.floats("zero", {}, {0});
    model.floats("lowest", {}, {forbidden});
    model.node("Where", {"mask", "zero", "lowest"}, {"bias"}, "node_where");
    model.node("Add", {"scores", "bias"}, {"y"}, "node_add");
    return notes(model);
  };
  const std::string note =
      "node 'node_where' (Where) may be the mask of scaled_dot_product_attention, in which "
      "torch.export writes the lowest number for minus infinity: a query whose keys are all masked "
      "attends to all alike then, and has no result in PyTorch; export to opset 18 or later";
  EXPECT_TRUE(llvm::is_contained(masked(-3.4028235e38f), note));
  EXPECT_FALSE(llvm::is_contained(masked(-1e9f), note));
}

/// Scores to which the mask itself is added.
TEST_F(AttentionTest, ABooleanMaskThatIsAddedForbids) {
  const auto masked = [&](const char* source) {
    ModelBuilder model = grouped();
    model.input("kt", {-1, 4, 2, 6}).input("v4", {-1, 4, 6, 2}).input("mask", {-1, 1, 6, 6}, kBool);
    model.node("MatMul", {"q", "kt"}, {"scores"});
    ModelBuilder::setSource(model.node("Add", {"scores", "mask"}, {"sum"}, "masked"), "", source,
                            "%q, %k, %v, %mask");
    ModelBuilder::setInt(model.node("Softmax", {"sum"}, {"p"}), "axis", -1);
    model.node("MatMul", {"p", "v4"}, {"y"});
    return import(model);
  };
  EXPECT_HAS(masked("scaled_dot_product_attention.default"), "mask %arg5 scale");
  EXPECT_HAS(masked("add.Tensor"), "node 'masked' (Add): operands must be numbers of one type");
}

TEST_F(AttentionTest, AWindowIsAMask) {
  ModelBuilder model = grouped();
  ModelBuilder::setInt(model.node("Attention", {"q", "k", "v"}, {"y"}), "left_window_size", 2);
  EXPECT_HAS(import(model), "tensor<1x1x6x6xi1>");
}

TEST_F(AttentionTest, ACapIsSpelledOut) {
  ModelBuilder model = grouped();
  setReal(model.node("Attention", {"q", "k", "v"}, {"y"}), "softcap", 20);
  std::string text = import(model);
  EXPECT_LACKS(text, "titan.attention");
  EXPECT_HAS(text, "titan.tanh");
  EXPECT_HAS(text, "titan.softmax");
}

TEST_F(AttentionTest, CachesAndScoresAreRefused) {
  ModelBuilder model = grouped();
  model.node("Attention", {"q", "k", "v", "", "k", "v"}, {"y"}, "attend");
  EXPECT_HAS(import(model), "node 'attend' (Attention): past keys and values are not supported");
  model = grouped();
  model.node("Attention", {"q", "k", "v"}, {"o", "", "", "y"}, "attend");
  EXPECT_HAS(import(model), "the scores (qk_matmul_output, mode 0)");
}

TEST_F(AttentionTest, RotaryLooksAnglesUpByPosition) {
  ModelBuilder model(23);
  model.input("x", {-1, 4, 6, 4}).input("ids", {-1, 6}, kInt64).output("y");
  model.input("cos", {10, 2}).input("sin", {10, 2});
  model.node("RotaryEmbedding", {"x", "cos", "sin", "ids"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, "tensor<8x6x2xf32>, tensor<8x6x2xf32>) -> tensor<8x6x4x4xf32>");
}

TEST_F(AttentionTest, RootMeanSquareNormIsOneOp) {
  ModelBuilder model(23);
  model.input("x", {-1, 4}).output("y").floats("norm.weight", {4}, {1, 2, 3, 4});
  model.node("RMSNormalization", {"x", "norm.weight"}, {"y"});
  EXPECT_HAS(import(model), "titan.rms_norm %arg1 scale %arg0 axis 1");
}

} // namespace
} // namespace titan::frontend
