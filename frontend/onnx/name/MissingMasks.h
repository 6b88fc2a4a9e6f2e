// Attention masks of structure-only files. A mask that a module holds as a buffer lies in the data
// file with the weights; where that is missing, how the model uses the mask tells what it must be.
#pragma once

#include "frontend/onnx/name/Names.h"

namespace titan::frontend {

/// Gives initializers without data that are one square matrix the values of a causal mask, as
/// constants, with a note: those that `overrides` calls causal masks, and with `fresh` those that
/// do nothing but mask attention scores. Never a parameter. What is added to the scores may be a
/// trained bias instead: the exporter must call it a buffer, else it becomes `perhapsMask`. All
/// others stay missing. Errors: a tensor that `overrides` calls a causal mask and that cannot be.
Status completeMasks(Graph& graph, const NameOverrides& overrides, bool fresh);

} // namespace titan::frontend
