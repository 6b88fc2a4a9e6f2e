// Recurrent layers: what each becomes, from weights as the file has them and from gates that were
// reordered, and what each refusal says.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class RecurrenceTest : public testing::ImportFixture {
protected:
  static constexpr int64_t steps = 4, inputs = 3, hidden = 2;

  void floats(const std::string& name, const std::vector<int64_t>& shape, float value = 0.5f) {
    size_t count = 1;
    for (int64_t extent : shape)
      count *= static_cast<size_t>(extent);
    model.floats(name, shape, std::vector<float>(count, value));
  }
  /// `x` [steps, batch, inputs], and the output.
  void addInput() {
    model.input("samples", {-1, steps, inputs}).output("y");
    ModelBuilder::setInts(model.node("Transpose", {"samples"}, {"x"}), "perm", {1, 0, 2});
  }
  /// Weights `w`, `r` and `b` of one direction or two, and the input and output.
  void weights(int64_t gates, int64_t directions = 1) {
    addInput();
    floats("w", {directions, gates * hidden, inputs});
    floats("r", {directions, gates * hidden, hidden});
    floats("b", {directions, 2 * gates * hidden});
  }
  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& more = {},
                          const std::vector<std::string>& outputs = {"y"}) {
    std::vector<std::string> operands = {"x", "w", "r", "b"};
    operands.insert(operands.end(), more.begin(), more.end());
    return model.node(op, operands, outputs, "rnn");
  }
  /// What the import says of an LSTM that `change` made another.
  std::string importLstm(llvm::function_ref<void(::onnx::NodeProto&)> change,
                         const std::vector<std::string>& more = {}) {
    model = ModelBuilder();
    weights(4);
    change(node("LSTM", more));
    return import(model);
  }

  ModelBuilder model;
};

TEST_F(RecurrenceTest, GatesLieWhereTheFileHasThem) {
  weights(4);
  node("LSTM");
  std::string text = import(model);
  EXPECT_HAS(text, " lstm %");
  EXPECT_HAS(text, "order [0, 2, 3, 1]");
  EXPECT_HAS(text, "(tensor<4x8x8xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, "
                   "tensor<8xf32>) -> (tensor<4x8x2xf32>, tensor<4x8x8xf32>, tensor<4x8x2xf32>)");
}

TEST_F(RecurrenceTest, ReorderedGatesAreAnOrder) {
  addInput();
  floats("w", {8, inputs});
  floats("r", {8, hidden});
  floats("bw", {8});
  floats("br", {8});
  model.integers("zero", {0});
  // i f g o to i o f g, as PyTorch's exporters write it.
  const auto reorder = [&](const std::string& name) {
    std::vector<std::string> parts;
    for (int64_t gate : {0, 3, 1, 2}) {
      const std::string part = name + std::to_string(gate);
      model.integers(part + ".from", {gate * hidden});
      model.integers(part + ".to", {(gate + 1) * hidden});
      model.node("Slice", {name, part + ".from", part + ".to", "zero"}, {part});
      parts.push_back(part);
    }
    ModelBuilder::setInt(model.node("Concat", parts, {name + ".all"}), "axis", 0);
  };
  for (const char* name : {"w", "r", "bw", "br"})
    reorder(name);
  ModelBuilder::setInt(model.node("Concat", {"bw.all", "br.all"}, {"b.all"}), "axis", 0);
  for (const char* name : {"w", "r", "b"})
    model.node("Unsqueeze", {std::string(name) + ".all", "zero"}, {std::string(name) + ".in"});
  model.node("LSTM", {"x", "w.in", "r.in", "b.in"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, "order [0, 1, 2, 3]");
  EXPECT_LACKS(text, "titan.concat");
}

TEST_F(RecurrenceTest, OneOfEachDirection) {
  weights(3, 2);
  auto& gru = node("GRU", {}, {"y", "h"});
  ModelBuilder::setText(gru, "direction", "bidirectional");
  ModelBuilder::setInt(gru, "linear_before_reset", 1);
  model.output("h");
  std::string text = import(model);
  EXPECT_HAS(text, " gru %");
  EXPECT_HAS(text, "order [1, 0, 2] {");
  EXPECT_HAS(text, "order [1, 0, 2] reverse");
  EXPECT_HAS(text, "offsets [3, 0, 0]"); // the last step of the one,
  EXPECT_HAS(text, "offsets [0, 0, 0]"); // and of the other
}

TEST_F(RecurrenceTest, TheFormOfAGruFollowsItsAttribute) {
  weights(3);
  node("GRU");
  EXPECT_HAS(import(model), " gru_reset_before %");
}

TEST_F(RecurrenceTest, RefusesWhatNoCellComputes) {
  EXPECT_HAS(importLstm([](auto& node) { ModelBuilder::setFloat(node, "clip", 3); }),
             "node 'rnn' (LSTM): clip = 3 is not supported");
  EXPECT_HAS(importLstm([](auto& node) { ModelBuilder::setInt(node, "input_forget", 1); }),
             "input_forget = 1 is not supported");
  EXPECT_HAS(importLstm([](auto& node) { ModelBuilder::setText(node, "direction", "both"); }),
             "direction = 'both'");
  EXPECT_HAS(importLstm([](auto& node) { ModelBuilder::setInt(node, "hidden_size", 3); }),
             "W [1, 8, 3] and R [1, 8, 2] do not fit X [4, 8, 3] in 1 direction, with "
             "hidden_size = 3");
  EXPECT_HAS(importLstm([](auto& node) {
               auto* activations = node.add_attribute();
               activations->set_name("activations");
               activations->set_type(::onnx::AttributeProto::STRINGS);
               for (const char* name : {"Sigmoid", "Relu", "Tanh"})
                 activations->add_strings(name);
             }),
             "activation 'Relu' is not supported: only Sigmoid, Tanh, Tanh are");
  const auto nothing = [](auto&) {};
  EXPECT_HAS(importLstm([&](auto&) { floats("p", {1, 6}); }, {"", "", "", "p"}),
             "peepholes (operand P) are not supported");
  EXPECT_HAS(importLstm([](auto& node) {
               ModelBuilder::setSource(node, "l", "lstm.input",
                                       "%x, [%zeros, %zeros_1], [%p_l_weight_ih_l0, "
                                       "%p_l_weight_hh_l0, %p_l_weight_hr_l0], False, 1, 0.0, "
                                       "True, False, True");
             }),
             "a projection of the output (proj_size) is not supported: 'l_weight_hr_l0' is not in "
             "the file");
  EXPECT_HAS(importLstm([&](auto&) { floats("h", {1, 7, hidden}); }, {"", "h"}),
             "first states of shape [1, 7, 2] are not [1, 8, 2]");
  EXPECT_HAS(importLstm([&](auto&) { model.integers("n", {4, 3}); }, {"n"}),
             "sequences of different lengths are not supported: sequence_lens has others than 4");
  EXPECT_HAS(importLstm(nothing), " lstm %");
}

TEST_F(RecurrenceTest, RefusesABiasOfAnotherShape) {
  addInput();
  floats("w", {1, 8, inputs});
  floats("r", {1, 8, hidden});
  floats("b", {1, 8});
  node("LSTM");
  EXPECT_HAS(import(model), "B [1, 8] is not [1, 16] of f32");
}

} // namespace
} // namespace titan::frontend
