// Lookups, sequences and losses: what each becomes.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;
constexpr int kInt64 = ::onnx::TensorProto::INT64;

class LookupTest : public testing::ImportFixture {};

std::vector<float> some(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = 0.5f + static_cast<float>(i);
  return values;
}

TEST_F(LookupTest, RowsByComputedIndicesAreAnEmbedding) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("ids", {-1, 3}, kInt64).output("y").floats("wte.weight", {5, 2}, some(10));
  model.node("Gather", {"wte.weight", "ids"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, "titan.embedding");
  EXPECT_HAS(text, "(tensor<5x2xf32>, tensor<8x3xi64>) -> tensor<8x3x2xf32>");
  EXPECT_LACKS(text, "titan.select");
}

TEST_F(LookupTest, ThePaddingRowIsWhatTheNodeSays) {
  for (const char* said : {"%p_wte_weight, %ids, 3", "%p_wte_weight, %ids"}) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("ids", {-1, 3}, kInt64).output("y").floats("wte.weight", {5, 2}, some(10));
    auto& gather = model.node("Gather", {"wte.weight", "ids"}, {"y"});
    ModelBuilder::setSource(gather, "wte", "embedding.default", said, "",
                            "torch.nn.modules.sparse.Embedding");
    std::string text = import(model);
    EXPECT_EQ(text.find("padding 3") != std::string::npos, std::string(said).ends_with("3"))
        << text;
  }
}

TEST_F(LookupTest, OtherProducersMayCountIndicesFromTheEnd) {
  ModelBuilder model;
  model.input("ids", {-1, 3}, kInt64).output("y").floats("table", {5, 2}, some(10));
  model.node("Gather", {"table", "ids"}, {"y"});
  EXPECT_HAS(import(model), "titan.select");
}

TEST_F(LookupTest, AlongAnotherAxisTheTableIsTransposed) {
  ModelBuilder model;
  model.input("ids", {-1}, kInt64).output("y").floats("table", {5, 4}, some(20));
  ModelBuilder::setInt(model.node("Gather", {"table", "ids"}, {"y"}), "axis", 1);
  std::string text = import(model);
  EXPECT_HAS(text, "titan.transpose");
  EXPECT_HAS(text, "(tensor<4x5xf32>, tensor<8xi64>) -> tensor<8x5xf32>");
}

TEST_F(LookupTest, PositionsOfEverySampleAreLookedUpOnce) {
  ModelBuilder model;
  model.input("x", {2, 3, 2}).output("y").floats("wpe.weight", {5, 2}, some(10));
  ::onnx::TensorProto& positions = model.integers("positions", {1, 2, 3, 1, 2, 3});
  positions.clear_dims();
  positions.add_dims(2);
  positions.add_dims(3);
  model.node("Gather", {"wpe.weight", "positions"}, {"p"});
  model.node("Add", {"x", "p"}, {"y"});
  std::string text = import(model); // another batch than the file's
  EXPECT_HAS(text, "tensor<5x2xf32> to tensor<3x2xf32>");
  EXPECT_HAS(text, "titan.broadcast %0 [1, 2]");
  EXPECT_HAS(text, "to tensor<8x3x2xf32>");
}

TEST_F(LookupTest, KnownPositionsAreASlice) {
  ModelBuilder model;
  model.input("x", {-1, 2}).output("y").floats("wpe.weight", {5, 2}, some(10));
  model.integers("positions", {1, 2, 3});
  model.node("Gather", {"wpe.weight", "positions"}, {"p"});
  model.node("Add", {"x", "s"}, {"y"});
  ModelBuilder::setInts(model.node("ReduceSum", {"p", "axes"}, {"s"}), "unused", {});
  model.integers("axes", {0});
  std::string text = import(model);
  EXPECT_HAS(text, "titan.slice");
  EXPECT_LACKS(text, "titan.embedding");
}

/// Indices [3, 2, 2] whose tuple at (i, j) is (j, i): the transposition.
TEST_F(LookupTest, RegularIndexTuplesAreATransposition) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y");
  auto& indices = model.integers("indices", {0, 0, 1, 0, 0, 1, 1, 1, 0, 2, 1, 2});
  indices.clear_dims();
  for (int64_t extent : {3, 2, 2})
    indices.add_dims(extent);
  model.node("GatherND", {"x", "indices"}, {"y"});
  recipe_.batch.micro = 2;
  std::string text = import(model);
  EXPECT_HAS(text, "titan.transpose");
  EXPECT_LACKS(text, "titan.embedding");
}

/// A component beyond its own dimension would be a place in another row.
TEST_F(LookupTest, EachComponentOfATupleIsWithinItsDimension) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("i", {-1, 2}, kInt64).output("y").floats("t", {3, 4, 2}, some(24));
  model.node("GatherND", {"t", "i"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, "(tensor<3xi64>, tensor<8xi64>) -> tensor<8xi64>");
  EXPECT_HAS(text, "(tensor<4xi64>, tensor<8xi64>) -> tensor<8xi64>");
  EXPECT_HAS(text, "(tensor<12x2xf32>, tensor<8xi64>) -> tensor<8x2xf32>");
}

/// Indices [I, K] of data [3, 4]: I rows of them, each as long as `indices` says.
TEST_F(LookupTest, KnownIndicesThatNothingHasAreRefused) {
  const auto gather = [&](const char* op, const Shape& shape, std::vector<int64_t> indices) {
    ModelBuilder model;
    model.input("x", {-1, 4}).output("y").floats("t", {3, 4}, some(12));
    auto& tensor = model.integers("i", indices);
    tensor.clear_dims();
    for (int64_t extent : shape)
      tensor.add_dims(extent);
    model.node(op, {"t", "i"}, {"g"}, "n");
    model.node("ReduceSum", {"g"}, {"s"});
    model.node("Add", {"x", "s"}, {"y"});
    return import(model);
  };
  EXPECT_HAS(gather("GatherND", {2, 2}, {2, -4, 0, 3}), "titan.embedding");
  EXPECT_HAS(gather("GatherND", {2, 2}, {2, 4, 0, 3}), "'n' (GatherND): index 4 is outside of 4");
  EXPECT_HAS(gather("GatherND", {2, 2}, {2, 0, -4, 3}), "'n' (GatherND): index -4 is outside of 3");
  EXPECT_HAS(gather("GatherElements", {1, 4}, {0, 1, 2, 3}),
             "'n' (GatherElements): index 3 is outside of 3");
}

TEST_F(LookupTest, TuplesMayShareLeadingDimensionsWithTheData) {
  const auto gather = [&](const std::vector<int64_t>& data, const std::vector<int64_t>& tuples,
                          int64_t shared) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", data).input("i", tuples, kInt64).output("y");
    ModelBuilder::setInt(model.node("GatherND", {"x", "i"}, {"y"}, "n"), "batch_dims", shared);
    return import(model);
  };
  EXPECT_HAS(gather({-1, 5, 4}, {-1, 3, 1}, 1),
             "(tensor<8x5x4xf32>, tensor<8x3xi64>) -> tensor<8x3x4xf32>");
  std::string text = gather({-1, 5, 4, 3}, {-1, 2, 6, 2}, 1);
  EXPECT_HAS(text, "(tensor<8x20x3xf32>, tensor<8x12xi64>) -> tensor<8x12x3xf32>");
  EXPECT_HAS(text, "to tensor<8x2x6x3xf32>");
  EXPECT_HAS(gather({-1, 5, 4}, {-1, 5, 1}, 2), "tensor<8x5x1xf32> to tensor<8x5xf32>");
  EXPECT_HAS(gather({-1, 5, 4}, {-1, 3, 1}, 2),
             "'n' (GatherND): indices of [8, 3, 1] for data of [8, 5, 4] with batch_dims = 2");
  EXPECT_HAS(gather({-1, 5}, {-1, 2}, 1),
             "indices of [8, 2] for data of [8, 5] with batch_dims = 1");
  EXPECT_HAS(gather({-1, 5}, {-1, 1}, -1), "with batch_dims = -1");
}

TEST_F(LookupTest, APickOfLogProbabilitiesIsALoss) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 5}).input("t", {-1, 1}, kInt64).output("y");
  model.node("LogSoftmax", {"x"}, {"l"});
  ModelBuilder::setInt(model.node("GatherElements", {"l", "t"}, {"y"}), "axis", 1);
  std::string text = import(model);
  EXPECT_HAS(text, "titan.cross_entropy");
  EXPECT_LACKS(text, "titan.log_softmax");
}

TEST_F(LookupTest, OtherPicksAreGathered) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 5}).input("t", {-1, 2}, kInt64).output("y");
  ModelBuilder::setInt(model.node("GatherElements", {"x", "t"}, {"y"}), "axis", 1);
  std::string text = import(model);
  EXPECT_HAS(text, "titan.gather %arg0, %arg1 dim 1");
  EXPECT_LACKS(text, "titan.select");
}

// Rows that nothing is picked from are left out, so that the op knows the batch.
TEST_F(LookupTest, PicksOfFewerRowsReadThose) {
  ModelBuilder model;
  model.input("x", {-1, 5, 4}).input("t", {-1, 2, 3}, kInt64).output("y");
  ModelBuilder::setInt(model.node("GatherElements", {"x", "t"}, {"y"}), "axis", 1);
  EXPECT_HAS(import(model), "(tensor<8x5x3xf32>, tensor<8x2x3xi64>) -> tensor<8x2x3xf32>");
}

TEST_F(LookupTest, PicksOfMoreThanThereIsAreRefused) {
  ModelBuilder model;
  model.input("x", {-1, 5}).input("t", {-1, 2, 1}, kInt64).output("y");
  model.node("GatherElements", {"x", "t"}, {"y"}, "n");
  EXPECT_HAS(import(model), "node 'n' (GatherElements): indices of [8, 2, 1] for data of [8, 5]");
  ModelBuilder wide;
  wide.input("x", {-1, 5, 2}).input("t", {-1, 5, 3}, kInt64).output("y");
  ModelBuilder::setInt(wide.node("GatherElements", {"x", "t"}, {"y"}, "n"), "axis", 1);
  EXPECT_HAS(import(wide), "node 'n' (GatherElements): indices of [8, 5, 3] for data of [8, 5, 2]");
}

TEST_F(LookupTest, TheMeanLossCountsTheTargetsThatAreNotIgnored) {
  ModelBuilder model;
  model.input("x", {-1, 5}).input("t", {-1}, kInt64).output("y");
  ModelBuilder::setInt(model.node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"y"}), "ignore_index",
                       -1);
  std::string text = import(model);
  EXPECT_HAS(text, "ignore_index -1");
  EXPECT_HAS(text, "titan.div");
}

/// The source's call and what the loss of the import has.
struct Smoothing {
  const char *arguments, *keywords, *has;
};

TEST_F(LookupTest, LabelSmoothingIsWhatTheSourceSays) {
  for (const auto& [arguments, keywords, has] :
       {Smoothing{"%linear, %t, None, 1, -100, 0.1", "", "label_smoothing 1.0"},
        Smoothing{"%linear, %t", "ignore_index: -1, label_smoothing: 0.25",
                  "label_smoothing 2.500000e-01"},
        Smoothing{"%linear, %t, None, 1, -100", "", "label_smoothing 0.0"},
        Smoothing{"%linear, %t", "", "label_smoothing 0.0"},
        Smoothing{"%linear, %t, None, 1, -100, %item", "",
                  "node 'loss' (SoftmaxCrossEntropyLoss): label_smoothing = '%item' of the source "
                  "is no number in [0, 1]: export the scores, and set loss.label_smoothing"}}) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", {-1, 5}).input("t", {-1}, kInt64).output("y");
    auto& loss = model.node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"y"}, "loss");
    ModelBuilder::setSource(loss, "", "cross_entropy_loss.default", arguments, keywords);
    EXPECT_HAS(import(model), has);
  }
}

TEST_F(LookupTest, ALossWithoutItsSourceIsNoted) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 5}).input("t", {-1}, kInt64).output("y");
  model.node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"y"}, "loss");
  const std::string note = "node 'loss' (SoftmaxCrossEntropyLoss) may have had label_smoothing: "
                           "PyTorch's exporter leaves it out, and the file does not say";
  EXPECT_EQ(notes(model), std::vector<std::string>{note});
  model.model.set_producer_name("skl2onnx");
  EXPECT_TRUE(notes(model).empty());
}

TEST_F(LookupTest, ClassWeightsHaveOneForEachClass) {
  ModelBuilder model;
  model.input("x", {-1, 2}).input("t", {-1}, kInt64).output("y").floats("w", {3}, some(3));
  model.node("SoftmaxCrossEntropyLoss", {"x", "t", "w"}, {"y"}, "loss");
  EXPECT_HAS(import(model), "node 'loss' (SoftmaxCrossEntropyLoss): class weights of [3] for "
                            "scores of [8, 2]");
}

TEST_F(LookupTest, ClassWeightsWithLabelSmoothingAreOfAllClasses) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 2}).input("t", {-1}, kInt64).output("y").floats("w", {2}, some(2));
  auto& loss = model.node("SoftmaxCrossEntropyLoss", {"x", "t", "w"}, {"y"}, "loss");
  ModelBuilder::setSource(loss, "", "cross_entropy_loss.default", "%x, %t, %w, 1, -100, 0.1");
  const std::string found = import(model);
  EXPECT_HAS(found, "titan.log_softmax");
  EXPECT_HAS(found, "dense<0.899999976>");   // of the target's own class
  EXPECT_HAS(found, "dense<-5.000000e-02>"); // of each of two classes
}

TEST_F(LookupTest, TargetsOfPyTorchMayBeProbabilities) {
  const auto loss = [&](const char* producer, std::vector<int64_t> targets, int64_t weights,
                        const char* reduction) {
    ModelBuilder model;
    model.model.set_producer_name(producer);
    model.input("x", {-1, 4, 3})
        .input("t", targets)
        .output("y")
        .floats("w", {weights}, some(weights));
    auto& node = model.node("SoftmaxCrossEntropyLoss", {"x", "t", "w"}, {"y"}, "loss");
    ModelBuilder::setText(node, "reduction", reduction);
    ModelBuilder::setSource(node, "", "cross_entropy_loss.default", "%x, %t, %w, 1, -100, 0.2");
    return import(model);
  };
  const std::string mean = loss("pytorch", {-1, 4, 3}, 4, "mean");
  EXPECT_HAS(mean, "titan.log_softmax %arg1 dim 1");
  EXPECT_HAS(mean, "dense<8.000000e-01>");
  EXPECT_HAS(mean, "dense<5.000000e-02>");
  EXPECT_HAS(mean, "dense<0.0416666679>"); // of 8 x 3 targets
  EXPECT_HAS(loss("pytorch", {-1, 4, 3}, 4, "none"), "-> (tensor<8x3xf32> {titan.output");
  EXPECT_HAS(loss("pytorch", {-1, 3, 4}, 4, "sum"),
             "node 'loss' (SoftmaxCrossEntropyLoss): probabilities of [8, 3, 4] for scores of "
             "[8, 4, 3]");
  EXPECT_HAS(loss("pytorch", {-1, 4, 3}, 3, "sum"), "class weights of [3] for scores of [8, 4, 3]");
  EXPECT_HAS(loss("other", {-1, 4, 3}, 4, "sum"), "operand 1 has no integers");
}

TEST_F(LookupTest, RemaindersOfFloatsAreOfTheDividend) {
  const auto remainder = [&](int64_t fmod) {
    ModelBuilder model;
    model.input("x", {-1, 2}).output("y").floats("d", {2}, {2, 3});
    ModelBuilder::setInt(model.node("Mod", {"x", "d"}, {"y"}, "n"), "fmod", fmod);
    return import(model);
  };
  EXPECT_HAS(remainder(1), "titan.rem");
  EXPECT_HAS(remainder(0), "node 'n' (Mod): the remainder of floats has the sign of the dividend");
}

TEST_F(LookupTest, SequencesDisappear) {
  ModelBuilder model;
  model.input("x", {-1, 6}).output("y").integers("sizes", {2, 4});
  ModelBuilder::setInt(model.node("SplitToSequence", {"x", "sizes"}, {"s"}), "axis", 1);
  ModelBuilder::setInt(model.node("ConcatFromSequence", {"s"}, {"y"}), "axis", 1);
  std::string text = import(model);
  EXPECT_HAS(text, "tensor<8x2xf32>, tensor<8x4xf32>");
}

// Two pieces and one more: where it lands, by the types of what is joined.
TEST_F(LookupTest, SequencesCountFromBothEnds) {
  const auto joined = [&](int64_t position) {
    ModelBuilder model;
    model.input("x", {-1, 6}).output("y").integers("sizes", {2, 4});
    model.integers("position", {position});
    model.integers("start", {0});
    model.integers("end", {3});
    model.integers("axis", {1});
    ModelBuilder::setInt(model.node("SplitToSequence", {"x", "sizes"}, {"s"}), "axis", 1);
    model.node("Slice", {"x", "start", "end", "axis"}, {"more"});
    model.node("SequenceInsert", {"s", "more", "position"}, {"t"}, "n");
    ModelBuilder::setInt(model.node("ConcatFromSequence", {"t"}, {"y"}), "axis", 1);
    return import(model);
  };
  EXPECT_HAS(joined(-2), "tensor<8x3xf32>, tensor<8x2xf32>, tensor<8x4xf32>");
  EXPECT_HAS(joined(0), "tensor<8x3xf32>, tensor<8x2xf32>, tensor<8x4xf32>");
  EXPECT_HAS(joined(-1), "tensor<8x2xf32>, tensor<8x3xf32>, tensor<8x4xf32>");
  EXPECT_HAS(joined(1), "tensor<8x2xf32>, tensor<8x3xf32>, tensor<8x4xf32>");
  EXPECT_HAS(joined(2), "tensor<8x2xf32>, tensor<8x4xf32>, tensor<8x3xf32>");
  EXPECT_HAS(joined(3), "node 'n' (SequenceInsert): axis 3 is outside of rank 2");
  EXPECT_HAS(joined(-3), "node 'n' (SequenceInsert): axis -3 is outside of rank 2");
}

TEST_F(LookupTest, RunningSumsAndProductsTakeLogarithmicallyManySteps) {
  for (const std::string op : {"CumSum", "CumProd"}) {
    ModelBuilder model(26);
    model.input("x", {-1, 6}).output("y").integers("axis", {1});
    model.node(op, {"x", "axis"}, {"y"});
    std::string text = import(model);
    size_t pads = 0;
    for (size_t at = 0; (at = text.find("titan.pad", at)) != std::string::npos; ++at)
      ++pads;
    EXPECT_EQ(pads, 3u);
    EXPECT_LACKS(text, "titan.div");
    EXPECT_HAS(text, op == "CumSum" ? "titan.add" : "value = 1.000000e+00");
  }
}

// x.as_strided([2, 3], [1, 2]) of the legacy exporter; x.flatten()[i] has no positions.
TEST_F(LookupTest, StridedViewsOfTheLegacyExporterAreNoted) {
  auto notesOf = [](const char* counts) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", {-1, 4}).output("y").integers("all", {-1}).set_name("/Constant");
    model.floats("/Constant_1", {3}, {1, 1, 1});
    model.integers("/Constant_2", {2}, {1});
    model.node("Reshape", {"x", "/Constant"}, {"list"});
    model.node(counts, {"/Constant_1"}, {"counted"});
    ModelBuilder::setInt(model.node("Cast", {"counted"}, {"positions"}), "to", 7);
    model.node("Mul", {"positions", "/Constant_2"}, {"places"});
    model.node("Gather", {"list", "places"}, {"y"}, "n");
    return notes(model);
  };
  EXPECT_EQ(notesOf("NonZero"),
            std::vector<std::string>{
                "node 'n' (Gather) may have been as_strided(): PyTorch's legacy exporter takes its "
                "operand for contiguous, and computes something else where it is a transposed "
                "view"});
  EXPECT_TRUE(notesOf("Relu").empty());
}

} // namespace
} // namespace titan::frontend
