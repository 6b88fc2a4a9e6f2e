// Kinds and names of a graph's tensors, from what the exporter left: their own names, the
// signature, the metadata and scopes of the nodes that read them, their values.
#pragma once

#include "frontend/onnx/name/Names.h"

namespace titan::frontend {

/// Kinds, names, aliases and doubts of all tensors of `graph`, before the names file has its say;
/// states and the account are not formed.
NameTable namesOf(const Graph& graph);

} // namespace titan::frontend
