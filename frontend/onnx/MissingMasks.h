// Attention masks of structure-only files. A mask that a module holds as a buffer lies in the data
// file with the weights; where that is missing, how the model uses the mask tells what it must be.
#pragma once

#include "frontend/onnx/Graph.h"

namespace titan::frontend {

/// Gives every initializer without data that is one square matrix and does nothing but mask
/// attention scores the values of a causal mask, as a constant, with a note. Tensors that anything
/// else is done with stay missing.
void assumeCausalMasks(Graph& graph);

} // namespace titan::frontend
