// Recurrent layers in conversions to an older opset, whose operands the graph computes: each gate
// of a parameter is cut out of it.
#include "frontend/onnx/testing/FoldedFixture.h"

namespace titan::frontend {
namespace {

using Names = std::vector<std::string>;

/// LSTM nodes whose operands are computed as torch.export does it, but of two gates, not of four.
class RecurrentReads : public testing::FoldedFixture {
protected:
  std::string node(const char* type, const Names& inputs) {
    std::string value = "val_" + std::to_string(values_++);
    auto& proto = model_.node(type, inputs, {value}, "node_" + value);
    if (std::string_view(type) == "Concat")
      ModelBuilder::setInt(proto, "axis", 0);
    return value;
  }

  /// The gates of a parameter in ONNX' order.
  std::string gates(const std::string& parameter) {
    std::string first = node("Slice", {parameter, "zero", "one", "zero"});
    std::string second = node("Slice", {parameter, "one", "two", "zero"});
    return node("Concat", {second, first});
  }

  std::string joined(const Names& parts) {
    return parts.size() == 1 ? parts.front() : node("Concat", parts);
  }

  /// A call of the layers `suffixes`, one for each direction. `biases` replaces names of biases.
  void call(const std::string& x, const Names& suffixes, const std::string& result,
            const std::map<std::string, std::string>& biases = {}) {
    Names w, r, b;
    for (const std::string& suffix : suffixes) {
      auto bias = [&](std::string name) {
        name += suffix;
        return gates(biases.contains(name) ? biases.at(name) : name);
      };
      w.push_back(node("Unsqueeze", {gates("rnn.weight_ih" + suffix), "zero"}));
      r.push_back(node("Unsqueeze", {gates("rnn.weight_hh" + suffix), "zero"}));
      const std::string both = joined({bias("rnn.bias_ih"), bias("rnn.bias_hh")});
      b.push_back(node("Unsqueeze", {both, "zero"}));
    }
    const Names operands = {x, joined(w), joined(r), joined(b), "", "state", "state"};
    auto& lstm = model_.node("LSTM", operands, {result}, "node_" + result);
    ModelBuilder::setInt(lstm, "hidden_size", 1);
    ModelBuilder::setText(lstm, "direction", suffixes.size() == 2 ? "bidirectional" : "forward");
  }

  void parameters(const Names& suffixes) {
    for (const std::string& suffix : suffixes) {
      const float drawn = static_cast<float>(++drawn_);
      floats("rnn.weight_ih" + suffix, {2, 2}, {drawn, 0.113f, 0.31f, drawn});
      floats("rnn.weight_hh" + suffix, {2, 1}, {0.31f, drawn});
      floats("rnn.bias_ih" + suffix, {2}, {0.944f, drawn});
      floats("rnn.bias_hh" + suffix, {2}, {-0.72f, drawn});
    }
  }

  void SetUp() override {
    model_.integers("zero", {0});
    model_.integers("one", {1});
    model_.integers("two", {2});
    floats("state", {1, 2, 1}, {0, 0});
  }

  /// What the tensors of the file are called that slices read, in their order.
  Names names() {
    read();
    Names found;
    for (const Node& node : graph_.nodes)
      if (node.opType == "Slice")
        if (std::string name = names_.find(node.inputs[0])->name;
            std::ranges::find(found, name) == found.end())
          found.push_back(name);
    return found;
  }

  using ModelBuilder = testing::ModelBuilder;
  int values_ = 0, drawn_ = 0;
};

const Names kFirst = {"rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_ih_l0", "rnn.bias_hh_l0"};

TEST_F(RecurrentReads, TheGatesOfAParameterAreOne) {
  parameters({"_l0"});
  call("x", {"_l0"}, "y");
  EXPECT_EQ(names(), kFirst);
  EXPECT_EQ(notes().find("several layers"), std::string::npos) << notes();
  for (const std::string& name : kFirst)
    EXPECT_FALSE(names_.find(name)->guessed) << name;
}

TEST_F(RecurrentReads, EachDirectionHasItsOwn) {
  parameters({"_l0", "_l0_reverse"});
  call("x", {"_l0", "_l0_reverse"}, "y");
  Names expected = kFirst;
  for (const std::string& name : kFirst)
    expected.push_back(name + "_reverse");
  EXPECT_EQ(names(), expected);
  EXPECT_EQ(notes().find("several layers"), std::string::npos) << notes();
}

TEST_F(RecurrentReads, ALayerThatIsCalledTwiceIsOneWithANote) {
  parameters({"_l0"});
  call("x", {"_l0"}, "lstm");
  call("lstm", {"_l0"}, "y");
  EXPECT_EQ(names(), kFirst);
  EXPECT_NE(notes().find("4 tensors are read by several layers each, and are one parameter"),
            std::string::npos)
      << notes();
}

TEST_F(RecurrentReads, MergedBiasesAreCalledAfterTheMatrixBesideThem) {
  parameters({"_l0", "_l1_reverse"});
  floats("rnn.zeros", {2}, {0, 0});
  const std::map<std::string, std::string> biases = {{"rnn.bias_ih_l0", "rnn.zeros"},
                                                     {"rnn.bias_hh_l0", "rnn.zeros"},
                                                     {"rnn.bias_hh_l1_reverse", "rnn.zeros"}};
  auto* tensors = model_.model.mutable_graph()->mutable_initializer();
  for (int i = tensors->size(); i-- > 0;)
    if (biases.contains(tensors->Get(i).name()))
      tensors->DeleteSubrange(i, 1);
  call("x", {"_l0"}, "lstm", biases);
  call("lstm", {"_l1_reverse"}, "y", biases);
  Names expected = kFirst;
  for (const char* leaf : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
    expected.push_back(std::string("rnn.") + leaf + "_l1_reverse");
  EXPECT_EQ(names(), expected);
  EXPECT_NE(notes().find("'rnn.zeros' was merged from parameters of equal value, read by 3 layers: "
                         "they are separate here, named after the recurrent matrices beside them"),
            std::string::npos)
      << notes();
}

TEST_F(RecurrentReads, AFoldedBiasIsCalledAfterAMatrixThatKeptItsName) {
  parameters({"_l0_reverse"});
  call("x", {"_l0_reverse"}, "y");
  floats("val_99", {1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  auto& graph = *model_.model.mutable_graph();
  graph.mutable_node(graph.node_size() - 1)->set_input(3, "val_99");
  read();
  Names found;
  for (const StatePiece& piece : names_.find("val_99")->pieces)
    if (found.empty() || found.back() != piece.state)
      found.push_back(piece.state);
  EXPECT_EQ(found, (Names{"rnn.bias_ih_l0_reverse", "rnn.bias_hh_l0_reverse"}));
}

TEST_F(RecurrentReads, FoldedBiasesOfTwoLayersAreTwo) {
  const std::string arguments =
      "%x, [%zeros, %zeros_1], [%p_rnn_weight_ih_l0, %p_rnn_weight_hh_l0, %p_rnn_bias_ih_l0, "
      "%p_rnn_bias_hh_l0, %p_rnn_weight_ih_l1, %p_rnn_weight_hh_l1, %p_rnn_bias_ih_l1, "
      "%p_rnn_bias_hh_l1], True, 2, 0.0, True, False, True";
  auto layer = [&](const std::string& x, const std::string& w, const std::string& r,
                   const std::string& result) {
    add("GRU", {x, w, r, "val_8", "", "state"}, result, "rnn", "gru.input", arguments);
    auto& nodes = *model_.model.mutable_graph()->mutable_node();
    ModelBuilder::setInt(nodes[nodes.size() - 1], "hidden_size", 1);
  };
  int drawn = 0;
  for (const char* matrix : {"val_1", "val_2", "val_3", "val_4"})
    floats(matrix, {1, 3, 1}, {0.31f, static_cast<float>(++drawn), 0.113f});
  floats("val_8", {1, 6}, {0, 0, 0, 0, 0, 0});
  layer("x", "val_1", "val_2", "val_20");
  layer("val_20", "val_3", "val_4", "y");
  Names expected;
  for (const char* layer : {"_l0", "_l1"})
    for (const char* leaf : {"rnn.weight_ih", "rnn.weight_hh", "rnn.bias_ih", "rnn.bias_hh"})
      expected.push_back(std::string(leaf) + layer);
  sign(expected);
  read();
  Names found;
  for (size_t node : {0, 1})
    for (size_t k : {1, 2, 3})
      for (const StatePiece& piece : operand(node, k).pieces)
        if (std::ranges::find(found, piece.state) == found.end())
          found.push_back(piece.state);
  EXPECT_EQ(found, expected);
}

TEST_F(RecurrentReads, ZerosThatALayerStartsFromAreNoParameter) {
  parameters({"_l0"});
  call("x", {"_l0"}, "y");
  auto& graph = *model_.model.mutable_graph();
  for (auto& tensor : *graph.mutable_initializer())
    if (tensor.name() == "state")
      tensor.set_name("val_99");
  auto& lstm = *graph.mutable_node(graph.node_size() - 1);
  lstm.set_input(5, "val_99");
  lstm.set_input(6, "val_99");
  read();
  EXPECT_EQ(names_.find("val_99")->kind, TensorKind::Constant);
  EXPECT_NE(notes().find("'val_99' is zeros that a recurrent layer starts from"), std::string::npos)
      << notes();
}

} // namespace
} // namespace titan::frontend
