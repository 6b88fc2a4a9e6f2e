// Graphs with the metadata that torch.export writes, and the names that their tensors get.
#pragma once

#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace titan::frontend::testing {

class FoldedFixture : public ::testing::Test {
protected:
  static constexpr std::initializer_list<float> kDrawn = {0.31f, -0.72f, 0.113f, 0.944f};

  FoldedFixture() {
    model_.model.set_producer_name("pytorch");
    model_.input("x", {-1, 2}).output("y");
  }

  void floats(const std::string& name, const std::vector<int64_t>& shape,
              const std::vector<float>& values) {
    model_.floats(name, shape, values);
  }
  /// A node of the fx node `%name = aten.<op>(args)` in `module`.
  void add(const char* type, const std::vector<std::string>& inputs, const std::string& output,
           const std::string& module, const std::string& op, const std::string& args,
           const std::string& keywords = "") {
    ModelBuilder::setSource(model_.node(type, inputs, {output}, "node_" + output), module, op, args,
                            keywords);
  }
  void sign(const std::vector<std::string>& parameters,
            const std::vector<std::string>& buffers = {}) {
    std::string lines;
    auto list = [&](const std::string& name, const char* prefix, const char* kind) {
      std::string flat = name;
      std::replace(flat.begin(), flat.end(), '.', '_');
      lines += prefix + flat + ": " + kind + " target='" + name + "'\n";
    };
    for (const std::string& name : parameters)
      list(name, "p_", "PARAMETER");
    for (const std::string& name : buffers)
      list(name, "b_", "BUFFER");
    model_.signature(lines);
  }
  void read() {
    graph_ = parseGraph(model_.bytes(), "m.onnx", "").take();
    names_ = nameTensors(graph_).take();
  }
  /// What node `node` reads as operand `k`.
  const NamedTensor& operand(size_t node, size_t k) {
    return *names_.find(graph_.nodes.at(node).inputs.at(k));
  }
  std::string notes() const {
    std::string text;
    for (const Notes& notes : {graph_.notes, names_.notes})
      for (const std::string& line : notes.lines())
        text += line + "\n";
    return text;
  }

  ModelBuilder model_{20};
  Graph graph_;
  NameTable names_;
};

} // namespace titan::frontend::testing
