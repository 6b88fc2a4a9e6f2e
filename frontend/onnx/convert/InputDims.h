// Binding of the inputs' dimensions: which one is the batch, what the symbols stand for.
#pragma once

#include "frontend/onnx/read/Graph.h"
#include "runtime/program/Recipe.h"

namespace titan::frontend {

struct BoundInput {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  bool batched = false; ///< dimension 0 is the batch
};

struct BoundInputs {
  std::vector<BoundInput> inputs;
  /// The batch that the export was made with, still in the shapes; 0: the shapes have `batch.micro`
  /// already.
  int64_t bakedBatch = 0;
};

/// A leading dimension with a symbol that `model.dims` does not bind is the batch. Without one, the
/// inputs' common leading extent is a batch that the export baked in. Errors: symbols without a
/// value, one for the batch that is not `batch.micro`, inputs without a type or shape.
Result<BoundInputs> bindInputs(const Graph& graph, const Recipe& recipe);

} // namespace titan::frontend
