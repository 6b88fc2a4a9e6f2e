#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

/// y = d - mean(d), d = x - mean, where `mean` is a buffer. `args`: what the last fx node reads.
ModelBuilder centred(const std::string& args) {
  ModelBuilder model(20);
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 2}).output("y").floats("mean", {2}, {0.31f, -0.72f});
  model.signature("b_mean: BUFFER target='mean'\n");
  auto add = [&](const char* type, std::vector<std::string> inputs, const std::string& output,
                 const std::string& op, const std::string& arguments) {
    ModelBuilder::setSource(model.node(type, inputs, {output}, "node_" + output), "", op,
                            arguments);
  };
  add("Sub", {"x", "mean"}, "d", "sub.Tensor", "%x, %b_mean");
  add("ReduceMean", {"d"}, "mean", "mean.dim", "%d, [-1], True");
  add("Sub", {"d", "mean"}, "y", "sub.Tensor", args);
  return model;
}

Result<Graph> read(const ModelBuilder& model) { return parseGraph(model.bytes(), "m.onnx", ""); }

TEST(SharedNames, TheFxNodeTellsABufferFromAResult) {
  Graph graph = read(centred("%d, %mean")).take();
  EXPECT_EQ(graph.nodes.at(0).inputs[1], "mean");
  EXPECT_EQ(graph.nodes.at(1).outputs[0], "mean#result");
  EXPECT_EQ(graph.nodes.at(2).inputs[1], "mean#result");
  EXPECT_EQ(nameTensors(graph).take().find("mean")->kind, TensorKind::Buffer);

  graph = read(centred("%d, %b_mean")).take();
  EXPECT_EQ(graph.nodes.back().inputs[1], "mean");
}

TEST(SharedNames, WhatNothingTellsIsRefused) {
  for (const char* args : {"%d", "%d, %mean_1", "%mean, %b_mean"}) {
    Result<Graph> graph = read(centred(args));
    ASSERT_FALSE(graph.ok()) << args;
    EXPECT_NE(graph.error().message().find(
                  "node 'node_y' (Sub) reads 'mean', the name of a tensor and of what node "
                  "'node_mean' (ReduceMean) computes: nothing tells which"),
              std::string::npos)
        << graph.error().message();
  }
  ModelBuilder other = centred("%d, %mean");
  other.model.set_producer_name("other");
  EXPECT_FALSE(read(other).ok());
}

} // namespace
} // namespace titan::frontend
