// Matrices of one attention that an exporter folded apart, or together.
#include "frontend/onnx/testing/NamedGraph.h"

namespace titan::frontend {
namespace {

using testing::graphOf;
using testing::ModelBuilder;

/// A cross-attention as the legacy exporter folds it, with or without its biases.
ModelBuilder crossAttention(bool bias) {
  ModelBuilder model;
  model.input("x", {4, 2}).input("memory", {4, 2}).output("y");
  model.floats("onnx::MatMul_3", {2, 4}, std::vector<float>(8)); // keys and values first
  model.floats("onnx::MatMul_2", {2, 2}, std::vector<float>(4));
  model.floats("onnx::MatMul_4", {2, 2}, std::vector<float>(4));
  model.node("MatMul", {"x", "onnx::MatMul_2"}, {"q"}, "/attn/MatMul");
  model.node("MatMul", {"memory", "onnx::MatMul_3"}, {"kv"}, "/attn/MatMul_1");
  if (bias) {
    model.floats("attn.out_proj.bias", {2}, {0, 0});
    model.node("Identity", {"attn.out_proj.bias"}, {"onnx::Add_7"}, "Identity_1");
    model.floats("onnx::Add_8", {4}, {0, 0, 0, 0});
    model.node("Add", {"onnx::Add_7", "q"}, {"qb"}, "/attn/Add");
    model.node("Add", {"onnx::Add_8", "kv"}, {"kvb"}, "/attn/Add_1");
  }
  model.node("MatMul", {bias ? "qb" : "q", bias ? "kvb" : "kv"}, {"c"}, "/attn/MatMul_2");
  model.node("MatMul", {"c", "onnx::MatMul_4"}, {bias ? "o" : "y"}, "/attn/MatMul_3");
  if (bias)
    model.node("Add", {"attn.out_proj.bias", "o"}, {"y"}, "/attn/Add_2");
  return model;
}

std::map<std::string, Shape> statesOf(const NameTable& table) {
  std::map<std::string, Shape> states;
  for (const NamedState& state : table.states)
    states[state.name] = state.shape;
  return states;
}

TEST(Projections, QueriesAndKeysAreOneProjection) {
  ModelBuilder model = crossAttention(/*bias=*/false);
  NameTable table = nameTensors(graphOf(model)).take();
  EXPECT_EQ(statesOf(table), (std::map<std::string, Shape>{{"attn.in_proj_weight", {6, 2}},
                                                           {"attn.out_proj.weight", {2, 2}}}));
  for (const NamedTensor& tensor : table.tensors)
    EXPECT_TRUE(tensor.guessed);
  EXPECT_EQ(table.find("onnx::MatMul_2")->pieces[0].piece, (Piece{{0, 0}, {0, 0}, {2, 2}, {1, 0}}));
  EXPECT_EQ(table.find("onnx::MatMul_3")->pieces[0].piece, (Piece{{2, 0}, {0, 0}, {4, 2}, {1, 0}}));
}

TEST(Projections, TheirBiasesAreOneToo) {
  // Zeros, as before training: the exporter takes those of the queries for another bias.
  ModelBuilder model = crossAttention(/*bias=*/true);
  NameTable table = nameTensors(graphOf(model)).take();
  EXPECT_EQ(statesOf(table), (std::map<std::string, Shape>{{"attn.in_proj_bias", {6}},
                                                           {"attn.in_proj_weight", {6, 2}},
                                                           {"attn.out_proj.bias", {2}},
                                                           {"attn.out_proj.weight", {2, 2}}}));
  // A part that is called otherwise leaves a gap.
  NameOverrides overrides =
      parseNamesFile("[\"onnx::Add_7\"]\nname = \"attn.q_bias\"\n", "map.toml").take();
  Result<NameTable> renamed = nameTensors(graphOf(model), overrides);
  ASSERT_FALSE(renamed.ok());
  EXPECT_EQ(renamed.error().message(),
            "the pieces of 'attn.in_proj_bias' leave 2 of 6 elements out");
}

TEST(Projections, ThreeSquaresOfAnAttentionAreOneProjection) {
  // nn.MultiheadAttention(q(x), x, v(x)), as the legacy exporter folds it, trained: biases differ.
  for (bool bias : {true, false}) {
    ModelBuilder model;
    model.input("x", {4, 2}).output("y");
    std::vector<std::string> values;
    for (int i = 0; i < 3; ++i) {
      std::string n = std::to_string(i), matrix = "onnx::MatMul_" + std::to_string(191 + i);
      float f = static_cast<float>(i);
      model.floats(matrix, {2, 2}, {1 + f, 2, 3, 4});
      model.node("MatMul", {"x", matrix}, {"p" + n}, "/n0/attend/MatMul_" + n);
      values.push_back(bias ? "b" + n : "p" + n);
      if (!bias)
        continue;
      model.floats("onnx::Add_" + std::to_string(186 + i), {2}, {f, 1});
      model.node("Add", {"onnx::Add_" + std::to_string(186 + i), "p" + n}, {"b" + n},
                 "/n0/attend/Add_" + n);
    }
    model.node("MatMul", {values[0], values[1]}, {"s"}, "/n0/attend/MatMul_3");
    model.node("MatMul", {"s", values[2]}, {"c"}, "/n0/attend/MatMul_4");
    if (bias) {
      model.floats("named.n0.attend.out_proj.weight", {2, 2}, {5, 6, 7, 8});
      model.floats("named.n0.attend.out_proj.bias", {2}, {5, 6});
      ModelBuilder::setInt(
          model.node("Gemm",
                     {"c", "named.n0.attend.out_proj.weight", "named.n0.attend.out_proj.bias"},
                     {"y"}, "/n0/attend/Gemm"),
          "transB", 1);
    } else {
      model.floats("onnx::MatMul_211", {2, 2}, {5, 6, 7, 8});
      model.node("MatMul", {"c", "onnx::MatMul_211"}, {"y"}, "/n0/attend/MatMul_5");
    }
    NameTable table = nameTensors(graphOf(model)).take();
    // Without a tensor that has kept its name, the container of "/n0" is not known.
    std::string attend = bias ? "named.n0.attend" : "n0.attend";
    std::map<std::string, Shape> states{{attend + ".in_proj_weight", {6, 2}},
                                        {attend + ".out_proj.weight", {2, 2}}};
    if (bias)
      states.insert({{attend + ".in_proj_bias", {6}}, {attend + ".out_proj.bias", {2}}});
    EXPECT_EQ(statesOf(table), states);
    EXPECT_EQ(table.find("onnx::MatMul_192")->pieces[0].piece,
              (Piece{{2, 0}, {0, 0}, {2, 2}, {1, 0}}));
    EXPECT_TRUE(table.find("onnx::MatMul_192")->guessed);
  }
}

} // namespace
} // namespace titan::frontend
