// Whole imports: of the committed exports (test/frontend/make_models.py) and of models built here.
#include "frontend/onnx/Import.h"
#include "frontend/onnx/Check.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/StarterRecipe.h"
#include "frontend/onnx/convert/States.h"
#include "frontend/onnx/testing/ImportFixture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace titan::frontend {
namespace {

namespace fs = std::filesystem;
using testing::ModelBuilder;

const fs::path kInputs = TITAN_TEST_INPUTS;

class ImportTest : public testing::ImportFixture {
protected:
  Result<std::string> importFile(const std::string& name) {
    ImportReport report;
    auto module = importOnnx(context_, (kInputs / name).string(), recipe_, options_, report);
    notes_ = report.notes;
    if (!module.ok())
      return module.takeError();
    return textOf(**module);
  }
  ImportOptions options_;
  std::vector<std::string> notes_;
};

/// Every export of a PyTorch module has the module's own parameters: names and shapes.
TEST_F(ImportTest, ExportsKeepTheNamesOfTheirModule) {
  int exports = 0;
  for (const auto& entry : fs::directory_iterator(kInputs)) {
    std::string file = entry.path().filename().string();
    size_t dash = file.find('-');
    fs::path expected = kInputs / (file.substr(0, dash) + ".names");
    if (entry.path().extension() != ".onnx" || dash == std::string::npos || !fs::exists(expected))
      continue;
    ++exports;
    std::set<std::string> wanted, found;
    std::ifstream lines(expected);
    for (std::string line; std::getline(lines, line);)
      wanted.insert(line);
    Graph graph = readGraph(entry.path().string()).take();
    NameTable names = nameTensors(graph).take();
    for (const NamedState& state : names.states)
      if (names.tensors[state.tensor].kind == TensorKind::Parameter)
        found.insert(state.name + " " + toString(state.shape));
    // The legacy exporter does not say what is a buffer.
    if (file.find("legacy") != std::string::npos)
      found.erase("scale [6]");
    EXPECT_EQ(found, wanted) << file;
    Result<std::string> text = importFile(file);
    EXPECT_TRUE(text.ok()) << text.error().message();
    std::erase_if(notes_, [&](const std::string& note) {
      auto says = [&](std::string_view part) { return note.find(part) != std::string::npos; };
      bool legacy = says("which this exporter does not tell") || says("padding_idx") ||
                    says("by a guess at") || says("folded by the exporter and") ||
                    says("another name of a tied parameter") ||
                    says("taken for one parameter that is used twice");
      return says("they are one tied parameter") ||
             (legacy && file.find("legacy") != std::string::npos) ||
             note.starts_with("buffer 'bias' of the source is not in the file"); // a mask
    });
    EXPECT_TRUE(notes_.empty()) << file << ": " << notes_.front();
  }
  EXPECT_EQ(exports, 30);
}

/// tf2onnx has variables under the names of the ops that read them, and numbers beside them.
TEST_F(ImportTest, WhatTensorFlowComputedIsNoted) {
  ModelBuilder model;
  model.model.set_producer_name("tf2onnx");
  model.input("x", {-1, 2}).output("y");
  model.floats("a/MatMul/ReadVariableOp:0", {2, 2}, {1, 2, 3, 4});
  model.floats("a/merged_input:0", {2, 2}, {4, 3, 2, 1});
  model.node("MatMul", {"x", "a/MatMul/ReadVariableOp:0"}, {"h"}, "a/MatMul");
  model.node("MatMul", {"h", "a/merged_input:0"}, {"y"}, "b/MatMul");
  const std::vector<std::string> found = notes(model);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].starts_with("'a/merged_input:0' is trained, and may be what TensorFlow"));
  EXPECT_NE(found[1].find("biases that were zeros are gone"), std::string::npos);
}

/// y = x squeezed where its extent `dim` is 1, as the legacy exporter writes it.
ModelBuilder squeezedWhereOne(int64_t extent) {
  ModelBuilder model;
  model.input("x", {-1, extent, 3}).output("y");
  model.floats("w", {3}, {1, 2, 3});
  model.integers("dim", {1});
  model.integers("one", {1});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "dim"}, {"extent"});
  model.node("Equal", {"extent", "one"}, {"isOne"});
  model.node("Mul", {"x", "w"}, {"scaled"});
  ::onnx::NodeProto& choice = model.node("If", {"isOne"}, {"chosen"}, "choice");
  auto branch = [&](const char* name) -> ::onnx::GraphProto& {
    ::onnx::AttributeProto& attribute = *choice.add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::GRAPH);
    return *attribute.mutable_g();
  };
  auto add = [](::onnx::GraphProto& graph, const char* type, const char* in, const char* out) {
    ::onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(type);
    if (*in)
      node.add_input(in);
    node.add_output(out);
    return &node;
  };
  ::onnx::GraphProto& squeezes = branch("then_branch");
  ::onnx::AttributeProto& value = *add(squeezes, "Constant", "", "axes")->add_attribute();
  value.set_name("value_ints");
  value.set_type(::onnx::AttributeProto::INTS);
  value.add_ints(1);
  add(squeezes, "Squeeze", "scaled", "squeezed")->add_input("axes");
  squeezes.add_output()->set_name("squeezed");
  ::onnx::GraphProto& passes = branch("else_branch");
  add(passes, "Identity", "scaled", "same");
  passes.add_output()->set_name("same");
  model.node("Tanh", {"chosen"}, {"y"});
  return model;
}

TEST_F(ImportTest, AnIfTakesTheBranchThatShapesChoose) {
  ModelBuilder one = squeezedWhereOne(1), four = squeezedWhereOne(4);
  EXPECT_HAS(import(one), "-> (tensor<8x3xf32>");
  EXPECT_HAS(import(four), "-> (tensor<8x4x3xf32>");
}

TEST_F(ImportTest, AnIfThatTheModelDecidesIsRefused) {
  ModelBuilder model = squeezedWhereOne(4);
  auto refusal = [&](auto change) {
    ModelBuilder changed = model;
    change(*std::ranges::find(*changed.model.mutable_graph()->mutable_node(), "choice",
                              [](const auto& node) { return node.name(); }));
    return import(changed);
  };
  EXPECT_EQ(refusal([](auto& node) { node.set_input(0, "scaled"); }),
            "error: node 'choice' (If): its condition is computed by the model: only one that "
            "follows from "
            "shapes is supported");
  EXPECT_EQ(
      refusal([](auto& node) { node.mutable_attribute(1)->set_name("other"); }),
      "error: node 'choice' (If): has no else_branch, or is in a local function, which is not "
      "supported");
  EXPECT_EQ(
      refusal([](auto& node) {
        node.mutable_attribute(1)->mutable_g()->add_initializer()->set_name("own");
      }),
      "error: node 'choice' (If): its else_branch has weights of its own, which is not supported");
  EXPECT_EQ(refusal([](auto& node) { node.add_output("more"); }),
            "error: node 'choice' (If): its else_branch has 1 outputs, the node 2");
  EXPECT_EQ(refusal([](auto& node) {
              ::onnx::GraphProto& graph = *node.mutable_attribute(1)->mutable_g();
              graph.mutable_node(0)->set_output(0, "shape");
              graph.mutable_output(0)->set_name("shape");
            }),
            "error: node 'shape' (Identity): 'shape' is produced more than once");
}

TEST_F(ImportTest, EveryExportOfAGptHasOneAttentionAndOneTiedTable) {
  int exports = 0;
  for (const auto& entry : fs::directory_iterator(kInputs)) {
    std::string file = entry.path().filename().string();
    if (!file.starts_with("gpt-") || entry.path().extension() != ".onnx")
      continue;
    ++exports;
    std::string text = importFile(file).take();
    EXPECT_HAS(text, "titan.state @wte.weight : tensor<7x4xf32> {aliases = [\"head.weight\"]");
    EXPECT_HAS(text, "titan.embedding");
    EXPECT_HAS(text, "titan.attention");
    EXPECT_HAS(text, " causal ");
    EXPECT_LACKS(text, "titan.softmax");
  }
  EXPECT_EQ(exports, 6);
}

TEST_F(ImportTest, StarterRecipeOfALanguageModelReadsTokens) {
  std::string toml = starterRecipe((kInputs / "gpt-dynamo-train.onnx").string(), options_).take();
  EXPECT_HAS(toml, "a language model with a vocabulary of 7");
  EXPECT_HAS(toml, "\"train.bin\"");
  EXPECT_HAS(toml, "kind = \"cross_entropy\"");
}

TEST_F(ImportTest, AllExportsOfAnMlpAreTheSameProgram) {
  // Dropout aside: what the exporters write differs in opset, decomposition, batch and layout.
  std::set<std::string> bodies;
  for (const char* file :
       {"mlp-dynamo-eval.onnx", "mlp-dynamo-eval-optimized.onnx", "mlp-legacy-eval.onnx"}) {
    std::string text = importFile(file).take(), ops;
    for (size_t at = text.find(" = titan."); at != std::string::npos;
         at = text.find(" = titan.", at + 1))
      ops += text.substr(at + 9, text.find(' ', at + 9) - at - 9) + " ";
    bodies.insert(ops);
  }
  EXPECT_EQ(bodies, std::set<std::string>{
                        "contract broadcast add layer_norm gelu contract broadcast add "});
}

TEST_F(ImportTest, TransposedWeightsAreStatesInTheSourcesLayout) {
  std::string text = importFile("tied-legacy-eval.onnx").take();
  EXPECT_HAS(text, "dims = [1, 0]>]");
  EXPECT_HAS(text, "aliases = [\"dec.weight\"]");
  EXPECT_LACKS(text, "titan.transpose"); // the contraction reads the state as it is
}

TEST_F(ImportTest, DropoutFollowsTheExportAndTheRecipe) {
  EXPECT_HAS(*importFile("mlp-legacy-train.onnx"), "titan.dropout");
  EXPECT_HAS(*importFile("functional-dynamo-train.onnx"), "p 2.500000e-01");
  EXPECT_LACKS(*importFile("mlp-dynamo-eval.onnx"), "titan.dropout");
  EXPECT_LACKS(node("Dropout", 17), "titan.dropout");
  recipe_.model.mode = "train";
  EXPECT_HAS(node("Dropout", 17), "titan.dropout %arg0 p 5.000000e-01");
}

TEST_F(ImportTest, EachDropoutHasAStreamOfItsOwn) {
  recipe_.model.mode = "train";
  ModelBuilder model;
  model.input("x", {-1, 4}).output("y");
  model.node("Dropout", {"x"}, {"h"}, "/drop/Dropout");
  model.node("Dropout", {"h"}, {"y"}, "/drop/Dropout_1");
  std::string text = import(model);
  size_t first = text.find("stream "), second = text.find("stream ", first + 1);
  ASSERT_NE(second, std::string::npos);
  EXPECT_NE(text.substr(first, 20), text.substr(second, 20));
}

TEST_F(ImportTest, BindsTheBatchAndOtherDimensions) {
  recipe_.batch.micro = 3;
  ModelBuilder model;
  model.input("x", {-1, 4}).output("y").node("Relu", {"x"}, {"y"});
  EXPECT_HAS(import(model), "tensor<3x4xf32>");
  auto* dim = model.model.mutable_graph()
                  ->mutable_input(0)
                  ->mutable_type()
                  ->mutable_tensor_type()
                  ->mutable_shape()
                  ->mutable_dim(1);
  dim->set_dim_param("seq");
  EXPECT_HAS(import(model), "input 'x': dimension 1 is 'seq': bind it with model.dims");
  recipe_.model.dims["seq"] = 7;
  EXPECT_HAS(import(model), "tensor<3x7xf32>");
  recipe_.model.dims["sec"] = 7;
  EXPECT_HAS(import(model), "no input has a dimension 'sec'; there are: N, seq");
}

// Recurrent layers of PyTorch have their samples in dimension 1 unless they are told otherwise.
TEST_F(ImportTest, SamplesBehindTheFirstDimensionAreToBeTransposed) {
  ModelBuilder states;
  states.input("x", {-1, 4}).input("h0", {2, -1}).output("y").node("Relu", {"x"}, {"y"});
  EXPECT_HAS(import(states),
             "input 'h0': dimension 1 is 'N', the samples of input 'x': they have "
             "to be dimension 0 of every input, so transpose this one in the model");

  ModelBuilder timeMajor;
  timeMajor.input("x", {7, -1, 4}).output("y").node("Relu", {"x"}, {"y"});
  EXPECT_HAS(import(timeMajor), "bind it with model.dims = { N = ... }; samples have to be "
                                "dimension 0 of every input, so if it counts them, transpose the "
                                "input in the model");
}

TEST_F(ImportTest, RewritesABakedBatch) {
  recipe_.batch.micro = 16;
  std::string text = importFile("tied-legacy-eval.onnx").take();
  EXPECT_HAS(text, "tensor<16x5x6xf32>, tensor<6x5xf32>) -> tensor<16x5x5xf32>");
  EXPECT_LACKS(text, "tensor<4x");
  EXPECT_HAS(*importFile("baked-one.onnx"), "tensor<16x2x3xf32> to tensor<16x6xf32>");
  recipe_.batch.micro = 4;
  EXPECT_TRUE(importFile("baked-constant.onnx").ok());
}

TEST_F(ImportTest, RefusesABakedBatchThatCannotFollow) {
  for (auto [file, node] : {std::pair("baked-constant.onnx", "node 'add_table'"),
                            {"baked-mix.onnx", "node 'across'"}}) {
    Result<std::string> text = importFile(file);
    ASSERT_FALSE(text.ok());
    EXPECT_HAS(text.error().message(), node);
    EXPECT_HAS(text.error().message(), "the exported batch of 4 cannot become batch.micro = 8");
    EXPECT_HAS(text.error().message(), "dynamic_shapes={\"x\": {0: torch.export.Dim(\"batch\")}}");
  }
}

TEST_F(ImportTest, ReportsAllUnsupportedNodesAtOnce) {
  Result<std::string> text = importFile("unsupported.onnx");
  ASSERT_FALSE(text.ok());
  const std::string& message = text.error().message();
  EXPECT_HAS(message, "3 nodes cannot be imported");
  EXPECT_HAS(message, "node '/enc/STFT' (STFT): the op is not supported, in module 'enc'");
  EXPECT_HAS(message, "node 'foo' (com.example.Foo): ops of domain 'com.example'");
  EXPECT_HAS(message, "node 'det' (Det)");
}

TEST_F(ImportTest, NodesBehindAnUnsupportedOneAreNotListed) {
  ModelBuilder model;
  model.input("x", {-1, 3, 4}).output("y");
  model.floats("w", {1, 6, 4}, std::vector<float>(24));
  model.node("STFT", {"x", "w"}, {"h"}, "stft");
  model.node("Shape", {"h"}, {"s"}, "shape");
  model.node("ConstantOfShape", {"s"}, {"z"}, "zeros");
  model.node("Reshape", {"h", "s"}, {"r"}, "reshape");
  model.node("Add", {"r", "z"}, {"a"}, "add");
  model.node("Det", {"a"}, {"y"}, "det");
  const std::string message = import(model);
  EXPECT_TRUE(message.starts_with("error: "));
  EXPECT_HAS(message, "2 nodes cannot be imported");
  EXPECT_HAS(message, "node 'stft' (STFT): the op is not supported");
  EXPECT_HAS(message, "node 'det' (Det)");
}

TEST_F(ImportTest, RaisesWhatExportersTookApart) {
  std::string text = importFile("decomposed.onnx").take();
  for (const char* op : {"titan.layer_norm", "titan.gelu erf", "titan.gelu tanh", "titan.silu"})
    EXPECT_HAS(text, op);
  for (const char* op : {"titan.reduce", "titan.erf", "titan.tanh", "titan.sigmoid", "titan.mul"})
    EXPECT_LACKS(text, op);
}

TEST_F(ImportTest, InlinesLocalFunctions) {
  std::string text = importFile("local-function.onnx").take();
  EXPECT_HAS(text, "alpha 2.500000e-01");
  EXPECT_HAS(text, "alpha 5.000000e-01");
}

TEST_F(ImportTest, FreshInitFollowsRolesAndRules) {
  recipe_.model.init = "fresh";
  std::string text = importFile("mlp-dynamo-train.onnx").take();
  auto state = [&](const std::string& name) {
    size_t at = text.find("titan.state @" + name);
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_HAS(state("norm.weight"), "\"constant\", 1.000000e+00");
  EXPECT_HAS(state("fc1.bias"), "\"constant\", 0.000000e+00");
  EXPECT_HAS(state("fc1.weight"),
             "\"normal\", 0.000000e+00 : f64, 0.408248290463863"); // 1/sqrt(6)
  recipe_.model.initRules.push_back(
      {.match = "fc?.weight", .dist = "uniform", .low = -1, .high = 1});
  text = importFile("mlp-dynamo-train.onnx").take();
  EXPECT_HAS(state("fc2.weight"), "\"uniform\", -1.000000e+00 : f64, 1.000000e+00");
}

TEST_F(ImportTest, FreshSlopesAndBiasesOfRecurrentLayers) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 3, 5}).output("y");
  model.floats("act.weight", {3}, {1, 2, 3});
  model.floats("rnn.bias_ih_l0", {5}, {1, 2, 3, 4, 5});
  model.integers("shape", {3, 1});
  model.node("Reshape", {"act.weight", "shape"}, {"slope"});
  model.node("PRelu", {"x", "slope"}, {"h"});
  model.node("Mul", {"h", "rnn.bias_ih_l0"}, {"y"}); // as an operand of nobody that tells
  recipe_.model.init = "fresh";
  const std::string text = import(model);
  EXPECT_HAS(text,
             "@act.weight : tensor<3xf32> {init = #titan.init_rule<\"constant\", 2.500000e-01");
  EXPECT_HAS(text,
             "@rnn.bias_ih_l0 : tensor<5xf32> {init = #titan.init_rule<\"constant\", 0.000000e+00");
}

TEST_F(ImportTest, InitRulesMatchEveryNameOfATiedParameter) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 3}).output("y");
  model.floats("dec.weight", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  model.node("Gemm", {"x", "dec.weight"}, {"h"}, "/enc/Gemm");
  model.node("Gemm", {"h", "dec.weight"}, {"y"}, "/dec/Gemm");
  recipe_.model.init = "fresh";
  InitRule rule;
  rule.match = "dec.*"; // the canonical name is enc.weight
  rule.dist = "constant";
  rule.value = 7;
  recipe_.model.initRules = {rule};
  EXPECT_HAS(import(model), "#titan.init_rule<\"constant\", 7.000000e+00");
}

TEST_F(ImportTest, MissingWeightsNeedFreshInit) {
  ModelBuilder model;
  model.input("x", {-1, 4}).output("y").node("MatMul", {"x", "w"}, {"y"});
  model.external("w", {4, 2}, "absent.data");
  const std::string refused = import(model);
  EXPECT_HAS(refused, "external data file 'absent.data' is not there");
  EXPECT_HAS(refused, "model.init = \"fresh\"");
  recipe_.model.init = "fresh";
  EXPECT_HAS(import(model), "#titan.init_rule<\"normal\"");
}

TEST_F(ImportTest, FrozenParametersAreNotTrainable) {
  recipe_.model.frozen = {"fc1.*"};
  std::string text = importFile("mlp-dynamo-train.onnx").take();
  size_t at = text.find("titan.state @fc1.weight");
  EXPECT_LACKS(text.substr(at, text.find('\n', at) - at), "trainable");
  recipe_.model.frozen = {"nothing*"};
  EXPECT_HAS(importFile("mlp-dynamo-train.onnx").error().message(),
             "'nothing*' matches no parameter");
}

TEST_F(ImportTest, AnInitRuleMatchesAParameter) {
  recipe_.model.init = "fresh";
  recipe_.model.initRules = {{.match = "fc9.*"}};
  EXPECT_HAS(importFile("mlp-dynamo-train.onnx").error().message(),
             "model.init_rule: 'fc9.*' matches no parameter; --check lists them");
}

TEST_F(ImportTest, StatesNeverCollideWithFunctions) {
  ModelBuilder model;
  model.input("x", {-1, 4}).output("y").node("MatMul", {"x", "model"}, {"y"});
  model.floats("model", {4, 1}, {1, 2, 3, 4});
  EXPECT_HAS(import(model), "canonical_name = \"model\"");
}

TEST_F(ImportTest, CheckListsEverything) {
  CheckReport report = checkModel(context_, (kInputs / "tied-dynamo-train-optimized.onnx").string(),
                                  recipe_, options_)
                           .take();
  EXPECT_EQ(report.error, "");
  for (const char* part : {"parameters (5, 114 elements)", "buffers (1, 6 elements)", "constants (",
                           "enc.0.weight", "from 'val_0', stored as [6, 6], tied to 'dec.weight'"})
    EXPECT_HAS(toText(report), part);
  report = checkModel(context_, (kInputs / "unsupported.onnx").string(), recipe_, options_).take();
  EXPECT_NE(report.error, "");
  EXPECT_HAS(toText(report), "node 'det' (Det)");
}

TEST_F(ImportTest, StarterRecipesParseAndImport) {
  std::string path = (kInputs / "mlp-dynamo-train.onnx").string();
  std::string toml = starterRecipe(path, options_).take();
  EXPECT_HAS(toml, "# input  'x' F32 [batch, 6]");
  recipe_ = parseRecipe(toml).take();
  EXPECT_TRUE(importFile("mlp-dynamo-train.onnx").ok());
}

TEST(Coverage, EveryOpIsListedOnce) {
  std::string table = coverageTable();
  EXPECT_HAS(table, "| Gemm | 7 | floating operands |");
  EXPECT_HAS(table, "| Gelu | 20 |  |");
}

TEST(FileInit, StoresSomething) {
  mlir::MLIRContext context;
  context.loadDialect<ir::TitanDialect>();
  std::string message;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic& diagnostic) { message = diagnostic.str(); });
  auto error = [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
  EXPECT_FALSE(
      ir::FileInitAttr::getChecked(error, &context, llvm::ArrayRef<ir::StoredRangeAttr>()));
  EXPECT_EQ(message, "an init_file stores at least one range");
}

} // namespace
} // namespace titan::frontend
