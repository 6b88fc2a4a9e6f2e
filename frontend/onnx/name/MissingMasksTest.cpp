// Which tensors without data are taken for causal masks, and which values those get.
#include "frontend/onnx/name/MissingMasks.h"
#include "frontend/onnx/Import.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Graph completed(const ModelBuilder& model, const NameOverrides& overrides = {}) {
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  EXPECT_TRUE(completeMasks(graph, overrides, /*fresh=*/true).ok());
  return graph;
}

/// Its values; none: it still has no data.
std::vector<float> valuesOf(const Graph& graph, const std::string& name) {
  const Tensor& tensor = graph.initializers.at(name);
  std::vector<float> values;
  if (!tensor.missing.empty())
    return values;
  HostTensor host = toHost(tensor).take();
  for (int64_t i = 0; i < host.size(); ++i)
    values.push_back(static_cast<float>(host.real(i)));
  return values;
}

const std::vector<float> kAttended = {1, 0, 0, 1, 1, 0, 1, 1, 1};
const std::vector<float> kMasked = {0, 1, 1, 0, 0, 1, 0, 0, 0};
const std::vector<float> kAdded = {0, -kInfinity, -kInfinity, 0, 0, -kInfinity, 0, 0, 0};

/// scores -> masked_fill(mask == 0, -inf), with the mask's values in a missing file.
Graph filled(bool inverted, const std::string& extraUse = "") {
  ModelBuilder model;
  model.input("x", {-1, 3, 3}).output("y");
  model.external("attn.bias", {1, 3, 3}, "missing.data");
  model.floats("zero", {}, {0}).clear_dims();
  model.floats("low", {}, {-1e9f}).clear_dims();
  model.node("Equal", {"attn.bias", "zero"}, {"c"});
  model.node("Where",
             inverted ? std::vector<std::string>{"c", "x", "low"}
                      : std::vector<std::string>{"c", "low", "x"},
             {extraUse.empty() ? "y" : "w"});
  if (!extraUse.empty())
    model.node(extraUse, {"w", "attn.bias"}, {"y"});
  return completed(model);
}

TEST(MissingMasks, UseTellsTheValues) {
  EXPECT_EQ(valuesOf(filled(false), "attn.bias"), kAttended);
  EXPECT_EQ(valuesOf(filled(true), "attn.bias"), kMasked);
}

TEST(MissingMasks, ATensorThatIsUsedOtherwiseStaysMissing) {
  EXPECT_EQ(valuesOf(filled(false, "Mul"), "attn.bias"), std::vector<float>());
}

/// `steps` from the values that "mask" of 3 x 3 masks, "x", to the result "y".
ModelBuilder added(void (*steps)(ModelBuilder&), const std::string& signature) {
  ModelBuilder model(23);
  model.input("x", {-1, 3, 3}).output("y");
  model.external("mask", {3, 3}, "missing.data");
  steps(model);
  if (!signature.empty()) {
    model.signature(signature);
  }
  return model;
}

void beforeSoftmax(ModelBuilder& model) {
  model.floats("scale", {}, {0.5f}).clear_dims();
  model.node("Add", {"x", "mask"}, {"a"});
  model.node("Mul", {"a", "scale"}, {"b"});
  model.node("Softmax", {"b"}, {"y"});
}
void besideSoftmax(ModelBuilder& model) {
  model.node("Add", {"x", "mask"}, {"a"});
  model.node("Softmax", {"a"}, {"b"});
  model.node("Add", {"a", "b"}, {"y"});
}
void beforeProduct(ModelBuilder& model) {
  model.node("Add", {"x", "mask"}, {"a"});
  model.node("MatMul", {"a", "x"}, {"b"});
  model.node("Softmax", {"b"}, {"y"});
}
void intoAttention(ModelBuilder& model) {
  model.node("Unsqueeze", {"x", "axis"}, {"h"});
  model.integers("axis", {1});
  model.node("Attention", {"h", "h", "h", "mask"}, {"y"});
}

const char* const kBuffer = "b_mask: BUFFER target='mask' persistent=True\n";
const char* const kParameter = "p_mask: PARAMETER target='mask'\n";
const char* const kOther = "p_other: PARAMETER target='other'\n";

TEST(MissingMasks, WhatIsAddedIsAMaskOnlyWhereItIsABufferOfScores) {
  EXPECT_EQ(valuesOf(completed(added(beforeSoftmax, kBuffer)), "mask"), kAdded);
  EXPECT_EQ(valuesOf(completed(added(intoAttention, kBuffer)), "mask"), kAdded);
  for (auto steps : {besideSoftmax, beforeProduct})
    EXPECT_EQ(valuesOf(completed(added(steps, kBuffer)), "mask"), std::vector<float>());
  for (const char* signature : {kParameter, kOther})
    for (auto steps : {beforeSoftmax, besideSoftmax, beforeProduct, intoAttention}) {
      Graph graph = completed(added(steps, signature));
      EXPECT_EQ(valuesOf(graph, "mask"), std::vector<float>());
      EXPECT_FALSE(graph.initializers.at("mask").perhapsMask);
    }
}

TEST(MissingMasks, WithoutMetadataTheUserSaysWhatIsAdded) {
  for (auto steps : {beforeSoftmax, intoAttention}) {
    Graph graph = completed(added(steps, ""));
    EXPECT_EQ(valuesOf(graph, "mask"), std::vector<float>());
    EXPECT_TRUE(graph.initializers.at("mask").perhapsMask);
    NameOverrides mask = parseNamesFile("[mask]\nkind = \"causal_mask\"\n", "map.toml").take();
    EXPECT_EQ(valuesOf(completed(added(steps, ""), mask), "mask"), kAdded);
    NameOverrides bias = parseNamesFile("[mask]\nkind = \"parameter\"\n", "map.toml").take();
    graph = completed(added(steps, ""), bias);
    EXPECT_EQ(valuesOf(graph, "mask"), std::vector<float>());
    EXPECT_FALSE(graph.initializers.at("mask").perhapsMask);
  }
  EXPECT_FALSE(completed(added(beforeProduct, "")).initializers.at("mask").perhapsMask);
}

TEST(MissingMasks, AStatedMaskMustBeOne) {
  NameOverrides mask = parseNamesFile("[mask]\nkind = \"causal_mask\"\n", "map.toml").take();
  auto errorOf = [&](const ModelBuilder& model) {
    Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
    Status status = completeMasks(graph, mask, /*fresh=*/false);
    return status.ok() ? std::string() : status.error().message();
  };
  EXPECT_NE(errorOf(added(beforeProduct, "")).find("is no causal mask"), std::string::npos);
  ModelBuilder wide;
  wide.input("x", {-1, 3, 4}).output("y").node("Add", {"x", "mask"}, {"a"});
  wide.node("Softmax", {"a"}, {"y"});
  wide.external("mask", {3, 4}, "missing.data");
  EXPECT_NE(errorOf(wide).find("one square matrix"), std::string::npos);
  ModelBuilder there;
  there.input("x", {-1, 2, 2}).output("y").node("Add", {"x", "mask"}, {"a"});
  there.node("Softmax", {"a"}, {"y"});
  there.floats("mask", {2, 2}, {0, 1, 0, 0});
  EXPECT_NE(errorOf(there).find("has data"), std::string::npos);
}

/// The exports of a module that adds three square matrices: positions, a bias of scores, a mask.
class Squares : public ::testing::Test {
protected:
  Result<std::string> import(const std::string& way, const std::string& names = "") {
    recipe_.model.init = "fresh";
    ImportOptions options;
    if (!names.empty()) {
      options.namesFile = ::testing::TempDir() + "squares-names.toml";
      std::FILE* file = std::fopen(options.namesFile.c_str(), "w");
      std::fputs(names.c_str(), file);
      std::fclose(file);
    }
    ImportReport report;
    auto module =
        TITAN_TRY(importOnnx(context_, std::string(TITAN_TEST_INPUTS) + "/squares-" + way + ".onnx",
                             recipe_, options, report));
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    return text;
  }
  /// The names of the trained states, and whether attention is causal.
  static void expectTrained(const std::string& text) {
    for (const char* name : {"@pos_emb : tensor<5x5xf32>", "@score_bias : tensor<5x5xf32>",
                             "@head.weight", "@head.bias"})
      EXPECT_NE(text.find(std::string("titan.state ") + name), std::string::npos) << text;
    EXPECT_EQ(text.find("titan.state @mask"), std::string::npos) << text;
    EXPECT_NE(text.find(" causal "), std::string::npos) << text;
  }

  mlir::MLIRContext context_;
  Recipe recipe_; ///< batch.micro = 8
};

TEST_F(Squares, TorchExportSaysWhichIsTheMask) {
  for (const char* way : {"dynamo-18", "dynamo-23"}) {
    Result<std::string> text = import(way);
    ASSERT_TRUE(text.ok()) << text.error().message();
    expectTrained(*text);
  }
}

TEST_F(Squares, LegacyExportsLeaveItToTheUser) {
  Result<std::string> refused = import("legacy");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find(
                "added to attention scores: 'score_bias' [5, 5], 'mask' [5, 5]:"),
            std::string::npos);
  EXPECT_NE(refused.error().message().find("kind = \"causal_mask\""), std::string::npos);
  Result<std::string> text = import("legacy", "[mask]\nkind = \"causal_mask\"\n"
                                              "[score_bias]\nkind = \"parameter\"\n");
  ASSERT_TRUE(text.ok()) << text.error().message();
  expectTrained(*text);
}

} // namespace
} // namespace titan::frontend
