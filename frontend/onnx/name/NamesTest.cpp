#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/NamedGraph.h"

#include <gtest/gtest.h>

namespace titan::frontend {
namespace {

using testing::graphOf;
using testing::ModelBuilder;
using testing::named;

ModelBuilder linear(const std::string& weight, const std::string& nodeName) {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y").node("MatMul", {"x", weight}, {"y"}, nodeName);
  model.floats(weight, {3, 2}, std::vector<float>(6));
  return model;
}

TEST(Names, KeepsCanonicalNames) {
  ModelBuilder model = linear("fc1.weight", "/fc1/MatMul");
  NamedTensor tensor = named(model, "fc1.weight");
  EXPECT_EQ(tensor.kind, TensorKind::Parameter);
  EXPECT_EQ(tensor.name, "fc1.weight");
  EXPECT_TRUE(tensor.pieces.empty());
}

TEST(Names, RecoversFoldedTranspositionsFromLegacyScopes) {
  ModelBuilder model = linear("onnx::MatMul_12", "/enc/enc.0/MatMul_1");
  NamedTensor tensor = named(model, "onnx::MatMul_12");
  EXPECT_EQ(tensor.name, "enc.0.weight");
  ASSERT_EQ(tensor.pieces.size(), 1u);
  EXPECT_EQ(tensor.pieces[0].state, "enc.0.weight");
  EXPECT_EQ(tensor.pieces[0].piece, wholeOf(Shape{3, 2}, {1, 0}));
}

TEST(Names, JoinsScopesOfModuleLists) {
  ModelBuilder model = linear("val_3", "/transformer/h.0/attn/c_attn/MatMul");
  EXPECT_EQ(named(model, "val_3").name, "transformer.h.0.attn.c_attn.weight");
}

TEST(Names, RecoversFromFxNodes) {
  ModelBuilder model = linear("val_0", "node_linear");
  ::onnx::NodeProto& node = *model.model.mutable_graph()->mutable_node(0);
  ModelBuilder::setMetadata(node, "pkg.torch.onnx.name_scopes",
                            "['', 'my_block', 'my_block.fc_1', 'linear']");
  ModelBuilder::setMetadata(
      node, "pkg.torch.onnx.class_hierarchy",
      "['m.M', 'm.B', 'torch.nn.modules.linear.Linear', 'aten.linear.default']");
  ModelBuilder::setMetadata(
      node, "pkg.torch.onnx.fx_node",
      "%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default]"
      "(args = (%x, %p_my_block_fc_1_weight, %p_my_block_fc_1_bias), kwargs = {})");
  NamedTensor tensor = named(model, "val_0");
  EXPECT_EQ(tensor.name, "my_block.fc_1.weight");
  EXPECT_EQ(tensor.kind, TensorKind::Parameter);
  ASSERT_EQ(tensor.pieces.size(), 1u);
  EXPECT_EQ(tensor.pieces[0].piece, wholeOf(Shape{3, 2}, {1, 0}));
}

TEST(Names, FindsTiedNames) {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y");
  model.floats("dec.weight", {3, 3}, std::vector<float>(9));
  model.node("Gemm", {"x", "dec.weight"}, {"h"}, "/enc/Gemm");
  model.node("Gemm", {"h", "dec.weight"}, {"y"}, "/dec/Gemm");
  NamedTensor tensor = named(model, "dec.weight");
  // The exporter keeps the first name in module order, whoever is used first.
  EXPECT_EQ(tensor.name, "dec.weight");
  EXPECT_EQ(tensor.aliases, (std::vector<std::string>{"enc.weight"}));
}

TEST(Names, AFunctionOfTheModuleIsNoTie) {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y");
  model.floats("enc.weight", {3, 3}, std::vector<float>(9));
  model.node("Gemm", {"x", "enc.weight"}, {"h"}, "/enc/Gemm");
  model.node("Gemm", {"h", "enc.weight"}, {"y"}, "/Gemm");
  EXPECT_TRUE(named(model, "enc.weight").aliases.empty());
}

TEST(Names, IdentityNamesAreAliases) {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y");
  model.floats("a.weight", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  model.node("Identity", {"a.weight"}, {"b.weight"}, "/b/Identity");
  model.node("MatMul", {"x", "a.weight"}, {"h"});
  model.node("MatMul", {"h", "b.weight"}, {"y"});
  EXPECT_EQ(named(model, "a.weight").aliases, (std::vector<std::string>{"b.weight"}));
}

/// x @ first @ second, as the legacy exporter writes two folded matrices of equal bytes, then added
/// biases: that of each module, by name, where there are any.
std::vector<std::string> namesOfFolded(const std::vector<std::string>& scopes,
                                       const std::vector<std::string>& biases) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 2}).output("y");
  model.floats("onnx::MatMul_7", {2, 2}, {1, 2, 3, 4});
  model.node("Identity", {"onnx::MatMul_7"}, {"onnx::MatMul_8"}, "Identity_0");
  for (size_t i = 0; i < biases.size(); ++i)
    if (i == 0 || (biases[i] != biases[0] && !biases[i].starts_with("=")))
      model.floats(biases[i], {2}, {1.0f + static_cast<float>(i), 5});
    else if (biases[i].starts_with("="))
      model.node("Identity", {biases[0]}, {biases[i].substr(1)}, "Identity_1");
  std::string value = "x";
  for (size_t i = 0; i < 2; ++i) {
    std::string n = std::to_string(i), result = i == 1 && biases.empty() ? "y" : "p" + n;
    model.node("MatMul", {value, i ? "onnx::MatMul_8" : "onnx::MatMul_7"}, {result},
               scopes[i] + "/MatMul");
    value = result;
    if (biases.empty())
      continue;
    result = i == 1 ? "y" : "b" + n;
    std::string bias = biases[i].starts_with("=") ? biases[i].substr(1) : biases[i];
    model.node("Add", {bias, value}, {result}, scopes[i] + "/Add");
    value = result;
  }
  Graph graph = graphOf(model);
  NameTable table = nameTensors(graph).take();
  std::vector<std::string> names;
  for (const NamedTensor& tensor : table.tensors)
    if (graph.initializers.at(tensor.initializer).shape.size() == 2)
      names.push_back(tensor.name);
  return names;
}

TEST(Names, EqualMatricesThatWereFoldedAreOneWhereTheirModulesSaySo) {
  using Names = std::vector<std::string>;
  Names one{"a.weight"}, two{"a.weight", "b.weight"};
  // A module that is called twice, a tied weight beside biases of its own, a copy of a layer.
  EXPECT_EQ(namesOfFolded({"/a", "/a_1"}, {"a.bias", "a.bias"}), one);
  EXPECT_EQ(namesOfFolded({"/a", "/b"}, {"a.bias", "b.bias"}), one);
  EXPECT_EQ(namesOfFolded({"/a", "/b"}, {"a.bias", "=b.bias"}), two);
  // Nothing but the scopes tells.
  EXPECT_EQ(namesOfFolded({"/a", "/a_1"}, {}), one);
  EXPECT_EQ(namesOfFolded({"/a", "/b"}, {}), two);
}

TEST(Names, TensorsThatWereMergedForTheirValuesAreSeparate) {
  // The legacy exporter writes an Identity for equal bytes of parameters that are not tied.
  for (bool ones : {true, false}) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("x", {-1, 2}).output("y");
    model.floats("a.weight", {2}, ones ? std::vector<float>{1, 1} : std::vector<float>{1, 2});
    model.node("Identity", {"a.weight"}, {"b.weight"});
    model.node("Mul", {"x", "a.weight"}, {"h"}, "/a/Mul");
    model.node("Mul", {"h", "b.weight"}, {"y"}, "/b/Mul");
    NameTable table = nameTensors(graphOf(model)).take();
    EXPECT_EQ(table.tensors.size(), 2u);
    EXPECT_TRUE(table.tensors[0].aliases.empty());
  }
  // torch.export names the parameters of each use.
  ModelBuilder model;
  model.input("x", {-1, 2}).output("y");
  model.floats("a.norm.weight", {2}, {1, 1});
  std::string value = "x";
  for (std::string module : {"a", "b"}) {
    std::string result = module == "a" ? "h" : "y";
    ::onnx::NodeProto& node = model.node("LayerNormalization", {value, "a.norm.weight"}, {result});
    ModelBuilder::setMetadata(node, "pkg.torch.onnx.name_scopes",
                              "['', '" + module + ".norm', 'layer_norm']");
    ModelBuilder::setMetadata(node, "pkg.torch.onnx.fx_node",
                              "%l : [] = f(args = (%x, [2], %p_" + module + "_norm_weight, None))");
    value = result;
  }
  NameTable table = nameTensors(graphOf(model)).take();
  ASSERT_EQ(table.tensors.size(), 2u);
  EXPECT_EQ(table.tensors[0].name, "a.norm.weight");
  EXPECT_EQ(table.tensors[1].name, "b.norm.weight");
  EXPECT_EQ(table.tensors[1].kind, TensorKind::Parameter);
}

TEST(Names, AMergedTensorKeepsItsNameWhereAnotherParameterIsUsedFirst) {
  ModelBuilder model;
  model.input("x", {-1, 2}).output("y");
  model.floats("final.weight", {2}, {1, 1});
  std::string value = "x";
  for (std::string module : {"first", "final"}) {
    std::string result = module == "first" ? "h" : "y";
    ::onnx::NodeProto& node = model.node("LayerNormalization", {value, "final.weight"}, {result});
    ModelBuilder::setMetadata(node, "pkg.torch.onnx.name_scopes",
                              "['', '" + module + "', 'layer_norm']");
    ModelBuilder::setMetadata(node, "pkg.torch.onnx.fx_node",
                              "%l : [] = f(args = (%x, [2], %p_" + module + "_weight, None))");
    value = result;
  }
  Graph graph = graphOf(model);
  NameTable table = nameTensors(graph).take();
  EXPECT_EQ(table.find(graph.nodes[0].inputs[1])->name, "first.weight");
  EXPECT_EQ(table.find(graph.nodes[0].inputs[1])->kind, TensorKind::Parameter);
  EXPECT_EQ(table.find(graph.nodes[1].inputs[1])->name, "final.weight");
}

/// A product of [2, 3] features whose bias of zeros onnxscript took out. `fx`: what the node's fx
/// metadata says; empty: nothing, as after a conversion to an older opset.
ModelBuilder withoutBias(const std::string& weight, const std::string& fx) {
  ModelBuilder model;
  model.input("x", {4, 2}).output("y").floats(weight, {2, 3}, {1, 2, 3, 4, 5, 6});
  ::onnx::NodeProto& node = model.node("Gemm", {"x", weight}, {"y"});
  ModelBuilder::setMetadata(node, "pkg.onnxscript.rewriter.rule_name",
                            "ReshapeReshape, RemoveOptionalBiasFromGemm");
  if (fx.empty())
    return model;
  ModelBuilder::setMetadata(node, "pkg.torch.onnx.name_scopes", "['', 'h.0.fc', 'addmm']");
  ModelBuilder::setMetadata(node, "pkg.torch.onnx.class_hierarchy",
                            "['m.M', 'm.Conv1D', 'aten.addmm.default']");
  ModelBuilder::setMetadata(node, "pkg.torch.onnx.fx_node",
                            "%addmm : [] = f(args = (" + fx + ", %x, %p_h_0_fc_weight))");
  return model;
}

TEST(Names, BiasesOfZerosThatAnOptimizerRemovedAreBack) {
  ModelBuilder model = withoutBias("h.0.fc.weight", "%p_h_0_fc_bias");
  Graph graph = graphOf(model);
  NameTable table = nameTensors(graph).take();
  ASSERT_EQ(table.tensors.size(), 2u);
  EXPECT_EQ(table.tensors[1].name, "h.0.fc.bias");
  EXPECT_EQ(table.tensors[1].kind, TensorKind::Parameter);
  EXPECT_FALSE(table.tensors[1].structural);
  EXPECT_TRUE(table.notes.lines().empty());
  const Tensor& bias = graph.initializers.at("h.0.fc.bias");
  EXPECT_EQ(bias.shape, (Shape{3}));
  EXPECT_EQ(bias.read().take(), std::string(12, '\0'));

  // What was removed is no parameter, or no rule says that something was.
  model = withoutBias("h.0.fc.weight", "%b_h_0_fc_bias");
  EXPECT_EQ(graphOf(model).initializers.size(), 1u);
  model = withoutBias("h.0.fc.weight", "%p_h_0_fc_bias");
  model.model.mutable_graph()->mutable_node(0)->set_op_type("Conv");
  EXPECT_EQ(graphOf(model).initializers.size(), 1u);
}

TEST(Names, RemovedBiasesWithoutMetadataAreCalledAsTheirWeights) {
  ModelBuilder model = withoutBias("h.0.fc.weight", "");
  Graph graph = graphOf(model);
  NameTable table = nameTensors(graph).take();
  ASSERT_EQ(table.tensors.size(), 2u);
  EXPECT_EQ(table.tensors[1].name, "h.0.fc.bias");
  EXPECT_EQ(graph.notes.lines().size(), 1u);
  // Nothing to call it after.
  model = withoutBias("val_7", "");
  table = nameTensors(graphOf(model)).take();
  ASSERT_EQ(table.tensors.size(), 2u);
  EXPECT_EQ(table.tensors[1].name, "gemm_0.bias");
  EXPECT_TRUE(table.tensors[1].structural);
  EXPECT_EQ(table.tensors[1].kind, TensorKind::Parameter);
}

TEST(Names, TheOutermostLegacyScopeIsAChildOfTheRoot) {
  // root.model calls model.model.decoder and then model.head, never model.model.
  ModelBuilder model;
  model.input("x", {-1, 2}).output("y");
  model.floats("model.model.decoder.weight", {2, 2}, {1, 2, 3, 4});
  model.node("MatMul", {"x", "model.model.decoder.weight"}, {"h"}, "/model/decoder/MatMul");
  model.node("MatMul", {"h", "model.model.decoder.weight"}, {"y"}, "/model/head/MatMul");
  EXPECT_EQ(named(model, "model.model.decoder.weight").aliases,
            (std::vector<std::string>{"model.head.weight"}));
}

TEST(Names, LegacyScopesWithoutTheirContainersAreResolvedWhereTensorsTell) {
  ModelBuilder model;
  model.input("x", {-1, 2}).output("y");
  std::string value = "x";
  for (int i = 0; i < 2; ++i) {
    std::string block = "blocks." + std::to_string(i), number = i ? "_1" : "";
    for (const char* layer : {"up", "gate", "down"}) {
      bool gate = std::string(layer) == "gate";
      std::string weight =
          gate ? "onnx::MatMul_" + std::to_string(i) : block + "." + layer + ".weight";
      std::string result = i == 1 && std::string(layer) == "down" ? "y" : block + layer;
      model.floats(weight, {2, 2}, {1, 2, 3, float(i)});
      model.node("MatMul", {value, weight}, {result},
                 "/" + std::string(layer) + number + "/MatMul");
      value = result;
    }
  }
  model.floats("onnx::MatMul_2", {2, 2}, {1, 2, 3, 4});
  model.node("MatMul", {"y", "onnx::MatMul_2"}, {"logits"}, "/head/MatMul");
  model.output("logits");
  NameTable table = nameTensors(graphOf(model)).take();
  for (const NamedTensor& tensor : table.tensors)
    EXPECT_TRUE(tensor.aliases.empty()) << tensor.name;
  // Nothing says which container "/gate" and "/gate_1" are in: up and down have kept their names.
  for (const char* gate : {"onnx::MatMul_0", "onnx::MatMul_1"})
    EXPECT_TRUE(table.find(gate)->structural) << table.find(gate)->name;
  EXPECT_EQ(table.find("onnx::MatMul_0")->name, "matmul_1.weight");
  // There is one head: most likely the root's.
  EXPECT_EQ(table.find("onnx::MatMul_2")->name, "head.weight");
  EXPECT_TRUE(table.find("onnx::MatMul_2")->guessed);
  EXPECT_EQ(table.notes.lines().size(), 2u) << "of two made-up names, and of a guess";
}

TEST(Names, AttributesThatOnlyShapesTellAreGuesses) {
  // nn.MultiheadAttention without biases, folded: it calls no module for its projections.
  ModelBuilder model;
  model.input("x", {4, 2}).output("y");
  model.floats("onnx::MatMul_1", {2, 6}, std::vector<float>(12));
  model.floats("onnx::MatMul_2", {6, 2}, std::vector<float>(12));
  model.floats("onnx::MatMul_3", {2, 2}, std::vector<float>(4));
  model.floats("onnx::MatMul_4", {2, 2}, std::vector<float>(4));
  model.node("MatMul", {"x", "onnx::MatMul_1"}, {"a"}, "/attn/MatMul");
  model.node("MatMul", {"a", "onnx::MatMul_2"}, {"b"}, "/mix/MatMul");
  model.node("MatMul", {"b", "onnx::MatMul_3"}, {"c"}, "/attn/MatMul_1");
  model.node("MatMul", {"c", "onnx::MatMul_4"}, {"y"}, "/head/MatMul");
  NameTable table = nameTensors(graphOf(model)).take();
  EXPECT_EQ(table.tensors[0].name, "attn.in_proj_weight");
  EXPECT_TRUE(table.tensors[0].guessed);
  EXPECT_EQ(table.tensors[2].name, "attn.out_proj.weight");
  EXPECT_TRUE(table.tensors[2].guessed);
  EXPECT_EQ(table.tensors[1].name, "mix.weight");
  EXPECT_TRUE(table.tensors[1].guessed) << "'/mix' may be in a container that is not called";
  EXPECT_EQ(table.notes.lines(),
            (std::vector<std::string>{
                "4 tensors have their names by a guess at what their modules are; --names can say "
                "otherwise: 'onnx::MatMul_1' (here 'attn.in_proj_weight'), 'onnx::MatMul_2' (here "
                "'mix.weight'), 'onnx::MatMul_3' (here 'attn.out_proj.weight'), 'onnx::MatMul_4' "
                "(here 'head.weight')"}));
  // A name that the user gives is no guess.
  NameOverrides overrides =
      parseNamesFile("[\"onnx::MatMul_1\"]\nname = \"attn.qkv\"\n", "map.toml").take();
  table = nameTensors(graphOf(model), overrides).take();
  EXPECT_FALSE(table.tensors[0].guessed);
  EXPECT_EQ(table.notes.lines().size(), 1u);
}

TEST(Names, AMatrixIsCalledAsTheBiasBesideIt) {
  // F.linear in a module whose parameters are those of modules that it does not call.
  ModelBuilder model;
  model.input("x", {4, 2}).output("y");
  model.floats("onnx::MatMul_1", {2, 6}, std::vector<float>(12));
  model.floats("attn.qkv.bias", {6}, {1, 2, 3, 4, 5, 6});
  model.floats("onnx::MatMul_2", {6, 2}, std::vector<float>(12));
  model.floats("attn.proj.bias", {2}, {1, 2});
  model.node("MatMul", {"x", "onnx::MatMul_1"}, {"a"}, "/attn/MatMul");
  model.node("Add", {"attn.qkv.bias", "a"}, {"b"}, "/attn/Add");
  model.node("MatMul", {"b", "onnx::MatMul_2"}, {"c"}, "/attn/MatMul_1");
  model.node("Add", {"attn.proj.bias", "c"}, {"y"}, "/attn/Add_1");
  NameTable table = nameTensors(graphOf(model)).take();
  EXPECT_EQ(table.find("onnx::MatMul_1")->name, "attn.qkv.weight");
  EXPECT_EQ(table.find("onnx::MatMul_2")->name, "attn.proj.weight");
}

TEST(Names, ClassifiesWithoutMetadata) {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y");
  model.floats("w", {3}, {1, 2, 3});
  model.floats("eps", {}, {1e-5f});
  model.integers("shape", {-1, 3});
  model.floats("mask", {3}, {1, 0, 1});
  model.node("Mul", {"x", "w"}, {"a"});
  model.node("Add", {"a", "eps"}, {"b"});
  model.node("Reshape", {"b", "shape"}, {"c"});
  model.node("Greater", {"c", "mask"}, {"d"});
  model.node("Where", {"d", "c", "eps"}, {"y"});
  EXPECT_EQ(named(model, "w", "other").kind, TensorKind::Parameter);
  EXPECT_EQ(named(model, "eps", "other").kind, TensorKind::Constant);
  EXPECT_EQ(named(model, "shape", "other").kind, TensorKind::Constant);
  EXPECT_EQ(named(model, "mask", "other").kind,
            TensorKind::Constant); // no gradient passes a comparison
}

TEST(Names, ABoundIsTrained) {
  ModelBuilder model;
  model.input("x", {-1, 3}).output("y").floats("act.high", {}, {0.5f});
  model.node("Clip", {"x", "", "act.high"}, {"y"}, "/act/Clip");
  EXPECT_EQ(named(model, "act.high").kind, TensorKind::Parameter);
}

TEST(Names, StructuralNamesAreStableAndNoted) {
  ModelBuilder model = linear("17", "");
  NameTable table = nameTensors(graphOf(model, "other")).take();
  EXPECT_EQ(table.find("17")->name, "matmul_0.weight");
  EXPECT_TRUE(table.find("17")->structural);
  ASSERT_EQ(table.notes.lines().size(), 1u);
}

TEST(Names, StripsWrappers) {
  ModelBuilder model = linear("module._orig_mod.fc.weight", "");
  EXPECT_EQ(named(model, "module._orig_mod.fc.weight").name, "fc.weight");
  model = linear("layers.0.module.fc.weight", "");
  EXPECT_EQ(named(model, "layers.0.module.fc.weight").name, "layers.0.module.fc.weight");
}

TEST(Names, ClassWeightsOfALossAreABuffer) {
  ModelBuilder model;
  model.input("x", {-1, 2}).input("t", {-1}, ::onnx::TensorProto::INT64).output("y");
  model.floats("loss.weight", {2}, {1, 2});
  model.node("SoftmaxCrossEntropyLoss", {"x", "t", "loss.weight"}, {"y"}, "loss");
  EXPECT_EQ(nameTensors(graphOf(model)).take().find("loss.weight")->kind, TensorKind::Buffer);
}

TEST(Names, FileOverrides) {
  ModelBuilder model = linear("17", "");
  Graph graph = graphOf(model, "other");
  NameOverrides overrides =
      parseNamesFile("[\"17\"]\nname = \"fc.weight\"\nkind = \"buffer\"\nlayout = [1, 0]\n",
                     "map.toml")
          .take();
  NameTable table = nameTensors(graph, overrides).take();
  EXPECT_EQ(table.find("17")->name, "fc.weight");
  EXPECT_EQ(table.find("17")->kind, TensorKind::Buffer);
  EXPECT_EQ(table.find("17")->pieces[0].piece.dims, (std::vector<int64_t>{1, 0}));

  for (const char* bad : {"[\"18\"]\nname = \"a\"\n", "[\"17\"]\nlayout = [0, 0]\n",
                          "[\"17\"]\npadding_idx = 99\n", "[\"17\"]\npadding_idx = -1\n"})
    EXPECT_FALSE(nameTensors(graph, parseNamesFile(bad, "map.toml").take()).ok()) << bad;
  EXPECT_EQ(nameTensors(graph, parseNamesFile("[\"17\"]\npadding_idx = 0\n", "map.toml").take())
                .take()
                .find("17")
                ->paddingIndex,
            0);
  for (const char* bad :
       {"17 = 1\n", "[\"17\"]\nnam = \"a\"\n", "[\"17\"]\nkind = \"weight\"\n",
        "[\"17\"]\nlayout = [\"a\"]\n", "[\"17\"]\npadding_idx = true\n", "[\"17\""})
    EXPECT_FALSE(parseNamesFile(bad, "map.toml").ok()) << bad;
}

TEST(Names, RefusesTwoTensorsOfOneName) {
  ModelBuilder model = linear("a", "");
  model.floats("b", {2}, {1, 2});
  model.model.mutable_graph()->mutable_node(0)->set_output(0, "h");
  model.node("Add", {"h", "b"}, {"y"});
  NameOverrides overrides = parseNamesFile("[\"a\"]\nname = \"b\"\n", "map.toml").take();
  EXPECT_FALSE(nameTensors(graphOf(model), overrides).ok());
}

TEST(Scopes, ParseWhatExportersWrite) {
  Node node;
  node.metadata["pkg.torch.onnx.name_scopes"] = "['', 'fc@1', \"linear's\"]";
  EXPECT_EQ(scopeOf(node).module, "fc");
  node.metadata["pkg.torch.onnx.name_scopes"] =
      "['_empty_nn_module_stack_from_metadata_hook', 'sym']";
  EXPECT_EQ(scopeOf(node).module, "");
  Node legacy;
  legacy.name = "/net/net.0/net.0.1/Gemm";
  EXPECT_EQ(scopeOf(legacy).module, "net.0.1");
  EXPECT_TRUE(encloses("", "a.b"));
  EXPECT_TRUE(encloses("a", "a.b"));
  EXPECT_FALSE(encloses("a", "ab.c"));
}

} // namespace
} // namespace titan::frontend
