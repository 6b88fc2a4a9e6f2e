// Imports of models that a test builds, as printed text.
#pragma once

#include "frontend/onnx/Import.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

namespace titan::frontend::testing {

class ImportFixture : public ::testing::Test {
protected:
  /// The module's text, or "error: ...".
  std::string import(const ModelBuilder& model) {
    Result<Graph> graph = parseGraph(model.bytes(), "m.onnx", "");
    if (!graph.ok())
      return "error: " + graph.error().message();
    Result<NameTable> names = nameTensors(*graph);
    if (!names.ok())
      return "error: " + names.error().message();
    auto module = importGraph(context_, *graph, *names, recipe_);
    if (!module.ok())
      return "error: " + module.error().message();
    return textOf(**module);
  }

  /// The text of importing a model of one node on `x` of 8 x 4 floats (opset as given).
  std::string node(const std::string& type, int64_t opset,
                   void (*change)(::onnx::NodeProto&) = nullptr,
                   const std::vector<std::string>& more = {},
                   void (*tensors)(ModelBuilder&) = nullptr) {
    ModelBuilder model(opset);
    std::vector<std::string> inputs = {"x"};
    inputs.insert(inputs.end(), more.begin(), more.end());
    model.input("x", {-1, 4}).output("y");
    ::onnx::NodeProto& proto = model.node(type, inputs, {"y"}, "n");
    if (change)
      change(proto);
    if (tensors)
      tensors(model);
    return import(model);
  }

  /// As printed, but with one space behind each op.
  static std::string textOf(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream);
    for (const llvm::StringRef name : {".reduce", ".gelu"})
      for (size_t at; (at = text.find((name + "  ").str())) != std::string::npos;)
        text.erase(at + name.size(), 1);
    return text;
  }

  /// What the user is told of the model.
  static std::vector<std::string> notes(const ModelBuilder& model, const Recipe& recipe = {}) {
    Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
    return notesOf(graph, nameTensors(graph).take(), recipe);
  }

  mlir::MLIRContext context_;
  Recipe recipe_; ///< batch.micro = 8
};

} // namespace titan::frontend::testing

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)
