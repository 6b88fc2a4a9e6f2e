// Loops whose iterations follow from shapes.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class LoopTest : public testing::ImportFixture {
protected:
  static ::onnx::NodeProto& add(::onnx::GraphProto& graph, const std::string& type,
                                const std::vector<std::string>& inputs, const std::string& output) {
    ::onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(type);
    for (const std::string& input : inputs)
      node.add_input(input);
    node.add_output(output);
    return node;
  }

  /// The body of a Loop that reads `inputs` and gives `outputs`.
  static ::onnx::GraphProto& loop(ModelBuilder& model, const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs,
                                  const std::vector<std::string>& bodyInputs,
                                  const std::vector<std::string>& bodyOutputs) {
    ::onnx::AttributeProto& body = *model.node("Loop", inputs, outputs, "loop").add_attribute();
    body.set_name("body");
    body.set_type(::onnx::AttributeProto::GRAPH);
    for (const std::string& input : bodyInputs)
      body.mutable_g()->add_input()->set_name(input);
    for (const std::string& output : bodyOutputs)
      body.mutable_g()->add_output()->set_name(output);
    return *body.mutable_g();
  }

  /// Bags of three words, each a run of one list, as exporters write an EmbeddingBag: `rows` makes
  /// the vector of a bag of its words' rows.
  template <typename Rows> static ModelBuilder bags(Rows rows) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch"); // no index counts from the end
    model.input("bags", {-1, 3}, ::onnx::TensorProto::INT64).output("y");
    model.floats("w.weight", {7, 2}, std::vector<float>(14, 1));
    model.integers("flat", {-1});
    model.integers("zero", {0});
    model.integers("one", {1});
    model.integers("three", {3});
    model.node("Reshape", {"bags", "flat"}, {"words"});
    model.node("Shape", {"bags"}, {"shape"});
    model.node("Gather", {"shape", "zero"}, {"count"});
    ::onnx::GraphProto& body = loop(model, {"count", ""}, {"y"}, {"i", "goes"}, {"on", "row"});
    add(body, "Mul", {"i", "three"}, "begin");
    add(body, "Add", {"begin", "three"}, "end");
    add(body, "Slice", {"words", "begin", "end", "zero"}, "bag");
    add(body, "Gather", {"w.weight", "bag"}, "rows");
    rows(body);
    add(body, "Identity", {"goes"}, "on");
    return model;
  }
};

TEST_F(LoopTest, BagsOfOneSizeAreReducedAtOnce) {
  std::string sums = import(bags([](::onnx::GraphProto& body) {
    ModelBuilder::setInt(add(body, "ReduceSum", {"rows", "zero"}, "row"), "keepdims", 0);
  }));
  EXPECT_HAS(sums, "(tensor<7x2xf32>, tensor<8x3xi64>) -> tensor<8x3x2xf32>");
  EXPECT_HAS(sums, "[1] {path = [\"loop\"]} : tensor<8x3x2xf32> to tensor<8x2xf32>");
  EXPECT_LACKS(sums, "titan.concat");
  EXPECT_LACKS(sums, "titan.slice");
}

// torch.export divides the sum of the last bag, and takes the mean of the others.
TEST_F(LoopTest, MeansOfBagsAreOneMean) {
  std::string means = import(bags([](::onnx::GraphProto& body) {
    auto branch = [&](::onnx::NodeProto& node, const char* name) -> ::onnx::GraphProto& {
      ::onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(::onnx::AttributeProto::GRAPH);
      return *attribute.mutable_g();
    };
    add(body, "Sub", {"count", "one"}, "last");
    add(body, "Equal", {"i", "last"}, "isLast");
    ::onnx::NodeProto& choice = add(body, "If", {"isLast"}, "row");
    ::onnx::GraphProto &quotient = branch(choice, "then_branch"),
                       &mean = branch(choice, "else_branch");
    add(quotient, "ReduceSum", {"rows", "zero"}, "sum");
    ModelBuilder::setInt(add(quotient, "Cast", {"three"}, "number"), "to", 1);
    add(quotient, "Div", {"sum", "number"}, "divided");
    quotient.add_output()->set_name("divided");
    ModelBuilder::setInts(add(mean, "ReduceMean", {"rows"}, "meant"), "axes", {0});
    mean.add_output()->set_name("meant");
  }));
  EXPECT_HAS(means, "[1] {path = [\"loop\"]} : tensor<8x3x2xf32> to tensor<8x2xf32>");
  EXPECT_HAS(means, "dense<0.333333343>");
  EXPECT_LACKS(means, "titan.concat");
}

/// Four steps of h = tanh(h + x[:, i]), as long as `goesOn` of the step, an op of `limit`, says so.
static ModelBuilder recurrence(int64_t limit) {
  ModelBuilder model;
  model.input("x", {-1, 4, 3}).output("h");
  model.integers("steps", {4}, {1});
  model.integers("limit", {limit}, {1});
  model.integers("zero", {0}, {1});
  ModelBuilder::setInt(model.node("Gather", {"x", "zero"}, {"first"}), "axis", 1);
  return model;
}

TEST_F(LoopTest, ValuesAreCarriedUntilItsConditionFails) {
  auto steps = [&](int64_t limit) {
    ModelBuilder model = recurrence(limit);
    ::onnx::GraphProto& body =
        loop(model, {"steps", "", "first"}, {"h"}, {"i", "goes", "h0"}, {"on", "h1"});
    add(body, "Less", {"i", "limit"}, "on");
    ModelBuilder::setInt(add(body, "Gather", {"x", "i"}, "xi"), "axis", 1);
    add(body, "Add", {"h0", "xi"}, "sum");
    add(body, "Tanh", {"sum"}, "h1");
    const std::string text = import(model);
    size_t count = 0;
    for (size_t at = text.find("titan.tanh"); at != std::string::npos;
         at = text.find("titan.tanh", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(steps(9), 4);
  EXPECT_EQ(steps(1), 2);
}

TEST_F(LoopTest, SequencesGrowFromNothing) {
  ModelBuilder model = recurrence(9);
  model.node("SequenceEmpty", {}, {"none"});
  ::onnx::GraphProto& body =
      loop(model, {"steps", "", "none"}, {"all"}, {"i", "goes", "some"}, {"goes", "more"});
  ModelBuilder::setInt(add(body, "Gather", {"x", "i"}, "xi"), "axis", 1);
  add(body, "Tanh", {"xi"}, "t");
  add(body, "SequenceInsert", {"some", "t"}, "more");
  ModelBuilder::setInt(model.node("ConcatFromSequence", {"all"}, {"h"}), "axis", 1);
  EXPECT_HAS(import(model), "tensor<8x4x3xf32>");

  ModelBuilder empty;
  empty.input("x", {-1}).output("y").node("SequenceEmpty", {}, {"none"});
  ModelBuilder::setInt(empty.node("ConcatFromSequence", {"none"}, {"y"}, "n"), "axis", 0);
  EXPECT_HAS(import(empty), "node 'n' (ConcatFromSequence): joins an empty sequence");
  empty.model.mutable_graph()->mutable_node(1)->set_op_type("SequenceErase");
  EXPECT_HAS(import(empty), "takes an element of an empty sequence");
}

TEST_F(LoopTest, WhatTheModelDecidesIsRefused) {
  auto refusal = [&](const std::string& count, const std::string& on,
                     const std::vector<std::string>& outputs = {"h"}) {
    ModelBuilder model = recurrence(9);
    model.integers("none", {0}, {1});
    model.node("ReduceMax", {"x"}, {"most"});
    ModelBuilder::setInt(model.node("Cast", {"most"}, {"number"}), "to", 7);
    ::onnx::GraphProto& body =
        loop(model, {count, "", "first"}, outputs, {"i", "goes", "h0"}, {"on", "h1"});
    add(body, "Less", {"i", on}, "on");
    add(body, "Tanh", {"h0"}, "h1");
    return import(model);
  };
  EXPECT_HAS(refusal("number", "limit"),
             "node 'loop' (Loop): its number of iterations is computed by the model: only one that "
             "follows from shapes is supported");
  EXPECT_HAS(refusal("steps", "number"),
             "node 'loop' (Loop): its condition is computed by the model");
  EXPECT_HAS(refusal("steps", "limit", {"h", "more"}),
             "node 'loop' (Loop): its body has 3 inputs and 2 outputs, the node 2 outputs");
}

TEST_F(LoopTest, BagsWhoseOffsetsAreAnInputSayWhatToExport) {
  ModelBuilder model = recurrence(9);
  model.input("number", {1}, ::onnx::TensorProto::INT64);
  ::onnx::GraphProto& body =
      loop(model, {"number", "", "first"}, {"h"}, {"i", "goes", "h0"}, {"goes", "h1"});
  add(body, "Tanh", {"h0"}, "h1");
  ModelBuilder::setSource(*model.model.mutable_graph()->mutable_node()->rbegin(), "bags",
                          "embedding_bag.padding_idx", "%p_bags_weight, %indices, %offsets");
  EXPECT_HAS(import(model),
             "in module 'bags'; where offsets are an input, bags have no size that is known: "
             "export with indices of shape [bags, size], and padding_idx for what a bag lacks");
}

TEST_F(LoopTest, LoopsWithoutIterationsOrWithoutEndAreRefused) {
  auto refusal = [&](const std::vector<std::string>& inputs) {
    ModelBuilder model = recurrence(9);
    model.integers("none", {0}, {1});
    ::onnx::GraphProto& body = loop(model, inputs, {"h"}, {"i", "goes"}, {"goes", "row"});
    add(body, "Tanh", {"first"}, "row");
    return import(model);
  };
  EXPECT_HAS(refusal({"none", ""}), "node 'loop' (Loop): it has no iteration");
  EXPECT_HAS(refusal({"steps", "", "first"}), "node 'loop' (Loop): has 3 inputs, its body 2");

  ModelBuilder endless = recurrence(9);
  loop(endless, {"", "", "first"}, {"h"}, {"i", "goes", "h0"}, {"goes", "h0"});
  EXPECT_HAS(import(endless), "node 'loop' (Loop): its iterations have more than 1000000 nodes");
}

} // namespace
} // namespace titan::frontend
