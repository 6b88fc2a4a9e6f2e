// Norms of groups and instances: what each becomes, and what each refusal says.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class NormalizationTest : public testing::ImportFixture {
protected:
  /// A norm of groups of `x`, with a scale and a bias of `extent` elements.
  std::string importGroups(int64_t opset, const std::vector<int64_t>& x, int64_t groups,
                           int64_t extent) {
    ModelBuilder model(opset);
    model.input("x", x).output("y");
    const auto count = static_cast<size_t>(extent);
    model.floats("scale", {extent}, std::vector<float>(count, 0.5f));
    model.floats("bias", {extent}, std::vector<float>(count, 0.25f));
    auto& node = model.node("GroupNormalization", {"x", "scale", "bias"}, {"y"});
    ModelBuilder::setInt(node, "num_groups", groups);
    return import(model);
  }

  /// A norm of instances of a view of `x`, with a scale of equal numbers and a bias of zeros;
  /// `back` is the shape of the result.
  static ModelBuilder instances(const std::vector<int64_t>& x, const std::vector<int64_t>& view,
                                const std::vector<int64_t>& back, float scale = 1) {
    ModelBuilder model;
    model.input("x", x).output("y");
    model.integers("view", view);
    model.integers("back", back);
    model.integers("count", {view[1]});
    model.floats("one", {}, {scale});
    model.floats("zero", {}, {0});
    model.node("Reshape", {"x", "view"}, {"v"});
    model.node("Expand", {"one", "count"}, {"scale"});
    model.node("Expand", {"zero", "count"}, {"bias"});
    model.node("InstanceNormalization", {"v", "scale", "bias"}, {"n"});
    model.node("Reshape", {"n", "back"}, {"y"});
    return model;
  }
};

TEST_F(NormalizationTest, GroupsAreADimension) {
  std::string text = importGroups(21, {-1, 6, 4, 5}, 3, 6);
  EXPECT_HAS(text, "over [2, 3, 4] epsilon 1.000000e-05");
  EXPECT_HAS(text, "(tensor<8x3x2x4x5xf32>) -> (tensor<8x3x2x4x5xf32>, tensor<8x3xf32>");
  EXPECT_HAS(text, "titan.state @scale : tensor<6xf32>");
}

TEST_F(NormalizationTest, OneGroupAndGroupsOfOneNeedNoDimension) {
  EXPECT_HAS(importGroups(21, {-1, 6, 4, 5}, 1, 6), "over [1, 2, 3]");
  std::string text = importGroups(21, {-1, 6, 4, 5}, 6, 6);
  EXPECT_HAS(text, "over [2, 3]");
  EXPECT_LACKS(text, "titan.reshape");
}

TEST_F(NormalizationTest, OlderOpsetsScaleByGroup) {
  std::string text = importGroups(18, {-1, 6, 4}, 3, 3);
  EXPECT_HAS(text, "titan.state @scale : tensor<3xf32>");
  EXPECT_HAS(text, "titan.broadcast %arg0 [0]");
  EXPECT_HAS(text, "tensor<3xf32> to tensor<3x2xf32>");
  EXPECT_HAS(importGroups(18, {-1, 6, 4}, 3, 6), "operand 1 of shape [6], where 3 elements are");
  EXPECT_HAS(importGroups(21, {-1, 6, 4}, 3, 3), "operand 1 of shape [3], where 6 elements are");
}

TEST_F(NormalizationTest, BadGroupsAreRefused) {
  EXPECT_HAS(importGroups(21, {-1, 6, 4}, 4, 6), "6 channels in 4 groups");
  EXPECT_HAS(importGroups(21, {-1, 6, 4}, 0, 6), "6 channels in 0 groups");
  EXPECT_HAS(importGroups(21, {-1, 6}, 6, 6),
             "an operand of shape [8, 6] in 6 groups has 1 element for each, of which there is no "
             "statistic");
  EXPECT_HAS(importGroups(21, {6}, 2, 6), "operand of shape [6] has no channels");
}

TEST_F(NormalizationTest, InstancesOfAViewAreGroups) {
  std::string text = import(instances({-1, 6, 4, 5}, {0, 3, -1}, {0, 6, 4, 5}));
  EXPECT_HAS(text, "over [2, 3, 4]");
  EXPECT_HAS(text, "(tensor<8x3x2x4x5xf32>)");
  EXPECT_LACKS(text, "titan.mul");
  EXPECT_LACKS(text, "titan.add");
}

TEST_F(NormalizationTest, InstancesOfAnotherViewAreTheirOwn) {
  // Its rows are no groups of channels.
  std::string text = import(instances({-1, 4, 6, 5}, {0, 3, -1}, {0, 4, 6, 5}));
  EXPECT_HAS(text, "over [2]");
  EXPECT_HAS(text, "(tensor<8x3x40xf32>)");
}

TEST_F(NormalizationTest, AScaleOfAViewIsKept) {
  EXPECT_HAS(import(instances({-1, 6, 4, 5}, {0, 3, -1}, {0, 6, 4, 5}, 2)), "titan.mul");
}

TEST_F(NormalizationTest, InstancesNeedSpace) {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y");
  model.floats("s", {3}, {1, 2, 3});
  model.node("InstanceNormalization", {"x", "s", "s"}, {"y"});
  EXPECT_HAS(import(model), "operand of shape [8, 3] has no space dimensions");
}

TEST_F(NormalizationTest, MeanAndVarianceOverAxes) {
  for (auto [axes, dims] :
       {std::pair(std::vector<int64_t>{}, "over [0, 2, 3]"), {{-1, 1}, "over [1, 3]"}}) {
    ModelBuilder model;
    model.input("x", {-1, 3, 4, 5}).output("y");
    auto& node = model.node("MeanVarianceNormalization", {"x"}, {"y"});
    if (!axes.empty())
      ModelBuilder::setInts(node, "axes", axes);
    EXPECT_HAS(import(model), dims);
  }
}

// The TorchScript exporter tells no buffers from parameters.
TEST_F(NormalizationTest, TheBiasOfANormOfImagesIsNoBuffer) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 2, 3}).output("y");
  model.floats("n.weight", {2, 3}, std::vector<float>(6, 1));
  model.floats("n.bias", {2, 3}, std::vector<float>(6, 0));
  auto& node = model.node("LayerNormalization", {"x", "n.weight", "n.bias"}, {"y"}, "/n/Norm");
  ModelBuilder::setInt(node, "axis", -2);
  EXPECT_TRUE(notes(model).empty());
}

TEST_F(NormalizationTest, RunningStatisticsOfInstancesAreRefused) {
  ModelBuilder model;
  model.input("x", {-1, 2, 5}).output("y");
  model.integers("view", {1, -1, 5});
  model.integers("back", {-1, 2, 5});
  model.floats("v", {2}, {1, 2});
  model.integers("eight", {8});
  model.node("Reshape", {"x", "view"}, {"samples"});
  model.node("Tile", {"v", "eight"}, {"t"});
  model.node("BatchNormalization", {"samples", "t", "t", "t", "t"}, {"n"});
  model.node("Reshape", {"n", "back"}, {"y"});
  EXPECT_HAS(import(model), "a norm of instances with running statistics (track_running_stats) is "
                            "not supported");
}

TEST_F(NormalizationTest, EvaluationWithoutRunningStatisticsIsNoted) {
  ModelBuilder model;
  model.input("x", {-1, 2, 5}).output("y");
  model.floats("norm.weight", {2}, {1, 2});
  model.floats("norm.bias", {2}, {1, 2});
  auto& node = model.node("InstanceNormalization", {"x", "norm.weight", "norm.bias"}, {"y"}, "n");
  ModelBuilder::setSource(node, "norm", "instance_norm.default",
                          "%x, %p_norm_weight, %p_norm_bias, %b_norm_running_mean, "
                          "%b_norm_running_var, True, 0.1, 1e-05, True");
  const std::string note = "node 'n' (InstanceNormalization) normalises by each instance in "
                           "evaluation too: the running statistics, which PyTorch takes after "
                           "eval(), are not in the file";
  EXPECT_TRUE(llvm::is_contained(notes(model), note));
}

} // namespace
} // namespace titan::frontend
