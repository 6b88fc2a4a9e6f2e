// Exports of the TorchScript exporter that folds constants: names and values as PyTorch 2.15 writes
// them.
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan::frontend {
namespace {

using ::testing::HasSubstr;
using testing::ModelBuilder;

struct Named {
  NameTable table;
  std::string notes;

  const NamedTensor& operator[](const std::string& initializer) const {
    const NamedTensor* tensor = table.find(initializer);
    EXPECT_TRUE(tensor) << initializer;
    static const NamedTensor none;
    return tensor ? *tensor : none;
  }
};
Named named(ModelBuilder& model) {
  model.model.set_producer_name("pytorch");
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  Named named{nameTensors(graph).take(), ""};
  graph.notes.append(named.table.notes);
  for (const std::string& line : graph.notes.lines())
    named.notes += line + "\n";
  return named;
}
ModelBuilder onVectors() {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y");
  return model;
}
const std::vector<float> kSquare{1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(LegacyFolds, WhatWasComputedFromParametersIsTrained) {
  // x * (1 + g) + t * 2 + w[1], of which g starts at zeros.
  ModelBuilder model = onVectors();
  model.floats("onnx::Mul_272", {3}, {1, 1, 1});
  model.floats("onnx::Add_273", {}, {0.6f});
  model.floats("onnx::Add_44", {3}, {1, 2, 3});
  model.node("Mul", {"x", "onnx::Mul_272"}, {"a"}, "/blocks.1/Mul");
  model.node("Add", {"a", "onnx::Add_273"}, {"b"}, "/blocks.1/Add");
  model.node("Add", {"b", "onnx::Add_44"}, {"y"}, "/blocks.1/Add_1");
  Named names = named(model);
  for (const char* fold : {"onnx::Mul_272", "onnx::Add_273", "onnx::Add_44"}) {
    EXPECT_EQ(names[fold].kind, TensorKind::Parameter) << fold;
    EXPECT_TRUE(names[fold].isPart) << fold;
  }
  // What nn.Linear adds is read under its own name: this is none.
  EXPECT_EQ(names["onnx::Add_44"].name, "blocks.1.add_1.bias");
  EXPECT_THAT(names.notes, HasSubstr("3 tensors are what the exporter computed from parameters or "
                                     "buffers, and are trained in their place"));
}

TEST(LegacyFolds, AParameterUnderAnotherRankIsThatParameter) {
  // x + t.unsqueeze(0), beside t under its own name; what is another parameter's keeps its values.
  for (const bool moved : {true, false}) {
    ModelBuilder model;
    model.input("x", {-1, 3, 3}).output("y");
    model.floats("t", {3, 3}, kSquare);
    std::vector<float> values = kSquare;
    if (!moved)
      values[5] = 10;
    model.floats("onnx::Add_300", {1, 3, 3}, values);
    model.node("MatMul", {"x", "t"}, {"h"}, "/MatMul");
    model.node("Add", {"h", "onnx::Add_300"}, {"y"}, "/Add");
    Named names = named(model);
    EXPECT_EQ(names["onnx::Add_300"].isCopy, moved);
    EXPECT_EQ(names["onnx::Add_300"].isPart, !moved);
    EXPECT_EQ(names["onnx::Add_300"].name == "t", moved);
  }
}

TEST(LegacyFolds, WhatWasComputedFromNumbersIsAConstant) {
  ModelBuilder model = onVectors();
  auto& constant = model.node("Constant", {}, {"/Constant_output_0"}, "/Constant");
  auto* value = constant.add_attribute();
  value->set_name("value");
  value->set_type(::onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(::onnx::TensorProto::FLOAT);
  value->mutable_t()->add_dims(3);
  for (float v : {0.3f, 0.44f, 0.58f})
    value->mutable_t()->add_float_data(v);
  model.node("Mul", {"x", "/Constant_output_0"}, {"y"}, "/Mul");
  Named names = named(model);
  EXPECT_EQ(names["/Constant_output_0"].kind, TensorKind::Constant);
  EXPECT_EQ(names["/Constant_output_0"].proof, Proof::Number);
  EXPECT_EQ(names.notes, "");
}

TEST(LegacyFolds, MasksOfParametersAreNone) {
  // A triangle, and what is added to forbid; zeros and ones may be the start of two vectors.
  ModelBuilder model;
  model.input("x", {2, 2}).output("y");
  model.floats("onnx::Mul_1", {2, 2}, {1, 0, 1, 1});
  model.floats("onnx::Add_2", {2}, {0, -1e9f});
  model.floats("onnx::Mul_3", {2}, {0, 1});
  model.node("Mul", {"x", "onnx::Mul_1"}, {"a"}, "/Mul");
  model.node("Add", {"a", "onnx::Add_2"}, {"b"}, "/Add");
  model.node("Mul", {"b", "onnx::Mul_3"}, {"y"}, "/Mul_1");
  Named names = named(model);
  EXPECT_EQ(names["onnx::Mul_1"].proof, Proof::Mask);
  EXPECT_EQ(names["onnx::Add_2"].proof, Proof::Mask);
  EXPECT_EQ(names["onnx::Mul_3"].kind, TensorKind::Parameter);
}

TEST(LegacyFolds, MasksOfShiftedWindowsAreBuffers) {
  // Under its own name and unsqueezed, as Swin transformers have it; 99 may have been trained.
  for (const float forbidden : {-100.0f, -99.0f}) {
    ModelBuilder model;
    model.input("x", {-1, 2, 2}).output("y");
    model.floats("attn.attn_mask", {2, 2}, {0, forbidden, forbidden, 0});
    model.floats("onnx::Add_2", {1, 2, 2}, {0, forbidden, 0, 0});
    model.node("Add", {"x", "attn.attn_mask"}, {"a"}, "/attn/Add");
    model.node("Add", {"a", "onnx::Add_2"}, {"y"}, "/attn/Add_1");
    Named names = named(model);
    const bool isMask = forbidden == -100;
    EXPECT_EQ(names["attn.attn_mask"].kind == TensorKind::Buffer, isMask);
    EXPECT_EQ(names["onnx::Add_2"].proof == Proof::Mask, isMask);
  }
}

TEST(LegacyFolds, AMatrixOfALayerIsItsWeightByAGuess) {
  ModelBuilder model = onVectors();
  model.floats("named.n0.bias", {3}, {1, 2, 3});
  model.floats("onnx::MatMul_12", {3, 3}, kSquare);
  model.node("MatMul", {"x", "onnx::MatMul_12"}, {"p"}, "/n0/MatMul");
  model.node("Add", {"named.n0.bias", "p"}, {"y"}, "/n0/Add");
  Named names = named(model);
  EXPECT_EQ(names["onnx::MatMul_12"].name, "named.n0.weight");
  EXPECT_TRUE(names["onnx::MatMul_12"].guessed);
  EXPECT_THAT(names.notes, HasSubstr("'onnx::MatMul_12' (here 'named.n0.weight') was folded by the "
                                     "exporter and is taken for the weight"));
}

TEST(LegacyFolds, AMatrixThatIsNotTransposedWasComputed) {
  // weight_norm: nn.Linear reads its weight as it is there.
  ModelBuilder model = onVectors();
  model.floats("part0.bias", {3}, {1, 2, 3});
  model.floats("onnx::Gemm_9", {3, 3}, kSquare);
  ModelBuilder::setInt(
      model.node("Gemm", {"x", "onnx::Gemm_9", "part0.bias"}, {"y"}, "/part0/Gemm"), "transB", 1);
  Named names = named(model);
  EXPECT_EQ(names["onnx::Gemm_9"].name, "part0.gemm_0.weight");
  EXPECT_TRUE(names["onnx::Gemm_9"].isPart);
}

TEST(LegacyFolds, AModuleThatDoesMoreHasNoWeight) {
  // x * sigmoid(x @ w.t())
  ModelBuilder model = onVectors();
  model.floats("onnx::MatMul_9", {3, 3}, kSquare);
  model.node("MatMul", {"x", "onnx::MatMul_9"}, {"p"}, "/part0/MatMul");
  model.node("Sigmoid", {"p"}, {"s"}, "/part0/Sigmoid");
  model.node("Mul", {"x", "s"}, {"y"}, "/part0/Mul");
  EXPECT_TRUE(named(model)["onnx::MatMul_9"].isPart);
}

TEST(LegacyFolds, NumberedScopesTellNoModule) {
  ModelBuilder model = onVectors();
  model.floats("onnx::MatMul_7", {3, 3}, kSquare);
  model.floats("onnx::MatMul_8", {3, 3}, {9, 8, 7, 6, 5, 4, 3, 2, 0});
  model.node("MatMul", {"x", "onnx::MatMul_7"}, {"p"}, "/gate/MatMul");
  model.node("MatMul", {"p", "onnx::MatMul_8"}, {"y"}, "/gate_1/MatMul");
  Named names = named(model);
  EXPECT_EQ(names["onnx::MatMul_7"].name, "gate.weight");
  EXPECT_TRUE(names["onnx::MatMul_8"].structural) << names["onnx::MatMul_8"].name;
}

TEST(LegacyFolds, BuffersInArithmeticAreNoted) {
  ModelBuilder model;
  model.input("x", {3, 3}).output("y");
  model.floats("part1.mu", {3}, {1, 2, 3});
  model.floats("part1.mask", {3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1});
  model.floats("norm.weight", {3}, {1, 2, 3});
  model.node("Sub", {"x", "part1.mu"}, {"a"}, "/part1/Sub");
  model.node("Mul", {"a", "part1.mask"}, {"b"}, "/part1/Mul");
  model.node("Mul", {"b", "norm.weight"}, {"y"}, "/norm/Mul");
  Named names = named(model);
  EXPECT_EQ(names["part1.mu"].kind, TensorKind::Parameter);
  EXPECT_EQ(names["part1.mask"].kind, TensorKind::Buffer);
  EXPECT_EQ(names["norm.weight"].kind, TensorKind::Parameter);
  EXPECT_EQ(names.notes, "'part1.mu' is trained, and may be a buffer, which this exporter does not "
                         "tell: --names can say kind = \"buffer\"\n");
}

TEST(LegacyFolds, AMatrixOfAProductThatStartsAsTheIdentityIsTrained) {
  ModelBuilder model = onVectors();
  model.floats("mix", {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  ModelBuilder::setText(model.node("Einsum", {"x", "mix"}, {"y"}, "/Einsum"), "equation",
                        "nc,cd->nd");
  Named names = named(model);
  EXPECT_EQ(names["mix"].kind, TensorKind::Parameter);
  EXPECT_THAT(names.notes, HasSubstr("'mix' is trained, and may be a buffer"));
}

/// torchvision's FrozenBatchNorm2d: four buffers, of which two are called like parameters.
TEST(LegacyFolds, StatisticsOfAWrittenNormAreBuffers) {
  ModelBuilder model;
  model.input("x", {3, 3}).output("y");
  model.floats("norm.weight", {3}, {1, 2, 3});
  model.floats("norm.bias", {3}, {4, 5, 6});
  model.floats("norm.running_mean", {3}, {7, 8, 9});
  model.floats("norm.running_var", {3}, {1, 3, 2});
  model.node("Sqrt", {"norm.running_var"}, {"deviation"}, "/norm/Sqrt");
  model.node("Div", {"norm.weight", "deviation"}, {"scale"}, "/norm/Div");
  model.node("Sub", {"x", "norm.running_mean"}, {"a"}, "/norm/Sub");
  model.node("Mul", {"a", "scale"}, {"b"}, "/norm/Mul");
  model.node("Add", {"b", "norm.bias"}, {"y"}, "/norm/Add");
  Named names = named(model);
  EXPECT_EQ(names["norm.running_mean"].kind, TensorKind::Buffer);
  EXPECT_EQ(names["norm.running_var"].kind, TensorKind::Buffer);
  EXPECT_EQ(names["norm.weight"].kind, TensorKind::Parameter);
  EXPECT_EQ(names.notes, "2 tensors are trained, and may be buffers, which this exporter does not "
                         "tell: --names can say kind = \"buffer\": 'norm.weight', 'norm.bias'\n");
}

TEST(LegacyFolds, ATranspositionOfAParameterIsThatParameter) {
  // tanh(x @ w.t()) @ w; an identity equals its transposition in any two modules.
  for (bool drawn : {true, false}) {
    std::vector<float> values = drawn ? kSquare : std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1};
    std::vector<float> turned = drawn ? std::vector<float>{1, 4, 7, 2, 5, 8, 3, 6, 9} : values;
    ModelBuilder model = onVectors();
    model.floats("part0.w", {3, 3}, values);
    model.floats("onnx::MatMul_9", {3, 3}, turned);
    model.node("MatMul", {"x", "onnx::MatMul_9"}, {"p"}, "/part0/MatMul");
    model.node("Tanh", {"p"}, {"t"}, "/part0/Tanh");
    model.node("MatMul", {"t", "part0.w"}, {"y"}, "/part0/MatMul_1");
    Named names = named(model);
    EXPECT_EQ(names["onnx::MatMul_9"].isCopy, drawn);
    EXPECT_EQ(names.table.states.size(), drawn ? 1u : 2u);
    if (drawn)
      EXPECT_THAT(names.notes, HasSubstr("'onnx::MatMul_9' and 'part0.w' have the same values"));
  }
}

TEST(LegacyFolds, TheTranspositionInACopyOfTheLayerIsSeparate) {
  // One layer is used on rows of two dimensions, its copy on three: "Identity_0" shows the copy.
  ModelBuilder model = onVectors();
  model.floats("a.weight", {3, 3}, kSquare);
  model.floats("a.bias", {3}, {1, 2, 3});
  model.floats("onnx::MatMul_9", {3, 3}, {1, 4, 7, 2, 5, 8, 3, 6, 9});
  model.node("Identity", {"a.bias"}, {"b.bias"}, "Identity_0");
  ModelBuilder::setInt(model.node("Gemm", {"x", "a.weight", "a.bias"}, {"h"}, "/a/Gemm"), "transB",
                       1);
  model.node("MatMul", {"h", "onnx::MatMul_9"}, {"p"}, "/b/MatMul");
  model.node("Add", {"b.bias", "p"}, {"y"}, "/b/Add");
  Named names = named(model);
  EXPECT_EQ(names["onnx::MatMul_9"].name, "b.weight");
  EXPECT_FALSE(names["onnx::MatMul_9"].isCopy);
  EXPECT_THAT(names.notes, HasSubstr("in layers that are copies: they are separate here"));
}

TEST(LegacyFolds, AFreshNormWhoseMeanWasMergedCountsItsBatches) {
  ModelBuilder model = onVectors();
  model.floats("norm.weight", {3}, {1, 1, 1});
  model.floats("norm.bias", {3}, {0, 0, 0});
  model.node("Identity", {"norm.bias"}, {"norm.running_mean"}, "Identity_0");
  model.node("Identity", {"norm.weight"}, {"norm.running_var"}, "Identity_1");
  model.node("BatchNormalization",
             {"x", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"}, {"y"},
             "/norm/BatchNormalization");
  Named names = named(model);
  EXPECT_EQ(names["norm.running_mean"].name, "norm.running_mean");
  EXPECT_EQ(names["norm.num_batches_tracked"].kind, TensorKind::Buffer);
}

} // namespace
} // namespace titan::frontend
