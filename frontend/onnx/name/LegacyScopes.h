// The scopes that the TorchScript exporter writes into node names: "/h.0/ln_1/Add".
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// "down" of "down_1": the exporter numbers scopes of equal names.
std::string_view withoutNumber(std::string_view segment);

/// The scope part of a legacy node name: "/a/b" of "/a/b/MatMul"; empty for others.
std::string scopePart(const Node& node);

} // namespace titan::frontend
