// Updates by index and sorted rows; what is refused of them.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

constexpr int32_t kFloat = ::onnx::TensorProto::FLOAT, kInt64 = ::onnx::TensorProto::INT64;

class ScatterTest : public testing::ImportFixture {
protected:
  struct Scatter {
    std::vector<int64_t> data, indices, updates;
    std::string reduction = "none";
    int64_t axis = 0;
    int32_t dataType = kFloat, updateType = kFloat;
  };

  std::string importScatter(const std::string& op, const Scatter& s) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", s.data, s.dataType).input("i", s.indices, kInt64);
    model.input("u", s.updates, s.updateType).output("y");
    auto& node = model.node(op, {"x", "i", "u"}, {"y"}, "n");
    ModelBuilder::setText(node, "reduction", s.reduction.c_str());
    if (op != "ScatterND")
      ModelBuilder::setInt(node, "axis", s.axis);
    return import(model);
  }
};

TEST_F(ScatterTest, ElementsKeepTheirBatch) {
  std::string text = importScatter("ScatterElements", {.data = {-1, 5, 3},
                                                       .indices = {-1, 4, 3},
                                                       .updates = {-1, 4, 3},
                                                       .reduction = "add",
                                                       .axis = 1});
  EXPECT_HAS(text, "add %arg0, %arg1, %arg2 dim 1");
  EXPECT_HAS(text, "-> tensor<8x5x3xf32>");
}

TEST_F(ScatterTest, WhatNoUpdateReachesIsJoinedAgain) {
  std::string text =
      importScatter("ScatterElements",
                    {.data = {-1, 5, 3}, .indices = {-1, 4, 2}, .updates = {-1, 4, 2}, .axis = 1});
  EXPECT_HAS(text, "tensor<8x5x2xf32>, tensor<8x4x2xi64>, tensor<8x4x2xf32>) -> tensor<8x5x2xf32>");
  EXPECT_HAS(text, "titan.concat");
}

TEST_F(ScatterTest, TuplesArePlacesInTheLeadingDimensions) {
  recipe_.batch.micro = 2;
  std::string text = importScatter(
      "ScatterND",
      {.data = {2, 5, 3}, .indices = {2, 4, 2}, .updates = {2, 4, 3}, .reduction = "max"});
  EXPECT_HAS(text, "titan.scatter");
  EXPECT_HAS(text, "(tensor<10x3xf32>, tensor<8xi64>, tensor<8x3xf32>) -> tensor<10x3xf32>");
}

TEST_F(ScatterTest, KnownIndicesThatNothingHasAreRefused) {
  const auto scatter = [&](const char* op, const Shape& shape, std::vector<int64_t> indices) {
    ModelBuilder model;
    model.input("x", {2, 5}).input("u", {2}).output("y");
    auto& tensor = model.integers("i", indices);
    tensor.clear_dims();
    for (int64_t extent : shape)
      tensor.add_dims(extent);
    model.integers("shape", {1, 2});
    model.node("Reshape", {"u", "shape"}, {"row"});
    const bool isTuple = std::string_view(op) == "ScatterND";
    model.node(op, {"x", "i", isTuple ? "u" : "row"}, {"y"}, "n");
    return import(model);
  };
  recipe_.batch.micro = 2;
  EXPECT_HAS(scatter("ScatterND", {2, 2}, {1, 4, 0, -5}), "titan.scatter");
  EXPECT_HAS(scatter("ScatterND", {2, 2}, {2, 4, 0, 0}), "(ScatterND): index 2 is outside of 2");
  EXPECT_HAS(scatter("ScatterND", {2, 2}, {1, -6, 0, 0}), "(ScatterND): index -6 is outside of 5");
  EXPECT_HAS(scatter("ScatterElements", {1, 2}, {0, 2}),
             "(ScatterElements): index 2 is outside of 2");
}

TEST_F(ScatterTest, RefusesWhatDoesNotFit) {
  recipe_.batch.micro = 2;
  Scatter fits = {.data = {2, 5}, .indices = {2, 4}, .updates = {2, 4}, .axis = 1}, other = fits;
  other.updates = {2, 3};
  EXPECT_HAS(importScatter("ScatterElements", other),
             "indices of [2, 4] and updates of [2, 3] for data of [2, 5]");
  other = fits;
  other.updates = {2};
  EXPECT_HAS(importScatter("ScatterND", other),
             "indices of [2, 4] and updates of [2] for data of [2, 5]");
  other = fits;
  other.reduction = "mean";
  EXPECT_HAS(importScatter("ScatterElements", other), "reduction = 'mean' is not known");
  other = fits;
  other.updateType = kInt64;
  EXPECT_HAS(importScatter("ScatterElements", other),
             "updates must have the element type of the data");
  other = fits;
  other.dataType = other.updateType = ::onnx::TensorProto::BOOL;
  other.reduction = "add";
  EXPECT_HAS(importScatter("ScatterElements", other), "booleans are replaced only");
}

TEST_F(ScatterTest, RefusesTheMeanThatTheExporterLeftOut) {
  const auto scatter = [&](const char* reduction) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", {-1, 5}).input("i", {-1, 4}, kInt64).input("u", {-1, 4}).output("y");
    auto& node = model.node("ScatterElements", {"x", "i", "u"}, {"y"}, "n");
    ModelBuilder::setInt(node, "axis", 1);
    ModelBuilder::setSource(node, "", "scatter_reduce.two",
                            std::string("%x, 1, %i, %u, ") + reduction);
    return import(model);
  };
  EXPECT_HAS(scatter("mean"), "node 'n' (ScatterElements): the mean of updates (scatter_reduce of "
                              "the source) is not in the file");
  EXPECT_HAS(scatter("sum"), "titan.scatter");
}

/// The data, zeros for them with the updates, and the sum: `op` says how the exporter wrote it.
TEST_F(ScatterTest, SumsOfRepeatedIndicesThatTheExporterLeftOutAreNoted) {
  const auto notesOfSum = [&](const char* reduction, const char* op) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", {2, 5}).input("i", {2, 1}, kInt64).input("u", {2, 5}).output("y");
    model.node("Shape", {"x"}, {"shape"});
    model.node("ConstantOfShape", {"shape"}, {"zeros"});
    auto& scatter = model.node("ScatterND", {"zeros", "i", "u"}, {"updated"}, "n");
    ModelBuilder::setText(scatter, "reduction", reduction);
    model.node(op, {"x", "updated"}, {"y"});
    return notes(model);
  };
  EXPECT_EQ(notesOfSum("none", "Add"),
            std::vector<std::string>{
                "node 'n' (ScatterND) may have been index_put(accumulate=True), index_add or "
                "scatter_add, whose repeated indices PyTorch's legacy exporter does not sum: the "
                "last of them counts"});
  EXPECT_TRUE(notesOfSum("add", "Add").empty());
  EXPECT_TRUE(notesOfSum("none", "Mul").empty());
}

void addTopK(ModelBuilder& model, int64_t k, int64_t axis) {
  model.input("x", {-1, 4, 3}).output("v").output("i").integers("k", {k});
  auto& node = model.node("TopK", {"x", "k"}, {"v", "i"}, "n");
  ModelBuilder::setInt(node, "axis", axis);
  ModelBuilder::setInt(node, "largest", 0);
}

TEST_F(ScatterTest, AnotherAxisIsSortedAsTheLast) {
  ModelBuilder model;
  addTopK(model, 2, 1);
  std::string text = import(model);
  EXPECT_HAS(text, "titan.top_k %0 smallest");
  EXPECT_HAS(text, "(tensor<8x3x4xf32>) -> (tensor<8x3x2xf32>, tensor<8x3x2xi64>)");
  EXPECT_HAS(text, "tensor<8x3x2xi64> to tensor<8x2x3xi64>");
}

TEST_F(ScatterTest, TakesNoMoreThanThereIs) {
  ModelBuilder model;
  addTopK(model, 5, 1);
  EXPECT_HAS(import(model), "node 'n' (TopK): takes 5 elements of 4");
}

} // namespace
} // namespace titan::frontend
