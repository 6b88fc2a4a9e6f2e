// The scopes that the TorchScript exporter writes into node names: "/h.0/ln_1/Add".
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// "down" of "down_1": the exporter numbers scopes of equal names.
std::string_view withoutNumber(std::string_view segment);

/// The scope part of a legacy node name: "/a/b" of "/a/b/MatMul"; empty for others.
std::string scopePart(const Node& node);

/// The module of `tensor` that `scope` shows: "/down_1" the module of blocks.1.down.weight. Empty:
/// it shows another one.
std::string_view shownModule(std::string_view scope, std::string_view tensor);

} // namespace titan::frontend
