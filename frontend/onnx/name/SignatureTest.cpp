// Names from the signature that torch.export writes, and what files tell that lack data or scopes.
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;
constexpr int kInt64 = ::onnx::TensorProto::INT64;

const char* const kSignature = "\n# inputs\n"
                               "p_wte_weight: PARAMETER target='wte.weight'\n"
                               "p_wpe_weight: PARAMETER target='wpe.weight'\n"
                               "p_lm_head_weight: PARAMETER target='lm_head.weight'\n"
                               "b_mask: BUFFER target='mask' persistent=True\n"
                               "b_inv_freq: BUFFER target='inv_freq' persistent=False\n"
                               "idx: USER_INPUT\n\n# outputs\nlinear: USER_OUTPUT\n";

/// Tokens plus positions, then a head: the head's weight is tied to the embedding and was stored
/// transposed as `val_0`, the rows of the position table as `embedding_1`.
ModelBuilder foldedGpt() {
  ModelBuilder model(20);
  model.model.set_producer_name("pytorch");
  model.input("idx", {-1, 2}, kInt64).output("y");
  model.floats("lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  model.floats("embedding_1", {1, 2, 2}, {7, 8, 9, 11});
  model.floats("val_0", {2, 3}, {1, 3, 5, 2, 4, 6});
  auto& gather = model.node("Gather", {"lm_head.weight", "idx"}, {"embedding"});
  ModelBuilder::setSource(gather, "wte", "embedding.default", "%p_lm_head_weight, %idx", "",
                          "torch.nn.modules.sparse.Embedding");
  auto& sum = model.node("Add", {"embedding", "embedding_1"}, {"add"});
  ModelBuilder::setSource(sum, "", "add.Tensor", "%embedding, %embedding_1");
  auto& head = model.node("MatMul", {"add", "val_0"}, {"y"});
  ModelBuilder::setSource(head, "lm_head", "linear.default", "%add, %p_lm_head_weight", "",
                          "torch.nn.modules.linear.Linear");
  model.signature(kSignature);
  return model;
}

TEST(Signature, ListsParametersAndBuffersInModuleOrder) {
  Signature signature = Signature::parse(kSignature);
  ASSERT_EQ(signature.tensors().size(), 5u);
  EXPECT_EQ(signature.position("lm_head.weight"), 2u);
  EXPECT_EQ(signature.byMangled("lm_head_weight")->name, "lm_head.weight");
  EXPECT_TRUE(signature.byName("mask")->persistent);
  EXPECT_FALSE(signature.byName("inv_freq")->persistent);
  EXPECT_EQ(signature.byName("idx"), nullptr);
  EXPECT_FALSE(Signature::parse("p_: PARAMETER target='").known());
}

TEST(Signature, TellsWhatFxNodesCallATensor) {
  ModelBuilder model(20);
  model.model.set_producer_name("pytorch");
  model.input("x", {2}).output("y");
  const std::vector<std::array<std::string, 2>> tensors = {
      {"self_attn.weight", "attn_weight"}, {"W", "w"}, {"w", "w_1"}, {"β.weight", "__weight"}};
  std::string value = "x", signature;
  for (const auto& [name, mangled] : tensors) {
    model.floats(name, {2}, {1, 2});
    const std::string result = &name == &tensors.back()[0] ? "y" : "after_" + mangled;
    auto& node = model.node("Mul", {value, name}, {result});
    ModelBuilder::setSource(node, "", "mul.Tensor", "%" + value + ", %p_" + mangled);
    signature += "p_" + mangled + ": PARAMETER target='" + name + "'\n";
    value = result;
  }
  model.signature(signature);
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  NameTable names = nameTensors(graph).take();
  EXPECT_EQ(names.tensors.size(), tensors.size());
  for (const auto& [name, mangled] : tensors)
    EXPECT_EQ(names.find(name)->name, name);
  EXPECT_TRUE(names.notes.lines().empty());
}

TEST(Signature, ATransposedCopyOfATiedWeightIsThatWeight) {
  Graph graph = parseGraph(foldedGpt().bytes(), "m.onnx", "").take();
  NameTable names = nameTensors(graph).take();
  const NamedTensor* copy = names.find("val_0");
  EXPECT_TRUE(copy->isCopy);
  ASSERT_EQ(copy->pieces.size(), 1u);
  EXPECT_EQ(copy->pieces[0].state, "wte.weight");
  EXPECT_EQ(copy->pieces[0].piece.dims, (std::vector<int64_t>{1, 0}));
  const NamedTensor* tied = names.find("lm_head.weight");
  EXPECT_EQ(tied->name, "wte.weight");
  EXPECT_EQ(tied->aliases, (std::vector<std::string>{"lm_head.weight"}));
}

TEST(Signature, RowsThatWereLookedUpAreAPartOfTheirTable) {
  Graph graph = parseGraph(foldedGpt().bytes(), "m.onnx", "").take();
  NameTable names = nameTensors(graph).take();
  const NamedTensor* rows = names.find("embedding_1");
  EXPECT_EQ(rows->name, "add_0.weight");
  EXPECT_EQ(rows->kind, TensorKind::Parameter);
  EXPECT_EQ(rows->partOf, (std::vector<std::string>{"wpe.weight"}));
  ASSERT_EQ(names.notes.lines().size(), 2u);
  EXPECT_NE(names.notes.lines()[0].find("all that the exporter took out of a parameter"),
            std::string::npos);
  EXPECT_NE(names.notes.lines()[1].find("buffer 'mask' of the source is not in the file"),
            std::string::npos);
}

TEST(Signature, WhatIsComputedOfAConstantIsAConstant) {
  ModelBuilder model(20);
  model.model.set_producer_name("pytorch");
  model.input("x", {-1}).input("t", {-1}, kInt64).output("y");
  model.floats("w", {1}, {1});
  model.floats("lifted_tensor_0", {4}, {1, 2, 4, 3});
  auto& look = model.node("Gather", {"lifted_tensor_0", "t"}, {"index"});
  ModelBuilder::setSource(look, "", "index.Tensor", "%c_lifted_tensor_0, [%t]");
  auto& scaled = model.node("Mul", {"x", "w"}, {"mul"});
  ModelBuilder::setSource(scaled, "", "mul.Tensor", "%x, %p_w");
  auto& product = model.node("Mul", {"mul", "index"}, {"y"});
  ModelBuilder::setSource(product, "", "mul.Tensor", "%mul, %index");
  model.signature("\n# inputs\n"
                  "p_w: PARAMETER target='w'\n"
                  "c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'\n"
                  "x: USER_INPUT\nt: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  NameTable names = nameTensors(graph).take();
  const NamedTensor* table = names.find("lifted_tensor_0");
  EXPECT_EQ(table->kind, TensorKind::Constant);
  EXPECT_EQ(table->proof, Proof::Source);
  EXPECT_TRUE(names.notes.lines().empty());
}

TEST(Signature, ABufferThatEachForwardWritesIsNoted) {
  ModelBuilder model(20);
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 3}).output("y");
  model.floats("count", {3}, {1, 2, 3});
  for (const char* name : {"n.weight", "n.bias", "n.running_mean", "n.running_var"})
    model.floats(name, {3}, {1, 2, 3});
  auto& add = model.node("Add", {"x", "count"}, {"a"}, "add");
  ModelBuilder::setSource(add, "", "add.Tensor", "%x, %b_count");
  model.node("BatchNormalization", {"a", "n.weight", "n.bias", "n.running_mean", "n.running_var"},
             {"y"}, "n");
  model.signature("\n# inputs\n"
                  "p_n_weight: PARAMETER target='n.weight'\n"
                  "p_n_bias: PARAMETER target='n.bias'\n"
                  "b_count: BUFFER target='count' persistent=True\n"
                  "b_n_running_mean: BUFFER target='n.running_mean' persistent=True\n"
                  "b_n_running_var: BUFFER target='n.running_var' persistent=True\n"
                  "b_n_num_batches_tracked: BUFFER target='n.num_batches_tracked' persistent=True\n"
                  "x: USER_INPUT\n\n# outputs\n"
                  "add_1: BUFFER_MUTATION target='count'\n"
                  "add_2: BUFFER_MUTATION target='n.num_batches_tracked'\n"
                  "getitem_3: BUFFER_MUTATION target='n.running_mean'\n"
                  "getitem_4: BUFFER_MUTATION target='n.running_var'\n"
                  "y: USER_OUTPUT\n");
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  NameTable names = nameTensors(graph).take();
  ASSERT_EQ(names.notes.lines().size(), 1u);
  EXPECT_EQ(names.notes.lines()[0],
            "buffer 'count' is written by each forward of the source in training, which the file "
            "leaves out: it stays what it is");
}

/// Sines and cosines in turn, by position.
std::vector<float> sines(int rows, int width) {
  std::vector<float> table;
  for (int p = 0; p < rows; ++p)
    for (int j = 0; j < width; ++j) {
      double angle = p * std::pow(10000.0, -double(j / 2 * 2) / width);
      table.push_back(static_cast<float>(j % 2 ? std::cos(angle) : std::sin(angle)));
    }
  return table;
}

/// TorchScript: the table of positions has no name, its sum with the tokens' rows tells it.
ModelBuilder legacyGpt(const std::vector<float>& positions) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("idx", {-1, 3}, kInt64).output("y");
  model.floats("wte.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  model.floats("onnx::Add_7", {3, 2}, positions);
  model.floats("onnx::MatMul_9", {2, 3}, {1, 3, 5, 2, 4, 6});
  model.node("Gather", {"wte.weight", "idx"}, {"e"}, "/wte/Gather");
  model.node("Add", {"e", "onnx::Add_7"}, {"a"}, "/Add");
  model.node("MatMul", {"a", "onnx::MatMul_9"}, {"y"}, "/lm_head/MatMul");
  return model;
}

TEST(LegacyNames, ACopyNeedsWhatItIsACopyOf) {
  Graph graph = parseGraph(legacyGpt({9, 8, 7, 6, 5, 4}).bytes(), "m.onnx", "").take();
  NameOverrides overrides =
      parseNamesFile("[\"wte.weight\"]\nkind = \"constant\"\n", "names.toml").take();
  Result<NameTable> names = nameTensors(graph, overrides);
  ASSERT_FALSE(names.ok());
  EXPECT_EQ(names.error().message(),
            "'onnx::MatMul_9' is a copy of 'wte.weight', which no tensor fills any more: say in "
            "--names what it is");
  overrides["onnx::MatMul_9"].kind = TensorKind::Constant;
  EXPECT_TRUE(nameTensors(graph, overrides).ok());
}

TEST(LegacyNames, EqualValuesTieTheHeadToTheEmbedding) {
  Graph graph = parseGraph(legacyGpt({9, 8, 7, 6, 5, 4}).bytes(), "m.onnx", "").take();
  NameTable names = nameTensors(graph).take();
  EXPECT_TRUE(names.find("onnx::MatMul_9")->isCopy);
  EXPECT_EQ(names.find("onnx::MatMul_9")->pieces[0].state, "wte.weight");
  EXPECT_EQ(names.find("wte.weight")->aliases, (std::vector<std::string>{"lm_head.weight"}));
}

TEST(LegacyNames, ATableAddedToTheEmbeddingIsAParameterUnlessItHasSines) {
  Graph learned = parseGraph(legacyGpt({9, 8, 7, 6, 5, 4}).bytes(), "m.onnx", "").take();
  EXPECT_EQ(nameTensors(learned)->find("onnx::Add_7")->name, "add_0.weight");
  Graph fixed = parseGraph(legacyGpt(sines(3, 2)).bytes(), "m.onnx", "").take();
  EXPECT_EQ(nameTensors(fixed)->find("onnx::Add_7")->kind, TensorKind::Constant);
  // Zeros first and nothing above one: a padding row, for example.
  Graph padded = parseGraph(legacyGpt({0, 0, .5f, .25f, 1, .75f}).bytes(), "m.onnx", "").take();
  EXPECT_EQ(nameTensors(padded)->find("onnx::Add_7")->kind, TensorKind::Parameter);
}

TEST(LegacyNames, AScopeTellsThoseBelowItsSurroundings) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 2}).output("y");
  model.floats("transformer.h.0.ln_1.weight", {2}, {3, 4});
  model.floats("onnx::MatMul_1", {2, 2}, {1, 2, 3, 5});
  model.node("Mul", {"x", "transformer.h.0.ln_1.weight"}, {"n"}, "/h.0/ln_1/Mul");
  model.node("MatMul", {"n", "onnx::MatMul_1"}, {"y"}, "/h.0/attn/c_attn/MatMul");
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  EXPECT_EQ(nameTensors(graph)->find("onnx::MatMul_1")->name, "transformer.h.0.attn.c_attn.weight");
}

} // namespace
} // namespace titan::frontend
