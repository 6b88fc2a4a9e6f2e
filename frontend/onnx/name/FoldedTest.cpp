// What torch.export's optimizer computes, merges and drops: the nodes' metadata is as it writes it.
#include "frontend/onnx/testing/FoldedFixture.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace titan::frontend {
namespace {

using Folded = testing::FoldedFixture;
using testing::ModelBuilder;

TEST_F(Folded, ATranspositionOfAParameterIsReadAsIt) {
  floats("a.w", {2, 2}, kDrawn);
  floats("t", {2, 2}, {0.31f, 0.113f, -0.72f, 0.944f});
  add("MatMul", {"x", "t"}, "matmul", "a", "matmul.default", "%x, %t");
  add("MatMul", {"matmul", "a.w"}, "y", "a", "matmul.default", "%matmul, %p_a_w");
  sign({"a.w", "b"}); // b is lost, and no reason to doubt
  read();
  const NamedTensor& turned = *names_.find("t");
  EXPECT_TRUE(turned.isCopy);
  ASSERT_EQ(turned.pieces.size(), 1u);
  EXPECT_EQ(turned.pieces[0].state, "a.w");
  EXPECT_EQ(turned.pieces[0].piece.dims, (std::vector<int64_t>{1, 0}));
}

TEST_F(Folded, ATranspositionMayBeThatOfACopyThatIsNotInTheFile) {
  floats("a.w", {2, 2}, kDrawn);
  floats("t", {2, 2}, {0.31f, 0.113f, -0.72f, 0.944f});
  add("MatMul", {"x", "a.w"}, "matmul", "a", "matmul.default", "%x, %p_a_w");
  add("MatMul", {"matmul", "t"}, "y", "b", "matmul.default", "%matmul, %t");
  sign({"a.w", "b.w"});
  read();
  EXPECT_FALSE(names_.find("t")->isCopy);
  EXPECT_TRUE(names_.find("t")->isPart);
  EXPECT_EQ(names_.find("t")->kind, TensorKind::Parameter);
}

TEST_F(Folded, WhatIsComputedOfAParameterInTheFileIsAPart) {
  std::vector<float> w, plusOne;
  for (int i = 0; i < 8; ++i)
    plusOne.push_back(1 + w.emplace_back(static_cast<float>((i * 5 % 8) * 0.113 - 0.4)));
  floats("a.w", {8}, w);
  floats("add", {8}, plusOne);
  floats("select", {4}, {w[2], 0, w[3], w[4]});
  add("Mul", {"x", "a.w"}, "mul", "a", "mul.Tensor", "%x, %p_a_w");
  add("Mul", {"mul", "add"}, "mul_1", "a", "mul.Tensor", "%mul, %add");
  add("Mul", {"mul_1", "select"}, "y", "a", "mul.Tensor", "%mul_1, %select");
  sign({"a.w"});
  read();
  for (const char* name : {"add", "select"}) {
    EXPECT_TRUE(names_.find(name)->isPart) << name;
    EXPECT_EQ(names_.find(name)->partOf, (std::vector<std::string>{"a.w"})) << name;
  }
  EXPECT_FALSE(names_.find("a.w")->structural);
}

TEST_F(Folded, AFoldOfARootParameterIsTrained) {
  floats("exp", {}, {1.37f});
  add("Mul", {"x", "exp"}, "y", "a", "mul.Tensor", "%x, %exp");
  sign({"p0"});
  read();
  EXPECT_EQ(names_.find("exp")->kind, TensorKind::Parameter);
  EXPECT_TRUE(names_.find("exp")->isPart);
  EXPECT_NE(notes().find("(perhaps 'p0')"), std::string::npos) << notes();
}

TEST_F(Folded, FewElementsOnALineAreComputedOfThose) {
  const auto noteOf = [&](float last) {
    model_ = ModelBuilder();
    model_.model.set_producer_name("pytorch");
    model_.input("x", {4, 5}).output("y");
    floats("mul_3", {5}, {0.155f, -0.36f, 0.045f, 0.235f, last});
    floats("a.bias", {5}, {0.31f, -0.72f, 0.09f, 0.47f, -0.11f});
    add("Add", {"x", "mul_3"}, "first", "a", "add.Tensor", "%x, %mul_3");
    add("Add", {"first", "a.bias"}, "y", "a", "add.Tensor", "%first, %p_a_bias");
    sign({"a.bias"});
    read();
    return notes();
  };
  EXPECT_NE(noteOf(-0.055f).find("was computed by the exporter from a parameter that is in the"),
            std::string::npos)
      << notes();
  EXPECT_NE(noteOf(-0.05f).find("from none of the parameters"), std::string::npos) << notes();
}

TEST_F(Folded, OnesMayBeWhatOnePlusZerosStartsFrom) {
  floats("add", {2}, {1, 1});
  add("Mul", {"x", "add"}, "y", "a", "mul.Tensor", "%x, %add");
  sign({"a.weight"});
  read();
  EXPECT_EQ(names_.find("add")->kind, TensorKind::Parameter);
}

TEST_F(Folded, WhatIsComputedOfNoParameterIsAConstantWithANote) {
  floats("div", {2}, {0.31f, 0.72f});
  floats("a.w", {2}, {0.5f, 0.25f});
  add("Mul", {"x", "div"}, "mul", "a", "mul.Tensor", "%x, %div");
  add("Mul", {"mul", "a.w"}, "y", "a", "mul.Tensor", "%mul, %p_a_w");
  sign({"a.w"});
  read();
  EXPECT_EQ(names_.find("div")->kind, TensorKind::Constant);
  EXPECT_NE(notes().find("'div' was computed by the exporter, from none of the parameters"),
            std::string::npos)
      << notes();
}

TEST_F(Folded, FirstStatesThatAreMadeOfNothingAreNone) {
  for (int64_t batch : {2, 3})
    for (const char* made : {"%zeros, %zeros_1", "%expand, %zeros", "%p_h0, %zeros"}) {
      model_ = ModelBuilder();
      model_.model.set_producer_name("pytorch");
      model_.input("x", {4, 2, 2}).input("of_samples", {batch}).output("y");
      floats("val_9", {1, 2, 1}, {0, 0});
      floats("rnn.w", {1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
      floats("rnn.r", {1, 4, 1}, {1, 2, 3, 4});
      add("LSTM", {"x", "rnn.w", "rnn.r", "", "", "val_9", "val_9"}, "y", "rnn", "lstm.input",
          std::string("%x, [") + made + "], [%p_rnn_w, %p_rnn_r], False, 1");
      sign({"h0", "rnn.w", "rnn.r"});
      read();
      EXPECT_EQ(names_.find("val_9")->kind, std::string(made).starts_with("%zeros")
                                                ? TensorKind::Constant
                                                : TensorKind::Parameter)
          << made;
    }
}

TEST_F(Folded, ANumberOfTheProgramIsNone) {
  // The scale of an attention, of whose module a bias is lost, and a factor.
  floats("val_70", {1}, {0.8408964f});
  floats("scalar_tensor_default", {}, {2});
  add("Mul", {"x", "val_70"}, "val_71", "attn", "scaled_dot_product_attention.default",
      "%x, %view_1, %view_2");
  add("Mul", {"val_71", "scalar_tensor_default"}, "y", "", "mul.Tensor",
      "%z, %scalar_tensor_default");
  sign({"attn.bias"});
  read();
  for (const char* name : {"val_70", "scalar_tensor_default"}) {
    EXPECT_EQ(names_.find(name)->kind, TensorKind::Constant) << name;
    EXPECT_EQ(names_.find(name)->proof, Proof::Number) << name;
  }
}

TEST_F(Folded, AnOpThatReshapesAParameterReadsAPartOfIt) {
  floats("val_9", {2, 4}, std::vector<float>(8, 0.3f));
  floats("val_21", {1, 4}, kDrawn);
  add("MatMul", {"x", "val_9"}, "val_10", "a.b", "bilinear.default",
      "%x, %x, %p_a_b_weight, %p_a_b_bias");
  add("Add", {"val_10", "a.b.bias"}, "bilinear", "a.b", "bilinear.default",
      "%x, %x, %p_a_b_weight, %p_a_b_bias");
  add("PRelu", {"bilinear", "val_21"}, "y", "act", "prelu.default", "%bilinear, %p_act_weight");
  floats("a.b.bias", {4}, kDrawn);
  sign({"a.b.weight", "a.b.bias", "act.weight"});
  read();
  EXPECT_TRUE(names_.find("val_9")->isPart);
  EXPECT_EQ(names_.find("val_9")->partOf, (std::vector<std::string>{"a.b.weight"}));
  EXPECT_NE(names_.find("val_9")->name, "a.b.weight");
  // A vector is one, whatever is around it.
  EXPECT_EQ(names_.find("val_21")->name, "act.weight");
  for (const NamedState& state : names_.states)
    if (state.name == "act.weight")
      EXPECT_EQ(state.shape, (Shape{4}));
}

TEST_F(Folded, EqualFoldsOfTwoModulesAreTwo) {
  floats("t", {2, 2}, kDrawn);
  add("MatMul", {"x", "t"}, "matmul", "a", "matmul.default", "%x, %t");
  add("MatMul", {"matmul", "t"}, "matmul_1", "b", "matmul.default", "%matmul, %t_1");
  add("MatMul", {"matmul_1", "t"}, "y", "b", "matmul.default", "%matmul_1, %t_2");
  sign({"a.w", "b.w"});
  read();
  EXPECT_NE(operand(0, 1).name, operand(1, 1).name);
  EXPECT_EQ(operand(1, 1).name, operand(2, 1).name) << "the module is called twice";
}

TEST_F(Folded, AMergedScaleOfAnotherLeafIsToldByTheArguments) {
  floats("a.ps.scale", {2}, {1, 1});
  floats("n.bias", {2}, {0, 0});
  add("LayerNormalization", {"x", "a.ps.scale", "n.bias"}, "layer_norm", "n", "layer_norm.default",
      "%x, [2], %p_n_weight, %p_n_bias");
  add("Mul", {"layer_norm", "a.ps.scale"}, "mul", "a", "mul.Tensor", "%layer_norm, %p_a_ps_scale");
  // 1 + w of zeros is merged too.
  add("Mul", {"mul", "a.ps.scale"}, "y", "c", "mul.Tensor", "%mul, %add");
  sign({"a.ps.scale", "n.weight", "n.bias", "c.w"});
  read();
  EXPECT_EQ(operand(0, 1).name, "n.weight");
  EXPECT_EQ(operand(1, 1).name, "a.ps.scale");
  EXPECT_TRUE(operand(2, 1).isPart);
  EXPECT_EQ(names_.states.size(), 4u);
}

TEST_F(Folded, ANodeWithoutMetadataReadsTheParameterOfTheNodesBehindIt) {
  floats("a.in_proj_bias", {2}, {0, 0});
  add("Add", {"x", "a.in_proj_bias"}, "add", "a", "linear.default", "%x, %w, %p_a_in_proj_bias");
  model_.node("Split", {"a.in_proj_bias"}, {"split_0", "split_1"});
  add("Add", {"add", "split_0"}, "add_1", "b", "linear.default", "%add, %getitem, %getitem_2");
  add("Add", {"add_1", "split_1"}, "y", "b", "linear.default", "%add, %getitem_1, %getitem_3");
  sign({"a.in_proj_bias", "b.in_proj_bias"});
  read();
  EXPECT_EQ(operand(1, 0).name, "b.in_proj_bias");
  EXPECT_EQ(operand(0, 1).name, "a.in_proj_bias");
}

TEST_F(Folded, OfALayerWhoseProductWasFoldedTheVectorIsTheBias) {
  floats("val_1", {1, 3, 2}, {1, 2, 3, 4, 5, 6});
  floats("val_5", {1, 3, 2}, {6, 5, 4, 3, 2, 1});
  floats("a.bias", {2}, {0, 0});
  add("Add", {"val_1", "a.bias"}, "h", "a", "linear.default", "%t, %p_a_weight, %p_a_bias");
  add("Add", {"val_5", "a.bias"}, "g", "b", "linear.default", "%u, %p_b_weight, %p_b_bias");
  add("Add", {"h", "g"}, "hg", "", "add.Tensor", "%h, %g");
  add("Add", {"x", "hg"}, "y", "", "add.Tensor", "%x, %hg");
  sign({"a.weight", "a.bias", "b.weight", "b.bias"});
  read();
  EXPECT_EQ(operand(0, 1).name, "a.bias");
  EXPECT_EQ(operand(1, 1).name, "b.bias");
  EXPECT_TRUE(operand(1, 0).structural);
}

TEST_F(Folded, AFreshNormHasStatisticsOfItsOwn) {
  floats("n.weight", {2}, {1, 1});
  floats("n.bias", {2}, {0, 0});
  const char* arguments = "%x, %p_n_weight, %p_n_bias, %b_n_running_mean, %b_n_running_var, 0.1";
  for (const char* output : {"h", "y"})
    add("BatchNormalization",
        {*output == 'h' ? "x" : "h", "n.weight", "n.bias", "n.bias", "n.weight"}, output, "n",
        "_native_batch_norm_legit_no_training.default", arguments);
  sign({"n.weight", "n.bias"}, {"n.running_mean", "n.running_var", "n.num_batches_tracked"});
  read();
  for (int node : {0, 1}) {
    EXPECT_EQ(operand(node, 1).name, "n.weight");
    EXPECT_EQ(operand(node, 2).name, "n.bias");
    EXPECT_EQ(operand(node, 3).name, "n.running_mean");
    EXPECT_EQ(operand(node, 4).name, "n.running_var");
    EXPECT_EQ(operand(node, 5).name, "n.num_batches_tracked");
    EXPECT_EQ(operand(node, 3).kind, TensorKind::Buffer);
  }
}

// What is called again reads the statistics that its first call has moved.
TEST_F(Folded, ANormThatIsCalledAgainHasOneMean) {
  const char* const op = "_native_batch_norm_legit_functional.default";
  floats("n.bias", {2}, {0, 0});
  floats("n.weight", {2}, {1, 1});
  add("BatchNormalization", {"x", "n.weight", "n.bias", "n.bias", "n.weight"}, "first", "n", op,
      "%x, %p_n_weight, %p_n_bias, %b_n_running_mean, %b_n_running_var, True, 0.1, 1e-05");
  add("BatchNormalization", {"first", "n.weight", "n.bias", "n.bias", "n.weight"}, "y", "n", op,
      "%first, %p_n_weight, %p_n_bias, %getitem_3, %getitem_4, True, 0.1, 1e-05");
  sign({"n.weight", "n.bias"}, {"n.running_mean", "n.running_var", "n.num_batches_tracked"});
  read();
  for (size_t call : {0, 1}) {
    EXPECT_EQ(operand(call, 2).name, "n.bias");
    EXPECT_EQ(operand(call, 3).name, "n.running_mean");
    EXPECT_EQ(operand(call, 4).name, "n.running_var");
    EXPECT_EQ(operand(call, 5).name, "n.num_batches_tracked");
  }
}

TEST_F(Folded, AStatisticThatIsHandedOnIsNoOnesOfTheProgram) {
  const std::string op = "_native_batch_norm_legit_functional.default",
                    args = "%x, None, None, %b_n_running_mean, %b_n_running_var, True, 0.1, 1e-05";
  floats("n.running_mean", {2}, {0, 0});
  floats("n.running_var", {2}, {1, 1});
  add("BatchNormalization",
      {"x", "n.running_var", "n.running_mean", "n.running_mean", "n.running_var"}, "first", "n", op,
      args);
  add("Identity", {"n.running_mean"}, "mean", "n", op, args);
  model_.node("Add", {"first", "mean"}, {"y"});
  sign({}, {"n.running_mean", "n.running_var"});
  read();
  EXPECT_EQ(operand(0, 2).kind, TensorKind::Constant);
  EXPECT_EQ(operand(1, 0).name, "n.running_mean");
}

TEST_F(Folded, RowsThatAreAllEqualAreOne) {
  floats("embedding", {1, 3, 2}, {0.31f, -0.72f, 0.31f, -0.72f, 0.31f, -0.72f});
  add("Add", {"x", "embedding"}, "y", "types", "add.Tensor", "%x, %embedding");
  sign({"types.weight"});
  read();
  ASSERT_EQ(names_.states.size(), 1u);
  EXPECT_EQ(names_.states[0].shape, (Shape{1, 1, 2}));
  EXPECT_TRUE(names_.find("embedding")->isPart);
  EXPECT_EQ(names_.find("embedding")->partOf, (std::vector<std::string>{"types.weight"}));
}

TEST_F(Folded, RowsOfZerosAreAllTrained) {
  floats("slice_1", {1, 3, 2}, std::vector<float>(6));
  add("Add", {"x", "slice_1"}, "y", "", "add.Tensor", "%x, %slice_1");
  sign({"table"});
  read();
  ASSERT_EQ(names_.states.size(), 1u);
  EXPECT_EQ(names_.states[0].shape, (Shape{1, 3, 2}));
}

TEST_F(Folded, ATranspositionIsTheOneLostParameterOfItsModuleByAGuess) {
  floats("permute", {2, 2}, kDrawn);
  add("MatMul", {"x", "permute"}, "y", "fc", "matmul.default", "%x, %permute");
  sign({"fc.weight", "other.weight"});
  read();
  const NamedTensor& tensor = *names_.find("permute");
  EXPECT_EQ(tensor.name, "fc.weight");
  EXPECT_TRUE(tensor.guessed);
  EXPECT_EQ(tensor.pieces[0].piece.dims, (std::vector<int64_t>{1, 0}));
  EXPECT_NE(notes().find("is taken for the one parameter of its module"), std::string::npos);
}

TEST_F(Folded, ATranspositionOfOneOfTwoLostParametersIsAPart) {
  floats("permute", {2, 2}, kDrawn);
  add("MatMul", {"x", "permute"}, "y", "fc", "matmul.default", "%x, %permute");
  sign({"fc.weight", "fc.scale"});
  read();
  EXPECT_TRUE(names_.find("permute")->isPart);
}

TEST_F(Folded, OneElementIsPerhapsComputedOfAnother) {
  floats("rate", {1}, {0.47f});
  floats("other.rate", {1}, {0.23f});
  floats("sub", {1}, {0.53f});
  add("Mul", {"x", "rate"}, "mul", "", "mul.Tensor", "%x, %p_rate");
  add("Mul", {"mul", "sub"}, "mul_1", "", "mul.Tensor", "%mul, %sub");
  add("Mul", {"mul_1", "other.rate"}, "y", "other", "mul.Tensor", "%mul_1, %p_other_rate");
  sign({"rate", "other.rate"});
  read();
  EXPECT_TRUE(names_.find("sub")->isPart) << notes();
  EXPECT_EQ(names_.find("sub")->partOf, (std::vector<std::string>{"rate"}));
}

TEST_F(Folded, ZerosOverAllHeadsAreAMaskWithANote) {
  for (int64_t heads : {1, 2}) {
    model_ = ModelBuilder();
    model_.model.set_producer_name("pytorch");
    model_.input("x", {-1, 2, 3, 3}).output("y");
    floats("masked_fill", {1, heads, 3, 3}, std::vector<float>(static_cast<size_t>(9 * heads)));
    add("Add", {"x", "masked_fill"}, "add", "attn", "add.Tensor", "%x, %masked_fill");
    add("Softmax", {"add"}, "y", "attn", "softmax.int", "%add, -1");
    sign({"shared.weight"});
    read();
    // A bias for each head may be trained from zeros on.
    EXPECT_EQ(names_.find("masked_fill")->kind,
              heads == 1 ? TensorKind::Constant : TensorKind::Parameter);
    EXPECT_NE(notes().find(heads == 1 ? "a mask that forbids nothing" : "computed from parameters"),
              std::string::npos)
        << notes();
  }
}

TEST_F(Folded, ALayerThatMayStandForTwoIsNoted) {
  floats("n1.weight", {2}, {1, 1});
  floats("w", {2}, {0.31f, 0.72f});
  add("LayerNormalization", {"x", "n1.weight"}, "layer_norm", "n1", "layer_norm.default",
      "%x, [2], %p_n1_weight");
  add("Mul", {"layer_norm", "w"}, "mul", "", "mul.Tensor", "%layer_norm_1, %p_w");
  add("Add", {"mul", "layer_norm"}, "y", "", "add.Tensor", "%mul, %layer_norm");
  sign({"n1.weight", "n2.weight", "w"});
  read();
  EXPECT_NE(notes().find("'n1.weight' (perhaps 'n2.weight'): the exporter merged layers"),
            std::string::npos)
      << notes();
}

TEST_F(Folded, EqualScalarsAreToldByTheirPlaces) {
  floats("a.w", {}, {0.5f});
  add("Add", {"x", "a.w"}, "add", "a", "add.Tensor", "%x, %p_a_w");
  add("Mul", {"a.w", "add"}, "mul", "b", "mul.Tensor", "%p_b_w, %add");
  add("Sub", {"mul", "a.w"}, "rsub", "c", "rsub.Tensor", "%p_c_w, %mul");
  add("Where", {"mask", "a.w", "a.w"}, "where", "d", "where.self", "%mask, %p_d_w, %p_e_w");
  add("Mul", {"where", "rsub"}, "mul_1", "", "mul.Tensor", "%where, %rsub");
  add("Mul", {"mul_1", "a.w"}, "y", "a", "mul.Tensor", "%mul_1, 0.5");
  model_.input("mask", {-1, 2}, ::onnx::TensorProto::BOOL);
  sign({"a.w", "b.w", "c.w", "d.w", "e.w"});
  read();
  EXPECT_EQ(operand(0, 1).name, "a.w");
  EXPECT_EQ(operand(1, 0).name, "b.w");
  EXPECT_EQ(operand(2, 1).name, "c.w");
  EXPECT_EQ(operand(3, 1).name, "d.w");
  EXPECT_EQ(operand(3, 2).name, "e.w");
  EXPECT_EQ(operand(5, 1).kind, TensorKind::Constant) << "a number of the program";
  EXPECT_EQ(operand(5, 1).proof, Proof::Number);
}

TEST_F(Folded, WhatIsReadForOneOfSeveralParametersIsDoubted) {
  // a + 0.3 * x * b of equal parameters: the number is no part of b.
  floats("m.a", {}, {0.5f});
  floats("val_3", {}, {0.3f});
  add("Mul", {"x", "val_3"}, "val_4", "m", "addcmul.default", "%p_m_a, %x, %p_m_b", "value: 0.3");
  add("Mul", {"val_4", "m.a"}, "val_5", "m", "addcmul.default", "%p_m_a, %x, %p_m_b");
  add("Add", {"m.a", "val_5"}, "y", "m", "addcmul.default", "%p_m_a, %x, %p_m_b");
  sign({"m.a", "m.b"});
  read();
  EXPECT_NE(notes().find("'m.a' (perhaps 'm.b'): the exporter merged"), std::string::npos)
      << notes();
}

TEST_F(Folded, AnArgumentThatAlphaMultipliesIsAPart) {
  floats("val_2", {2}, {0.31f, 0.72f});
  floats("b.w", {2}, {0, 0});
  add("Add", {"x", "val_2"}, "add", "a", "add.Tensor", "%x, %p_a_w", "alpha: 0.5");
  add("Add", {"add", "b.w"}, "add_1", "b", "add.Tensor", "%add, %p_b_w");
  // Zeros are the same times two, and merged.
  add("Sub", {"add_1", "b.w"}, "y", "b", "sub.Tensor", "%add_1, %p_b_w", "alpha: 2");
  sign({"a.w", "b.w"});
  read();
  EXPECT_TRUE(operand(0, 1).isPart);
  EXPECT_EQ(operand(0, 1).partOf, (std::vector<std::string>{"a.w"}));
  EXPECT_NE(notes().find("multiplied by a number"), std::string::npos) << notes();
  EXPECT_EQ(operand(1, 1).name, "b.w");
  EXPECT_TRUE(operand(2, 1).isPart) << notes();
}

TEST_F(Folded, ACallOfALayerIsComputedOfItsParametersToo) {
  floats("linear_1", {1, 2}, {0.31f, 0.72f}); // linear(h, r.w, r.b)
  floats("r.w", {2, 2}, kDrawn);
  floats("r.b", {2}, {0.21f, 0.44f});
  floats("o.b", {2}, {0.51f, 0.14f});
  add("Add", {"x", "linear_1"}, "add", "r", "add.Tensor", "%x, %linear_1");
  add("MatMul", {"add", "r.w"}, "val_1", "r", "linear.default", "%add, %p_r_w, %p_r_b");
  add("Add", {"val_1", "r.b"}, "linear_2", "r", "linear.default", "%add, %p_r_w, %p_r_b");
  add("Add", {"linear_2", "o.b"}, "y", "o", "add.Tensor", "%linear_2, %p_o_b");
  sign({"h", "r.w", "r.b", "o.b"});
  read();
  EXPECT_TRUE(operand(0, 1).isPart);
  EXPECT_EQ(operand(0, 1).partOf, (std::vector<std::string>{"r.w", "r.b"})) << notes();
}

// The first step of a GRUCell from a token that is known: all of its parameters are in the file,
// and the node that reads it was made by a rule of the optimizer.
TEST_F(Folded, ACallOfALayerIsNoConstantWhereNothingIsLost) {
  floats("linear_1", {1, 4}, {0.31f, 0.72f, 0.14f, 0.55f});
  floats("c.w", {2, 2}, kDrawn);
  floats("c.b", {2}, {0.21f, 0.44f});
  ModelBuilder::setInt(model_.node("Split", {"linear_1"}, {"first", "second"}), "axis", 1);
  add("Add", {"x", "first"}, "add", "c", "add.Tensor", "%x, %getitem");
  add("Mul", {"add", "second"}, "mul", "c", "mul.Tensor", "%add, %getitem_1");
  add("MatMul", {"mul", "c.w"}, "val_1", "c", "linear.default", "%mul, %p_c_w, %p_c_b");
  add("Add", {"val_1", "c.b"}, "y", "c", "linear.default", "%mul, %p_c_w, %p_c_b");
  sign({"c.w", "c.b"});
  read();
  EXPECT_EQ(operand(0, 0).kind, TensorKind::Parameter);
  EXPECT_EQ(operand(0, 0).partOf, (std::vector<std::string>{"c.w", "c.b"})) << notes();
}

TEST_F(Folded, WhatTheOptimizerTookOfADetachIsNoted) {
  floats("a.w", {2}, {0.31f, 0.72f});
  floats("b.w", {2}, {0.21f, 0.44f});
  floats("c.w", {2}, {0.11f, 0.52f});
  add("Mul", {"x", "a.w"}, "mul", "a", "mul.Tensor", "%x, %p_a_w");
  add("Identity", {"mul"}, "detach", "", "detach.default", "%mul");
  add("Mul", {"x", "b.w"}, "mul_1", "b", "mul.Tensor", "%x, %p_b_w");
  add("Add", {"detach", "mul_1"}, "add", "", "add.Tensor", "%detach, %detach_1");
  add("Mul", {"add", "c.w"}, "y", "c", "mul.Tensor", "%add, %p_c_w");
  sign({"a.w", "b.w", "c.w"});
  read();
  EXPECT_NE(notes().find("the source detaches what it computes from 'b.w', and the exporter's "
                         "optimizer removed that"),
            std::string::npos)
      << notes();
  for (const char* name : {"a.w", "c.w"})
    EXPECT_FALSE(names_.find(name)->doubt) << name;
}

// The lines of torch.no_grad(), and of torch.autocast, are those of a graph that torch.export made
// for the region. What the source detaches behind it is exact.
TEST_F(Folded, WhatIsTracedApartIsNoted) {
  const auto from = [&](const char* line) {
    ModelBuilder::setMetadata(*model_.model.mutable_graph()->mutable_node()->rbegin(),
                              "pkg.torch.onnx.stack_trace", line);
  };
  const char* apart = "File \"<eval_with_key>.42\", line 5, in forward\n    mul = 1";
  const char* source = "File \"m.py\", line 9, in forward\n    return x";
  for (const char* name : {"a.w", "b.w", "c.w", "d.w"})
    floats(name, {2}, {0.1f * static_cast<float>(name[0]), 0.72f});
  add("Mul", {"x", "a.w"}, "mul", "a", "mul.Tensor", "%x, %p_a_w");
  from(source);
  add("Mul", {"mul", "b.w"}, "mul_1", "", "mul.Tensor", "%mul, %p_b_w");
  from(apart);
  add("Mul", {"x", "c.w"}, "mul_2", "", "mul.Tensor", "%x, %p_c_w");
  from(apart);
  add("Identity", {"mul_2"}, "detach", "", "detach.default", "%mul_2");
  from(source);
  add("Add", {"mul_1", "detach"}, "add", "", "add.Tensor", "%mul_1, %detach");
  from(source);
  add("Mul", {"add", "d.w"}, "y", "d", "mul.Tensor", "%add, %p_d_w");
  from(source);
  sign({"a.w", "b.w", "c.w", "d.w"});
  read();
  EXPECT_NE(notes().find("the source computes from 2 parameters in a region of its own, as under "
                         "torch.no_grad() or torch.autocast, and the file does not say which"),
            std::string::npos)
      << notes();
  for (const char* name : {"a.w", "b.w"})
    EXPECT_TRUE(names_.find(name)->doubt) << name;
  for (const char* name : {"c.w", "d.w"})
    EXPECT_FALSE(names_.find(name)->doubt) << name;
}

// A file without the text of fx nodes: nobody adds what he subtracts, unless a part of it is
// detached.
TEST_F(Folded, OnesInThePlaceOfNoneAreNoParameter) {
  floats("a.p", {2}, {1, 1});
  add("Mul", {"x", "a.p"}, "mul", "a", "mul.Tensor", "%x, %p_a_p");
  add("LayerNormalization", {"mul", "a.p"}, "y", "n", "layer_norm.default",
      "%mul, [2], None, None, 1e-05, False");
  sign({"a.p"});
  read();
  EXPECT_EQ(operand(0, 1).name, "a.p");
  EXPECT_EQ(operand(0, 1).kind, TensorKind::Parameter);
  EXPECT_EQ(operand(1, 1).kind, TensorKind::Constant);
}

// The rows of each bag have a weight of 1, which torch.export spreads over all of them.
TEST_F(Folded, WhatHasAnotherSizeThanTheOneParameterOfANodeIsNone) {
  floats("one", {1}, {1});
  for (const char* table : {"a.weight", "b.weight"})
    floats(table, {2, 2}, kDrawn);
  std::string sum = "x";
  for (const std::string module : {"a", "b"}) {
    const std::string op = "embedding_bag.padding_idx", rows = module + "_rows",
                      args = "%p_" + module + "_weight, %bags, %arange";
    add("MatMul", {sum, module + ".weight"}, rows, module, op, args);
    sum = module == "a" ? "bag" : "y";
    add("Mul", {rows, "one"}, sum, module, op, args);
  }
  sign({"a.weight", "b.weight"});
  read();
  EXPECT_EQ(operand(1, 1).kind, TensorKind::Constant);
  EXPECT_EQ(operand(3, 1).kind, TensorKind::Constant);
  EXPECT_EQ(names_.states.size(), 2u);
}

TEST_F(Folded, TheLayerOfAValueThatIsReadForAnotherMayStandForBoth) {
  // No signature tells that there is another parameter.
  floats("a.weight", {2, 2}, kDrawn);
  add("MatMul", {"x", "a.weight"}, "matmul", "a", "matmul.default", "%x, %p_a_weight");
  add("Add", {"matmul", "matmul"}, "add", "", "add.Tensor", "%matmul, %matmul_1");
  add("Add", {"add", "x"}, "y", "", "add.Tensor", "%add, %x");
  const std::string doubt = "'a.weight': the exporter merged layers that compute the same";
  read();
  EXPECT_NE(notes().find(doubt), std::string::npos) << notes();
  // The same value twice.
  ::onnx::NodeProto& twice = *model_.model.mutable_graph()->mutable_node(1);
  ModelBuilder::setMetadata(twice, "pkg.torch.onnx.fx_node",
                            "%add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor]"
                            "(args = (%matmul, %matmul), kwargs = {})");
  read();
  EXPECT_EQ(notes().find(doubt), std::string::npos) << notes();
}

} // namespace
} // namespace titan::frontend
