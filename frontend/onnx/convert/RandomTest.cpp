// Sources of random numbers: what each becomes, and what each refusal says.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class RandomTest : public testing::ImportFixture {
protected:
  /// The sum of x [8, 3] and what a node without inputs draws.
  static ModelBuilder source(const char* op, const std::vector<int64_t>& shape) {
    ModelBuilder model;
    model.input("x", {8, 3}).output("y");
    auto& node = model.node(op, {}, {"n"}, "noise");
    ModelBuilder::setInts(node, "shape", shape);
    model.node("Add", {"x", "n"}, {"y"});
    return model;
  }
  static onnx::NodeProto& noise(ModelBuilder& model) {
    return *model.model.mutable_graph()->mutable_node(0);
  }
};

TEST_F(RandomTest, NumbersAreScaled) {
  ModelBuilder normal = source("RandomNormal", {8, 3});
  ModelBuilder::setFloat(noise(normal), "mean", 2);
  ModelBuilder::setFloat(noise(normal), "scale", 0.5);
  const std::string text = import(normal);
  EXPECT_HAS(text, "normal stream");
  EXPECT_HAS(text, "dense<5.000000e-01>");
  EXPECT_HAS(text, "dense<2.000000e+00>");

  ModelBuilder uniform = source("RandomUniform", {3});
  ModelBuilder::setFloat(noise(uniform), "low", -1);
  const std::string shifted = import(uniform);
  EXPECT_HAS(shifted, "uniform stream");
  EXPECT_HAS(shifted, "dense<2.000000e+00>");  // high - low
  EXPECT_HAS(shifted, "dense<-1.000000e+00>"); // low
}

// A scalar is drawn as a vector of one: the numbers of microbatches are stacked.
TEST_F(RandomTest, AScalarHasADimension) {
  ModelBuilder model;
  model.input("x", {8, 3}).output("y").floats("like", {}, {0});
  model.node("RandomNormalLike", {"like"}, {"n"});
  model.node("Add", {"x", "n"}, {"y"});
  EXPECT_HAS(import(model), ": tensor<1xf32>");
}

TEST_F(RandomTest, RefusesNumbersThatAreNone) {
  ModelBuilder typed = source("RandomNormal", {8, 3});
  ModelBuilder::setInt(noise(typed), "dtype", 7);
  EXPECT_HAS(import(typed), "node 'noise' (RandomNormal): draws numbers that are no floats");
  EXPECT_HAS(import(source("RandomUniform", {8, 0})),
             "node 'noise' (RandomUniform): draws numbers of shape [8, 0]");
}

TEST_F(RandomTest, ANoteNamesWhatDrawsInEvaluation) {
  Graph graph = parseGraph(source("RandomNormal", {8, 3}).bytes(), "m.onnx", "").take();
  auto module = importGraph(context_, graph, nameTensors(graph).take(), recipe_);
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(notesOfModule(**module),
            std::vector<std::string>{"node 'noise' draws random numbers, in evaluation too, there "
                                     "with seed and step 0"});
}

} // namespace
} // namespace titan::frontend
