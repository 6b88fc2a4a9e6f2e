// Imports for what is about ops alone.
#pragma once

#include "frontend/onnx/Import.h"
#include "frontend/onnx/ReadGraph.h"

namespace titan::frontend::testing {

/// The module of `graph` with its tensors as constants, not parameters, and the batch that it has.
inline Result<mlir::OwningOpRef<mlir::ModuleOp>> importConstants(mlir::MLIRContext& context,
                                                                 const Graph& graph) {
  NameTable names;
  for (const std::string& initializer : graph.initializerOrder) {
    NamedTensor tensor;
    tensor.initializer = tensor.name = initializer;
    names.tensors.push_back(tensor);
  }
  Recipe recipe;
  if (!graph.inputs.empty() && graph.inputs[0].dims && !graph.inputs[0].dims->empty())
    recipe.batch.micro = graph.inputs[0].dims->front().extent.value_or(1);
  return importGraph(context, graph, names, recipe);
}

} // namespace titan::frontend::testing
