// Convolutions and pools: what each becomes, and what each refusal says.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;
using Lists = std::vector<std::pair<std::string, std::vector<int64_t>>>;

class ConvolutionTest : public testing::ImportFixture {
protected:
  /// A model of one node, with `x` and, where it has a shape, a kernel `w`.
  std::string importNode(const std::string& op, const std::vector<int64_t>& x,
                         const std::vector<int64_t>& w, const Lists& lists,
                         const std::string& autoPad = "", int64_t ceilMode = 0, int64_t group = 1) {
    ModelBuilder model;
    model.input("x", x).output("y");
    std::vector<std::string> inputs = {"x"};
    if (!w.empty()) {
      size_t count = 1;
      for (int64_t extent : w)
        count *= static_cast<size_t>(extent);
      model.floats("w", w, std::vector<float>(count, 0.5f));
      inputs.push_back("w");
    }
    auto& node = model.node(op, inputs, {"y"});
    for (const auto& [name, values] : lists)
      ModelBuilder::setInts(node, name, values);
    if (!autoPad.empty())
      ModelBuilder::setText(node, "auto_pad", autoPad);
    if (ceilMode != 0)
      ModelBuilder::setInt(node, "ceil_mode", ceilMode);
    if (group != 1)
      ModelBuilder::setInt(node, "group", group);
    return import(model);
  }
};

TEST_F(ConvolutionTest, HasChannelsLast) {
  std::string text = importNode("Conv", {-1, 4, 9, 8}, {6, 2, 3, 3},
                                {{"strides", {2, 1}}, {"pads", {1, 0, 0, 2}}}, "", 0, 2);
  EXPECT_HAS(text, "strides [2, 1] low [1, 0] high [0, 2] dilations [1, 1] groups 2");
  EXPECT_HAS(text, "(tensor<8x9x8x4xf32>, tensor<6x3x3x2xf32>) -> tensor<8x4x8x6xf32>");
}

TEST_F(ConvolutionTest, AutoPadSharesOut) {
  for (auto [mode, pads] : {std::pair("SAME_UPPER", "low [0] high [1]"),
                            {"SAME_LOWER", "low [1] high [0]"},
                            {"VALID", "low [0] high [0]"}}) {
    std::string text = importNode("Conv", {-1, 4, 8}, {6, 4, 3}, {{"strides", {2}}}, mode);
    EXPECT_HAS(text, pads);
  }
}

TEST_F(ConvolutionTest, TransposedIsTheGradientOfItsOperand) {
  std::string text = importNode("ConvTranspose", {-1, 4, 5}, {4, 3, 3},
                                {{"strides", {2}}, {"pads", {1, 1}}, {"output_padding", {1}}});
  EXPECT_HAS(text, "titan.convolution_input_grad");
  EXPECT_HAS(text, "(tensor<8x5x4xf32>, tensor<4x3x3xf32>) -> tensor<8x10x3xf32>");
}

TEST_F(ConvolutionTest, PadsOfATransposedResultAreItsFirstElementsBehindWindows) {
  const auto transposed = [&](const Lists& lists) {
    return importNode("ConvTranspose", {-1, 4, 5}, {4, 3, 3}, lists);
  };
  const std::string kept = transposed({{"pads", {1, 1}}, {"output_padding", {1}}});
  EXPECT_HAS(kept, "low [1] high [0]");
  EXPECT_HAS(kept, "-> tensor<8x6x3xf32>");
  EXPECT_EQ(kept.find("titan.pad"), std::string::npos);
  const std::string padded = transposed({{"dilations", {3}}, {"output_padding", {2}}});
  EXPECT_HAS(padded, "-> tensor<8x11x3xf32>");
  EXPECT_HAS(padded, "titan.pad");
  EXPECT_HAS(padded, "tensor<8x11x3xf32> to tensor<8x13x3xf32>");
}

TEST_F(ConvolutionTest, ABiasOfZerosIsNone) {
  for (float value : {0.0f, 0.5f}) {
    ModelBuilder model;
    model.input("x", {-1, 2, 5}).output("y").floats("w", {3, 2, 2}, std::vector<float>(12, 1));
    model.integers("shape", {3});
    model.floats("value", {}, {value});
    model.node("Expand", {"value", "shape"}, {"bias"});
    model.node("Conv", {"x", "w", "bias"}, {"y"});
    EXPECT_EQ(import(model).find("titan.add") != std::string::npos, value != 0);
  }
}

TEST_F(ConvolutionTest, ABiasOfZerosMayHaveAnyShape) {
  for (float value : {0.0f, 0.5f}) {
    ModelBuilder model;
    model.input("x", {-1, 2, 5}).output("y").floats("w", {3, 2, 2}, std::vector<float>(12, 1));
    model.integers("shape", {3, 2});
    model.floats("value", {}, {value});
    model.node("Expand", {"value", "shape"}, {"bias"});
    model.node("Conv", {"x", "w", "bias"}, {"y"});
    const std::string text = import(model);
    EXPECT_EQ(text.find("a bias of shape [3, 2] for 3 channels") != std::string::npos, value != 0);
  }
}

TEST_F(ConvolutionTest, AFoldedNormIsRefused) {
  ModelBuilder model;
  model.input("x", {-1, 2, 5}).output("y").floats("c.weight", {3, 2, 2}, std::vector<float>(12, 1));
  auto& node = model.node("Conv", {"x", "c.weight"}, {"y"});
  ModelBuilder::setMetadata(node, "pkg.torch.onnx.fx_node",
                            "%norm : call_function[target=torch.ops.aten._native_batch_norm_legit_"
                            "no_training.default](args = (%conv, %s, %b, %m, %v, 0.1, 1e-05))");
  EXPECT_HAS(import(model), "node 'y' (Conv): the exporter folded a batch norm into its weights");
}

TEST_F(ConvolutionTest, AFoldedNormIsKnownByItsRule) {
  for (const char* rules :
       {"FuseBatchNormIntoConv", "RemoveOptionalBiasFromConv, FuseBatchNormIntoConv"}) {
    ModelBuilder model;
    model.input("x", {-1, 2, 5})
        .output("y")
        .floats("c.weight", {3, 2, 2}, std::vector<float>(12, 1));
    auto& node = model.node("Conv", {"x", "c.weight"}, {"y"});
    ModelBuilder::setMetadata(node, "pkg.onnxscript.rewriter.rule_name", rules);
    EXPECT_HAS(import(model), "node 'y' (Conv): the exporter folded a batch norm into its weights");
  }
}

// A legacy export does not say that it folded a norm, but no other folding computes both operands.
TEST_F(ConvolutionTest, TrainingModeRefusesWhatMayHoldANorm) {
  ModelBuilder model;
  model.input("x", {-1, 2, 5}).output("y").floats("last.bias", {2}, {1, 2});
  for (const char* name : {"onnx::Conv_7", "onnx::Conv_9"})
    model.floats(name, {2, 2, 1}, {1, 2, 3, 4});
  model.floats("onnx::Conv_8", {2}, {1, 2});
  model.node("Conv", {"x", "onnx::Conv_7", "onnx::Conv_8"}, {"h"}, "/conv/Conv");
  model.node("Conv", {"h", "onnx::Conv_9", "last.bias"}, {"y"}, "/last/Conv"); // a weight norm
  model.model.set_producer_name("pytorch");
  EXPECT_HAS(import(model), "titan.convolution");
  recipe_.model.mode = "train";
  const std::string said = import(model);
  EXPECT_HAS(said,
             "node '/conv/Conv' (Conv): the exporter computed its weight and bias, as it does "
             "of a batch norm, which model.mode = \"train\" cannot bring back");
  EXPECT_LACKS(said, "/last/Conv");
}

TEST_F(ConvolutionTest, EachFoldedNormIsNamed) {
  ModelBuilder model;
  model.input("x", {-1, 2, 5}).output("y").floats("w", {2, 2, 1}, {1, 2, 3, 4});
  for (auto [from, to] : {std::pair("x", "h"), std::pair("h", "y")}) {
    auto& node = model.node("Conv", {from, "w"}, {to});
    ModelBuilder::setMetadata(node, "pkg.torch.onnx.fx_node",
                              "%n : call_function[target=torch.ops.aten.batch_norm.default](args)");
  }
  const std::string text = import(model);
  EXPECT_HAS(text, "node 'h' (Conv): the exporter folded");
  EXPECT_HAS(text, "node 'y' (Conv): the exporter folded");
}

TEST_F(ConvolutionTest, CeilModeHasNoWindowBehindTheOperand) {
  const auto pool = [&](int64_t extent, const std::vector<int64_t>& pads) {
    return importNode("MaxPool", {-1, 2, extent}, {},
                      {{"kernel_shape", {2}}, {"strides", {3}}, {"pads", pads}}, "", 1);
  };
  EXPECT_HAS(pool(7, {0, 0}), "tensor<8x7x2xf32> to tensor<8x3x2xf32>");
  EXPECT_HAS(pool(8, {0, 0}), "tensor<8x8x2xf32> to tensor<8x3x2xf32>");
  EXPECT_HAS(pool(6, {0, 1}), "tensor<8x6x2xf32> to tensor<8x2x2xf32>");
}

TEST_F(ConvolutionTest, CeilModeHasOneWindowThatIsLargerThanTheOperand) {
  const auto pool = [&](const std::string& op, int64_t extent, int64_t stride,
                        int64_t dilation = 1) {
    Lists lists = {{"kernel_shape", {5}}, {"strides", {stride}}};
    if (dilation != 1)
      lists.emplace_back("dilations", std::vector<int64_t>{dilation});
    return importNode(op, {-1, 2, extent}, {}, lists, "", 1);
  };
  const std::string three = pool("AveragePool", 3, 5);
  EXPECT_HAS(three, "window [1, 3, 1]");
  EXPECT_HAS(three, "tensor<8x3x2xf32> to tensor<8x1x2xf32>");
  EXPECT_HAS(three, "0.333333");
  EXPECT_HAS(pool("MaxPool", 1, 5), "tensor<8x1x2xf32> to tensor<8x1x2xf32>");
  EXPECT_HAS(pool("MaxPool", 8, 2, 2), "tensor<8x8x2xf32> to tensor<8x1x2xf32>");
  EXPECT_HAS(pool("AveragePool", 3, 2),
             "a window of 5 is larger than the padded extent 3 of dimension 0 of space");
}

TEST_F(ConvolutionTest, AveragesCountWhatIsThere) {
  const Lists lists = {{"kernel_shape", {3}}, {"pads", {1, 1}}};
  std::string text = importNode("AveragePool", {-1, 1, 4}, {}, lists);
  EXPECT_HAS(text, "dense<[5.000000e-01, 0.333333343, 0.333333343, 5.000000e-01]>");
}

TEST_F(ConvolutionTest, AnAverageIsDividedByWhatTheSourceSays) {
  const std::string arguments = "%x, [2, 2], [2, 2], [0, 0], False, True";
  for (const auto& [divisor, has] :
       {std::pair<std::string, std::string>{"", "dense<2.500000e-01>"},
        {", None", "dense<2.500000e-01>"},
        {", -8", "dense<-1.250000e-01>"},
        {", 0", "node 'n' (AveragePool): divisor_override = '0' of the source is not a number "
                "other than 0: sum the windows, and divide by it"}}) {
    ModelBuilder model;
    model.input("x", {-1, 2, 4, 4}).output("y");
    auto& node = model.node("AveragePool", {"x"}, {"y"}, "n");
    ModelBuilder::setInts(node, "kernel_shape", {2, 2});
    ModelBuilder::setSource(node, "", "avg_pool2d.default", arguments + divisor);
    EXPECT_HAS(import(model), has);
  }
}

TEST_F(ConvolutionTest, RefusesWhatHasNoMeaning) {
  const auto conv = [&](const std::vector<int64_t>& w, const Lists& lists, int64_t group = 1) {
    return importNode("Conv", {-1, 4, 9, 8}, w, lists, "", 0, group);
  };
  EXPECT_HAS(conv({6, 4, 10, 3}, {}),
             "a window of 10 is larger than the padded extent 9 of dimension 0 of space");
  EXPECT_HAS(conv({6, 2, 3, 3}, {}),
             "group = 1 does not divide 4 channels into kernels of 2, and 6 kernels");
  EXPECT_HAS(conv({6, 4, 3, 3}, {}, 3),
             "group = 3 does not divide 4 channels into kernels of 4, and 6 kernels");
  EXPECT_HAS(conv({6, 4, 3, 3}, {}, -1), "group = -1");
  EXPECT_HAS(conv({6, 4, 3, 3}, {{"strides", {0, 1}}}), "strides = [0, 1]");
  EXPECT_HAS(conv({6, 4, 3, 3}, {{"dilations", {1, 0}}}), "dilations = [1, 0]");
  EXPECT_HAS(conv({6, 4, 3, 3}, {{"pads", {1, 1}}}),
             "pads has 2 entries for 2 dimensions of space");
  EXPECT_HAS(conv({6, 4, 3, 3}, {{"pads", {-1, 0, 0, 0}}}), "pads = [-1, 0, 0, 0]");
  EXPECT_HAS(conv({6, 4, 3, 3}, {{"kernel_shape", {3, 2}}}),
             "kernel_shape = [3, 2] for a kernel of [3, 3]");
  EXPECT_HAS(conv({6, 4, 3}, {}),
             "a kernel of shape [6, 4, 3] for an operand of shape [8, 4, 9, 8]");
  EXPECT_HAS(importNode("Conv", {-1, 4, 9}, {6, 4, 3}, {}, "SAME"),
             "auto_pad = 'SAME' is not known");
}

TEST_F(ConvolutionTest, RefusesPoolsWithoutElements) {
  const auto pool = [&](const Lists& lists) {
    return importNode("MaxPool", {-1, 2, 4}, {}, lists);
  };
  EXPECT_HAS(pool({{"kernel_shape", {2}}, {"strides", {2}}, {"pads", {2, 0}}}),
             "window 0 of dimension 0 of space lies in the padding alone");
  EXPECT_HAS(pool({{"kernel_shape", {2, 2}}}),
             "kernel_shape has 2 entries for 1 dimensions of space");
  EXPECT_HAS(pool({{"kernel_shape", {0}}}), "a window of 0 in dimension 0 of space");
}

TEST_F(ConvolutionTest, IndicesOfMaximaAreRefused) {
  ModelBuilder model;
  model.input("x", {-1, 2, 4}).output("y").output("i");
  ModelBuilder::setInts(model.node("MaxPool", {"x"}, {"y", "i"}), "kernel_shape", {2});
  EXPECT_HAS(import(model), "its indices are read, which is not supported");
}

TEST_F(ConvolutionTest, TransposedRefusesWhatPadsLeaveNothingOf) {
  const auto transposed = [&](const Lists& lists) {
    return importNode("ConvTranspose", {-1, 4, 5}, {4, 3, 3}, lists);
  };
  EXPECT_HAS(transposed({{"output_padding", {-1}}}), "output_padding = [-1]");
  EXPECT_HAS(transposed({{"pads", {4, 3}}}), "pads 4 and 3 leave nothing of 7 in dimension 0");
}

TEST_F(ConvolutionTest, ColumnsAreAddedWhereTheirWindowsStand) {
  const auto imported = [&](const std::vector<int64_t>& x, const std::vector<int64_t>& image,
                            const std::vector<int64_t>& block) {
    ModelBuilder model(18);
    model.input("x", x).output("y");
    model.integers("image", image);
    model.integers("block", block);
    model.node("Col2Im", {"x", "image", "block"}, {"y"}, "n");
    return import(model);
  };
  EXPECT_HAS(imported({-1, 12, 12}, {4, 5}, {2, 2}), "-> (tensor<8x3x4x5xf32>");
  EXPECT_HAS(imported({-1, 11, 12}, {4, 5}, {2, 2}),
             "an operand of shape [8, 11, 12] with blocks of [2, 2] in an image of [4, 5]");
  EXPECT_HAS(imported({-1, 12, 11}, {4, 5}, {2, 2}), "11 columns for blocks at [3, 4] positions");
}

class BatchNormTest : public testing::ImportFixture {
protected:
  ModelBuilder normModel(const std::string& call, int64_t trainingMode = 0) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", {-1, 2, 4}).output("y");
    for (const char* name : {"scale", "bias", "mean", "variance"})
      model.floats(name, {2}, {0.5f, 1.5f});
    auto& node =
        model.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"});
    if (trainingMode != 0)
      ModelBuilder::setInt(node, "training_mode", trainingMode);
    if (!call.empty())
      ModelBuilder::setMetadata(node, "pkg.torch.onnx.fx_node", call);
    return model;
  }
  std::string importNorm(const std::string& call, int64_t trainingMode = 0) {
    return import(normModel(call, trainingMode));
  }
};

TEST_F(BatchNormTest, FixedStatisticsAreBuffers) {
  std::string text =
      importNorm("%norm : call_function[target=torch.ops.aten._native_batch_norm_"
                 "legit_no_training.default](args = (%x, %s, %b, %m, %v, 0.1, 1e-05))");
  EXPECT_HAS(text, "titan.rsqrt");
  EXPECT_HAS(text, "titan.state @mean : tensor<2xf32> {init");
  EXPECT_HAS(text, "kind = #titan<kind buffer>");
}

// As torch.export to opset 17 writes them, without metadata.
TEST_F(BatchNormTest, TheNameOfAConvertedNormTellsItsForm) {
  ModelBuilder model = normModel("");
  std::string& name = *model.model.mutable_graph()->mutable_node(0)->mutable_name();
  name = "node__native_batch_norm_legit_functional_1__0";
  EXPECT_HAS(import(model), "titan.batch_norm");
  name = "node__native_batch_norm_legit_no_training_1__0";
  EXPECT_LACKS(import(model), "titan.batch_norm");
}

TEST_F(BatchNormTest, FreshWeightsHaveFreshStatistics) {
  recipe_.model.init = "fresh";
  for (int64_t trainingMode : {0, 1}) {
    const std::string text = importNorm("", trainingMode);
    EXPECT_HAS(text, "titan.state @mean : tensor<2xf32> {init = #titan.init_rule<\"constant\", "
                     "0.000000e+00");
    EXPECT_HAS(text, "titan.state @variance : tensor<2xf32> {init = #titan.init_rule<\"constant\", "
                     "1.000000e+00");
  }
}

TEST_F(BatchNormTest, FixedStatisticsAreNoted) {
  const std::string note = "node 'y' (BatchNormalization) trains with fixed statistics, as the "
                           "model was exported: model.mode = \"train\" normalises by the batch";
  EXPECT_TRUE(llvm::is_contained(notes(normModel("")), note));
  EXPECT_FALSE(llvm::is_contained(notes(normModel("", /*trainingMode=*/1)), note));
  Recipe train;
  train.model.mode = "train";
  EXPECT_FALSE(llvm::is_contained(notes(normModel(""), train), note));
}

// A norm with momentum=None, as the legacy exporter writes it after train() and after eval().
TEST_F(BatchNormTest, MeansOfAllBatchesAreNoted) {
  const std::string text = "where the source averages those of all batches (momentum=None), the "
                           "file does not say so; give it a momentum before the export";
  const std::string last = "node 'y' (BatchNormalization) keeps the statistics of the last batch "
                           "alone, as its momentum says: " +
                           text;
  const std::string unmoved = "node 'y' (BatchNormalization) normalises by the batch and never "
                              "moves its running statistics, as its momentum says: " +
                              text;
  ModelBuilder train = normModel("", /*trainingMode=*/1), eval = normModel("");
  ModelBuilder::setFloat(*train.model.mutable_graph()->mutable_node(0), "momentum", 0);
  ModelBuilder::setFloat(*eval.model.mutable_graph()->mutable_node(0), "momentum", 1);
  Recipe trains;
  trains.model.mode = "train";
  EXPECT_TRUE(llvm::is_contained(notes(train), last));
  EXPECT_TRUE(llvm::is_contained(notes(eval, trains), unmoved));
  // Fixed statistics have no momentum.
  EXPECT_FALSE(llvm::is_contained(notes(eval), unmoved));
  for (const std::string& note : notes(normModel("", /*trainingMode=*/1)))
    EXPECT_LACKS(note, "momentum=None");
}

// One exporter writes the same node for both forms.
TEST_F(BatchNormTest, StatisticsOfTheBatchMoveTheRunningOnes) {
  const char* call = "%norm : call_function[target=torch.ops.aten._native_batch_norm_legit_"
                     "functional.default](args = (%x, %s, %b, %m, %v, True, 0.1, 1e-05))";
  for (const std::string& text : {importNorm(call), importNorm("", /*trainingMode=*/1)}) {
    EXPECT_HAS(text, "titan.batch_norm");
    EXPECT_HAS(text, "running %arg2, %arg3 dim 1 epsilon 1.000000e-05 momentum 1.000000e-01 "
                     "unbiased");
  }
}

TEST_F(BatchNormTest, UpToOpset13OtherOutputsSayThatItTrains) {
  for (const bool trains : {false, true}) {
    ModelBuilder model(13);
    model.input("x", {-1, 2, 4}).output("y");
    for (const char* name : {"scale", "bias", "mean", "variance"})
      model.floats(name, {2}, {0.5f, 1.5f});
    std::vector<std::string> outputs = {"y"};
    if (trains)
      outputs.insert(outputs.end(), {"m", "v", "saved_m", "saved_v"});
    model.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, outputs);
    EXPECT_EQ(import(model).find("titan.batch_norm") != std::string::npos, trains);
  }
}

TEST_F(BatchNormTest, OneElementHasNoStatistic) {
  ModelBuilder model;
  model.input("x", {1, 2}).output("y");
  for (const char* name : {"scale", "bias", "mean", "variance"})
    model.floats(name, {2}, {0.5f, 1.5f});
  auto& node = model.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"});
  ModelBuilder::setInt(node, "training_mode", 1);
  EXPECT_HAS(
      import(model),
      "an operand of shape [1, 2] has 1 element for each channel, of which there is no statistic");
}

} // namespace
} // namespace titan::frontend
