// The graph of a model that a test builds, and what its tensors are called.
#pragma once

#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

namespace titan::frontend::testing {

inline Graph graphOf(ModelBuilder& model, const std::string& producer = "pytorch") {
  model.model.set_producer_name(producer);
  return parseGraph(model.bytes(), "m.onnx", "").take();
}

inline NamedTensor named(ModelBuilder& model, const std::string& initializer,
                         const std::string& producer = "pytorch") {
  NameTable table = nameTensors(graphOf(model, producer)).take();
  const NamedTensor* tensor = table.find(initializer);
  EXPECT_TRUE(tensor) << initializer;
  return tensor ? *tensor : NamedTensor();
}

} // namespace titan::frontend::testing
