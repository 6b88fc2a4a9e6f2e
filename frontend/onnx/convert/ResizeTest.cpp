// Resize: repetition, products with a constant matrix, refusals.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class ResizeTest : public testing::ImportFixture {
protected:
  std::string importResize(const std::vector<int64_t>& sizes, const std::string& mode,
                           const std::string& coordinates = "half_pixel",
                           const std::string& nearest = "round_prefer_floor") {
    ModelBuilder model;
    model.input("x", {-1, 2, 4}).output("y").integers("sizes", sizes);
    auto& node = model.node("Resize", {"x", "", "", "sizes"}, {"y"});
    ModelBuilder::setText(node, "mode", mode);
    ModelBuilder::setText(node, "coordinate_transformation_mode", coordinates);
    ModelBuilder::setText(node, "nearest_mode", nearest);
    return import(model);
  }
};

TEST_F(ResizeTest, WholeRepetitionIsABroadcast) {
  std::string text = importResize({8, 2, 12}, "nearest", "asymmetric", "floor");
  EXPECT_HAS(text, "titan.broadcast");
  EXPECT_HAS(text, "tensor<8x2x4x3xf32>");
  EXPECT_LACKS(text, "titan.contract");
}

TEST_F(ResizeTest, WeightsAreAConstantMatrix) {
  std::string text = importResize({8, 2, 2}, "linear");
  EXPECT_HAS(text, "dense<[[5.000000e-01, 5.000000e-01, 0.000000e+00, 0.000000e+00], "
                   "[0.000000e+00, 0.000000e+00, 5.000000e-01, 5.000000e-01]]>");
  EXPECT_HAS(text, "(tensor<8x2x4xf32>, tensor<2x4xf32>) -> tensor<8x2x2xf32>");
}

TEST_F(ResizeTest, AlignedCornersOfPyTorchAreThoseOfTheResult) {
  const auto resize = [&](const std::string& producer) {
    ModelBuilder model;
    model.model.set_producer_name(producer);
    model.input("x", {-1, 2, 3}).output("y").floats("scales", {3}, {1, 1, 1.5f});
    auto& node = model.node("Resize", {"x", "", "scales"}, {"y"});
    ModelBuilder::setText(node, "mode", "linear");
    ModelBuilder::setText(node, "coordinate_transformation_mode", "align_corners");
    return import(model);
  };
  // 4 elements, of 4.5: ONNX counts the half.
  EXPECT_HAS(resize("pytorch"), "[0.000000e+00, 0.000000e+00, 1.000000e+00]]>");
  EXPECT_HAS(resize("keras2onnx"), "[0.000000e+00, 0.285714298, 0.714285731]]>");
}

TEST_F(ResizeTest, WhatKeepsItsExtentStays) {
  EXPECT_LACKS(importResize({8, 2, 4}, "cubic"), "titan.contract");
}

TEST_F(ResizeTest, RefusesWhatHasNoMeaning) {
  EXPECT_HAS(importResize({8, 2, 0}, "linear"), "size 0 of dimension 2 with extent 4");
  EXPECT_HAS(importResize({2, 8}, "linear"), "2 sizes for 3 dimensions");
  EXPECT_HAS(importResize({8, 2, 8}, "lanczos"), "mode = 'lanczos' is not supported");
  EXPECT_HAS(importResize({8, 2, 8}, "linear", "tf_crop_and_resize"),
             "coordinate_transformation_mode = 'tf_crop_and_resize' is not supported");
  EXPECT_HAS(importResize({8, 2, 8}, "nearest", "half_pixel", "up"), "nearest_mode = 'up'");
}

TEST_F(ResizeTest, RefusesScalesThatLeaveNothing) {
  ModelBuilder model;
  model.input("x", {-1, 2, 4}).output("y").floats("scales", {3}, {1, 1, 0.1f});
  model.node("Resize", {"x", "", "scales"}, {"y"});
  EXPECT_HAS(import(model), "leaves nothing of dimension 2 with extent 4");
}

} // namespace
} // namespace titan::frontend
