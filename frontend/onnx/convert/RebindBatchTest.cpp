// Batches that an export baked in, in the forms that attention and losses have them.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class RebindBatchTest : public testing::ImportFixture {};

/// [batch, position, width] to [position * batch, width] and back, as nn.MultiheadAttention does.
TEST_F(RebindBatchTest, FollowsABatchThatIsMergedBehindPositions) {
  ModelBuilder model;
  model.input("x", {3, 5, 2}).output("y").floats("w.weight", {2, 2}, {1, 2, 3, 5});
  ModelBuilder::setInts(model.node("Transpose", {"x"}, {"t"}), "perm", {1, 0, 2});
  model.integers("flat", {15, 2});
  model.integers("split", {5, 3, 2});
  model.node("Reshape", {"t", "flat"}, {"f"});
  model.node("MatMul", {"f", "w.weight"}, {"m"});
  model.node("Reshape", {"m", "split"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, "-> (tensor<5x8x2xf32>");
}

TEST_F(RebindBatchTest, ABatchOfOneJoinsTheHeads) {
  // [position, batch, width] to [position, batch * heads, part] to [batch, heads, position, part].
  ModelBuilder model;
  model.input("x", {1, 5, 6}).output("y");
  ModelBuilder::setInts(model.node("Transpose", {"x"}, {"t"}), "perm", {1, 0, 2});
  model.integers("heads", {5, 2, 3});
  model.integers("apart", {1, 2, 5, 3});
  model.node("Reshape", {"t", "heads"}, {"h"});
  ModelBuilder::setInts(model.node("Transpose", {"h"}, {"u"}), "perm", {1, 0, 2});
  model.node("Reshape", {"u", "apart"}, {"r"});
  model.node("Relu", {"r"}, {"y"});
  EXPECT_HAS(import(model), "tensor<8x2x5x3xf32>");
}

TEST_F(RebindBatchTest, KeepsOneSampleOfARepeatedMask) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").floats("shift", {2, 3}, {0, 1, 2, 0, 1, 2});
  model.node("Add", {"x", "shift"}, {"y"});
  model.model.mutable_graph()->mutable_initializer(0)->set_name("/Constant_1");
  model.model.mutable_graph()->mutable_node(0)->set_input(1, "/Constant_1");
  std::string text = import(model);
  EXPECT_HAS(text, "dense<[0.000000e+00, 1.000000e+00, 2.000000e+00]> : tensor<3xf32>");
  EXPECT_HAS(text, "tensor<3xf32> to tensor<8x3xf32>");
}

// The first token of a decoder: zeros look one row up for each sample.
TEST_F(RebindBatchTest, RowsThatConstantsLookUpAreThoseOfTheNewBatch) {
  ModelBuilder model;
  model.input("x", {3, 2}).output("y").floats("e.weight", {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  model.integers("start", {2, 2, 2});
  model.node("Gather", {"e.weight", "start"}, {"rows"});
  model.node("Tanh", {"rows"}, {"first"});
  model.node("Add", {"x", "first"}, {"y"});
  const std::string text = import(model);
  EXPECT_HAS(text, "offsets [2, 0]");
  EXPECT_HAS(text, "tensor<8x2xf32>");
  // Two rows are not one.
  ModelBuilder others;
  others.input("x", {3, 2}).output("y").floats("e.weight", {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  others.integers("start", {2, 2, 1});
  others.node("Gather", {"e.weight", "start"}, {"rows"});
  others.node("Add", {"x", "rows"}, {"y"});
  EXPECT_HAS(import(others), "the exported batch of 3 cannot become batch.micro = 8");
}

// Each sample has a kernel of its own, as in the generator of StyleGAN2: samples are groups.
TEST_F(RebindBatchTest, GroupsThatAreSamplesAreThoseOfTheNewBatch) {
  const auto imported = [&](int64_t groups) {
    ModelBuilder model;
    model.input("x", {3, 4, 5}).input("z", {3, 2, 4}).output("y");
    model.floats("w.weight", {2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
    model.integers("scales", {3, 2, 4, 1}).set_name("scales");
    model.integers("kernels", {6, 12 / groups, 1});
    model.integers("joined", {1, 12, 5});
    model.integers("apart", {3, 2, 5});
    model.node("Reshape", {"z", "scales"}, {"s"});
    model.node("Mul", {"w.weight", "s"}, {"scaled"});
    model.node("Reshape", {"scaled", "kernels"}, {"k"});
    model.node("Reshape", {"x", "joined"}, {"j"});
    ModelBuilder::setInt(model.node("Conv", {"j", "k"}, {"c"}, "mix"), "group", groups);
    model.node("Reshape", {"c", "apart"}, {"y"});
    return import(model);
  };
  const std::string text = imported(3);
  EXPECT_HAS(text, "groups 8");
  EXPECT_HAS(text, "tensor<16x1x4xf32>");
  EXPECT_HAS(text, "-> (tensor<8x2x5xf32>");
}

TEST_F(RebindBatchTest, AMeanOverTheBatchIsThatOfTheNewOne) {
  ModelBuilder model;
  model.input("x", {2, 5}).output("y");
  ModelBuilder::setInt(model.node("ReduceMean", {"x"}, {"y"}), "keepdims", 0);
  EXPECT_HAS(import(model), "dense<2.500000e-02>"); // 1 / 40
}

// n / (n - 1) of an unbiased variance counts the samples of the new batch: as PyTorch's exporters
// write it, and as an optimizer leaves it that does not divide by 1.
TEST_F(RebindBatchTest, AVarianceOverTheBatchIsThatOfTheNewOne) {
  auto imported = [&](const std::vector<int64_t>& shape, bool divides) {
    const auto count = static_cast<float>(elementCount(shape));
    ModelBuilder model;
    model.input("x", shape)
        .output("y")
        .floats("/Constant_1", {}, {divides ? count : count / (count - 1)});
    model.floats("/Constant_2", {}, {count - 1});
    model.node("ReduceMean", {"x"}, {"m"});
    model.node("Sub", {"x", "m"}, {"d"});
    model.node("Mul", {"d", "d"}, {"q"});
    ModelBuilder::setInt(model.node("ReduceMean", {"q"}, {"v"}), "keepdims", 0);
    model.node("Mul", {"v", "/Constant_1"}, {divides ? "s" : "y"});
    if (divides)
      model.node("Div", {"s", "/Constant_2"}, {"y"});
    return import(model);
  };
  const std::string steps = imported({2, 5}, true);
  EXPECT_HAS(steps, "dense<4.000000e+01>"); // 8 * 5
  EXPECT_HAS(steps, "dense<3.900000e+01>");
  EXPECT_HAS(imported({2, 5}, false), "dense<1.02564108>"); // 40 / 39
  EXPECT_HAS(imported({2}, true), "dense<7.000000e+00>");
  EXPECT_HAS(imported({2}, false), "dense<1.14285719>"); // 8 / 7
}

// A weight of a loss may be equal to the number of samples.
TEST_F(RebindBatchTest, AScaledMeanKeepsItsFactor) {
  ModelBuilder model;
  model.input("x", {2}).output("y").floats("/Constant_1", {}, {2});
  ModelBuilder::setInt(model.node("ReduceMean", {"x"}, {"m"}), "keepdims", 0);
  model.node("Mul", {"m", "/Constant_1"}, {"y"});
  EXPECT_HAS(import(model), "dense<2.000000e+00>");
}

// The statistics of a batch are those of any, but a scale has a number for each sample.
TEST_F(RebindBatchTest, ANormOverTheBatchIsThatOfTheNewOne) {
  ModelBuilder model;
  model.input("x", {2, 3, 5}).output("y");
  auto& node = model.node("MeanVarianceNormalization", {"x"}, {"y"});
  ModelBuilder::setInts(node, "axes", {0, 2});
  EXPECT_HAS(import(model),
             "over [0, 2] epsilon 1.000000e-18 {path = [\"y\"]} : (tensor<8x3x5xf32>)");

  ModelBuilder scaled;
  scaled.input("x", {2, 3}).output("y").floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  ModelBuilder::setInt(scaled.node("LayerNormalization", {"x", "w"}, {"y"}, "n"), "axis", 0);
  EXPECT_HAS(import(scaled), "node 'n' combines the samples of a batch");
}

// Noise of each sample is drawn for the new batch; noise that all samples share stays one.
TEST_F(RebindBatchTest, RandomNumbersFollowTheirReaders) {
  ModelBuilder model;
  model.input("x", {2, 5}).output("y").integers("rows", {2, 1});
  model.node("ConstantOfShape", {"rows"}, {"zeros"});
  model.node("RandomUniformLike", {"zeros"}, {"u"});
  model.node("Exp", {"u"}, {"e"});
  model.node("Mul", {"x", "e"}, {"m"});
  ModelBuilder::setInts(model.node("RandomNormal", {}, {"n"}), "shape", {5});
  model.node("Add", {"m", "n"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, ": tensor<8x1xf32>");
  EXPECT_HAS(text, ": tensor<5xf32>");

  ModelBuilder single;
  single.input("x", {1, 5}).output("y").integers("rows", {1, 1});
  single.node("ConstantOfShape", {"rows"}, {"zeros"});
  single.node("RandomUniformLike", {"zeros"}, {"u"}, "noise");
  single.node("Exp", {"u"}, {"e"});
  ModelBuilder::setInt(single.node("Concat", {"x", "e"}, {"y"}), "axis", 1);
  EXPECT_HAS(
      import(single),
      "node 'noise' draws numbers of one sample or of all, which nothing tells: the exported "
      "batch of 1 cannot become batch.micro = 8");
}

TEST_F(RebindBatchTest, AParameterOfEachSampleIsRefused) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  model.node("Add", {"x", "w"}, {"y"}, "add");
  EXPECT_HAS(import(model), "node 'add' holds a tensor of the exported batch");
}

// The mean of what is drawn would have another deviation.
TEST_F(RebindBatchTest, DrawsWhoseSamplesNobodyTellsAreRefused) {
  const auto meanOf = [&](const std::vector<int64_t>& shape) {
    ModelBuilder model;
    model.input("x", {2, 5}).output("y");
    ModelBuilder::setInts(model.node("RandomNormal", {}, {"n"}, "noise"), "shape", shape);
    model.node("ReduceMean", {"n"}, {"m"});
    model.node("Add", {"x", "m"}, {"y"});
    return import(model);
  };
  EXPECT_HAS(meanOf({2, 5}), "node 'noise' draws [2, 5] numbers that may be one for each sample, "
                             "which nothing that reads them tells: the exported batch of 2 cannot "
                             "become batch.micro = 8");
  EXPECT_HAS(meanOf({3, 5}), ": tensor<3x5xf32>");
}

// A parameter of one sample, whose heads are merged with the batch of 1.
TEST_F(RebindBatchTest, WhatABatchOfOneReadsIsThatOfEachSample) {
  ModelBuilder model;
  model.input("x", {1, 2, 3}).output("y").floats("scale.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  model.integers("heads", {2, 3});
  model.node("Reshape", {"x", "heads"}, {"h"});
  model.node("Mul", {"h", "scale.weight"}, {"y"});
  EXPECT_HAS(import(model), "titan.broadcast %arg0 [1, 2] {path = [\"y\"]} : tensor<2x3xf32> to "
                            "tensor<8x2x3xf32>");
}

// Latent queries that are normalised before they meet a sample.
TEST_F(RebindBatchTest, WhatIsComputedBeforeASampleIsReadFollowsIt) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").floats("latents", {1, 3}, {1, 2, 4});
  model.floats("norm.weight", {3}, {1, 2, 3});
  model.integers("samples", {2, 3});
  model.node("Expand", {"latents", "samples"}, {"e"});
  model.node("LayerNormalization", {"e", "norm.weight"}, {"n"});
  model.node("Mul", {"x", "n"}, {"y"});
  EXPECT_HAS(import(model), "-> (tensor<8x3xf32>, tensor<8xf32>, tensor<8xf32>)");
}

// Twin networks read two batches as one.
TEST_F(RebindBatchTest, BatchesAreJoinedAndTakenApart) {
  ModelBuilder model;
  model.input("a", {2, 3}).input("b", {2, 3}).output("y").integers("from", {2});
  model.integers("to", {4});
  ModelBuilder::setInt(model.node("Concat", {"a", "b"}, {"ab"}), "axis", 0);
  model.node("Relu", {"ab"}, {"r"});
  model.node("Slice", {"r", "from", "to"}, {"y"}, "second");
  const std::string text = import(model);
  EXPECT_HAS(text, "tensor<16x3xf32>");
  EXPECT_HAS(text, "offsets [8, 0]");

  ModelBuilder cut;
  cut.input("a", {2, 3}).output("y").integers("from", {1});
  cut.integers("to", {2});
  cut.node("Slice", {"a", "from", "to"}, {"y"}, "cut");
  EXPECT_HAS(import(cut), "node 'cut' combines the samples of a batch");
}

// x[arange(batch), places] in the spellings of both exporters.
TEST_F(RebindBatchTest, EachSampleHasAPlaceOfItsOwn) {
  for (int64_t batch : {1, 2}) {
    ModelBuilder tuples;
    std::vector<int64_t> samples(batch), starts(batch);
    for (int64_t i = 0; i < batch; ++i)
      starts[i] = 4 * (samples[i] = i);
    tuples.input("x", {batch, 4, 3}).output("y").integers("samples", samples, {batch, 1});
    tuples.input("p", {batch, 1}, ::onnx::TensorProto::INT64);
    ModelBuilder::setInt(tuples.node("Concat", {"samples", "p"}, {"t"}), "axis", -1);
    tuples.node("GatherND", {"x", "t"}, {"y"});
    EXPECT_HAS(import(tuples), "dim 1 {path = [\"y\"]} : (tensor<8x4x3xf32>, tensor<8x1xi64>)");

    for (int64_t places : {1, 2}) {
      ModelBuilder joined;
      joined.model.set_producer_name("pytorch");
      joined.input("x", {batch, 4, 3}).output("y").integers("starts", starts, {batch, 1});
      joined.input("p", {batch, places}, ::onnx::TensorProto::INT64);
      ModelBuilder::setInt(joined.node("Flatten", {"x"}, {"f"}), "axis", 2);
      joined.node("Add", {"p", "starts"}, {"rows"});
      joined.node("Gather", {"f", "rows"}, {"y"});
      EXPECT_HAS(import(joined), "dim 1 {path = [\"y\"]} : (tensor<8x4x3xf32>, tensor<8x" +
                                     std::to_string(places) + "xi64>)");
    }
  }
}

// x[:, 1] = u, as the legacy exporter writes it.
TEST_F(RebindBatchTest, KnownPlacesOfEverySampleAreABox) {
  ModelBuilder model;
  model.input("x", {2, 4, 3}).input("u", {2, 3}).output("y");
  model.integers("places", {0, 1, 1, 1}, {2, 2});
  model.node("ScatterND", {"x", "places", "u"}, {"y"});
  const std::string text = import(model);
  EXPECT_HAS(text,
             "(tensor<8x1x3xf32>, tensor<8x1x3xf32>, tensor<8x2x3xf32>) -> tensor<8x4x3xf32>");
  EXPECT_LACKS(text, "titan.scatter");
}

// The mean of what a mask keeps, however little that is.
TEST_F(RebindBatchTest, ADivisorMayBeKeptOffZero) {
  auto imported = [&](const char* op, float number) {
    ModelBuilder model;
    model.input("x", {2, 5}).input("mask", {2, 5}).output("y").floats("/Constant_1", {}, {number});
    model.node("Mul", {"x", "mask"}, {"kept"});
    ModelBuilder::setInt(model.node("ReduceSum", {"kept"}, {"sum"}), "keepdims", 0);
    ModelBuilder::setInt(model.node("ReduceSum", {"mask"}, {"count"}), "keepdims", 0);
    model.node(op, {"count", "/Constant_1"}, {"some"}, "n");
    model.node("Div", {"sum", "some"}, {"y"});
    return import(model);
  };
  EXPECT_HAS(imported("Add", 1e-8f), "tensor<8x5xf32>");
  EXPECT_HAS(imported("Max", 1), "tensor<8x5xf32>");
  EXPECT_HAS(imported("Clip", 1), "tensor<8x5xf32>");
  EXPECT_HAS(imported("Clip", 2), "node 'n' combines the samples of a batch");
  EXPECT_HAS(imported("Max", 2), "node 'n' combines the samples of a batch");
  EXPECT_HAS(imported("Add", 1), "node 'n' combines the samples of a batch");
}

TEST_F(RebindBatchTest, RefusesArithmeticOnASumOverTheBatch) {
  ModelBuilder model;
  model.input("x", {2, 5}).output("y").floats("c", {1}, {3});
  ModelBuilder::setInt(model.node("ReduceSum", {"x"}, {"s"}), "keepdims", 0);
  model.node("Exp", {"s"}, {"y"}, "exp");
  EXPECT_HAS(import(model), "node 'exp' combines the samples of a batch");
}

} // namespace
} // namespace titan::frontend
