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
    std::string text;
    llvm::raw_string_ostream stream(text);
    (*module)->print(stream);
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
