// What optimizers fold of rows and states that each sample repeats.
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/testing/NamedGraph.h"

namespace titan::frontend {
namespace {

using testing::graphOf;
using testing::ModelBuilder;

/// A model whose optimizer looked up positions, which are added to tokens.
NameTable namesWithFolded(const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<float>& values) {
  ModelBuilder model;
  model.input("x", {2, 2}, ::onnx::TensorProto::INT64).output("y");
  model.floats(name, shape, values);
  model.floats("tok.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  model.node("Gather", {"tok.weight", "x"}, {"h"});
  model.node("Add", {"h", name}, {"y"});
  Graph graph = graphOf(model);
  graph.signature = Signature::parse("p_pos_weight: PARAMETER target='pos.weight'\n"
                                     "p_tok_weight: PARAMETER target='tok.weight'\n");
  shareRepeatedSamples(graph);
  return nameTensors(graph).take();
}

TEST(RepeatedSamples, WhatWasTakenOutOfAParameterIsAPart) {
  for (const char* op : {"embedding", "embedding_1", "unsqueeze", "slice_3", "index"}) {
    NameTable table = namesWithFolded(op, {1, 2, 2}, {1, 2, 3, 4});
    EXPECT_EQ(table.tensors[0].name, "add_0.weight") << op;
    EXPECT_EQ(table.tensors[0].partOf, (std::vector<std::string>{"pos.weight"})) << op;
  }
  NameTable computed = namesWithFolded("mul_1", {1, 2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(computed.tensors[0].isPart);
  EXPECT_TRUE(computed.tensors[0].partOf.empty());
}

TEST(RepeatedSamples, RowsThatAreRepeatedForEverySampleAreOneSample) {
  NameTable equal = namesWithFolded("embedding", {2, 2, 2}, {1, 2, 3, 4, 1, 2, 3, 4});
  EXPECT_EQ(equal.states[0].shape, (Shape{1, 2, 2}));
  NameTable different = namesWithFolded("embedding", {2, 2, 2}, {1, 2, 3, 4, 1, 2, 3, 5});
  EXPECT_EQ(different.states[0].shape, (Shape{2, 2, 2}));
}

TEST(RepeatedSamples, AsManyEqualChannelsAsSamplesAreChannels) {
  ModelBuilder model;
  model.input("x", {2, 2, 3, 3}).output("y").floats("val_21", {2, 1, 1}, {1, 1});
  model.node("Mul", {"x", "val_21"}, {"y"});
  Graph graph = graphOf(model);
  graph.signature = Signature::parse("p_norm_weight: PARAMETER target='norm.weight'\n");
  shareRepeatedSamples(graph);
  EXPECT_EQ(graph.initializers.at("val_21").shape, (Shape{2, 1, 1}));
}

/// The graph of torch.export in which `name`, which it folded, is joined with an input of 2
/// samples.
Graph joinedWithFolded(const std::string& name, const std::vector<int64_t>& shape,
                       const std::vector<float>& values) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").floats(name, shape, values);
  model.node("Concat", {name, "x"}, {"y"});
  Graph graph = graphOf(model);
  graph.signature = Signature::parse("p_token: PARAMETER target='token'\n");
  shareRepeatedSamples(graph);
  return graph;
}

TEST(RepeatedSamples, RepeatedSamplesOfRepeatedRowsAreBroadcastAsFarAsTheirReadersNeed) {
  ModelBuilder model;
  model.input("x", {2, 3, 2}).output("y");
  model.floats("mul_1", {2, 3, 2}, {.1F, .2F, .1F, .2F, .1F, .2F, .1F, .2F, .1F, .2F, .1F, .2F});
  model.node("Add", {"x", "mul_1"}, {"y"});
  Graph graph = graphOf(model);
  graph.signature = Signature::parse("p_row: PARAMETER target='row'\n");
  shareRepeatedSamples(graph);
  EXPECT_EQ(graph.initializers.at("mul_1").shape, (Shape{1, 1, 2}));
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].opType, "Expand");
}

TEST(RepeatedSamples, ZerosThatAreCalledExpandedAreOneSample) {
  const std::vector<float> zeros(6, 0);
  EXPECT_EQ(joinedWithFolded("expand_1", {2, 1, 3}, zeros).initializers.at("expand_1").shape,
            (Shape{1, 1, 3}));
  EXPECT_EQ(joinedWithFolded("add_1", {2, 1, 3}, zeros).initializers.at("add_1").shape,
            (Shape{2, 1, 3}));
  // Which of two dimensions is the batch nothing tells.
  EXPECT_EQ(joinedWithFolded("expand", {2, 2, 3}, std::vector<float>(12, 0))
                .initializers.at("expand")
                .shape,
            (Shape{2, 2, 3}));
}

TEST(RepeatedSamples, FirstStatesOfZerosAreOfOneSample) {
  ModelBuilder model;
  model.input("x", {4, 2, 3}).output("y").floats("val_9", {2, 2, 5}, std::vector<float>(20, 0));
  model.floats("w", {2, 15, 3}, std::vector<float>(90, 1));
  model.floats("r", {2, 15, 5}, std::vector<float>(150, 1));
  ModelBuilder::setInt(model.node("GRU", {"x", "w", "r", "", "", "val_9"}, {"y"}), "hidden_size",
                       5);
  model.input("samples", {2});
  Graph graph = graphOf(model);
  graph.signature = Signature::parse("p_h: PARAMETER target='h'\n");
  shareRepeatedSamples(graph);
  EXPECT_EQ(graph.initializers.at("val_9").shape, (Shape{2, 1, 5}));
}

TEST(RepeatedSamples, WhatStandsForMinusInfinityIsNoParameter) {
  const auto kindOf = [](float value) {
    const Graph graph = joinedWithFolded("sub_3", {2, 3}, std::vector<float>(6, value));
    return nameTensors(graph).take().tensors[0].kind;
  };
  EXPECT_EQ(kindOf(-1e38F), TensorKind::Constant);
  EXPECT_EQ(kindOf(-1.0F), TensorKind::Parameter);
}

TEST(RepeatedSamples, SamplesAreRepeatedInAnyDimensionAndBesideHeads) {
  const std::vector<float> a{.1F, .2F, .3F}, b{.4F, .5F, .6F};
  const auto rows = [](const std::vector<std::vector<float>>& list) {
    std::vector<float> all;
    for (const std::vector<float>& row : list)
      all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  const std::vector<float> both = rows({a, b});
  const std::string kept(reinterpret_cast<const char*>(both.data()), both.size() * sizeof(float));

  // The first states of two layers.
  Graph layers = joinedWithFolded("val_9", {2, 2, 3}, rows({a, a, b, b}));
  EXPECT_EQ(layers.initializers.at("val_9").shape, (Shape{2, 1, 3}));
  EXPECT_EQ(layers.initializers.at("val_9").read().take(), kept);

  // Two heads of each sample.
  Graph heads = joinedWithFolded("view", {4, 3}, rows({a, b, a, b}));
  EXPECT_EQ(heads.initializers.at("view").shape, (Shape{1, 2, 3}));
  EXPECT_EQ(heads.nodes[0].outputs[0], "view#repeated");
  EXPECT_EQ(heads.nodes[1].outputs[0], "view#repeated#joined");
  EXPECT_EQ(heads.nodes[2].inputs[0], "view#repeated#joined");
}

} // namespace
} // namespace titan::frontend
