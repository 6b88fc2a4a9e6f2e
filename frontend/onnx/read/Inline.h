// Model-local functions (FunctionProto) replaced by their bodies.
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// The nodes of `model`'s graph with every call of a local function replaced by its body, names of
/// inner values made unique. Errors: recursion, more than `kMostNodes` nodes, attributes without a
/// value.
Result<std::vector<Node>> inlineFunctions(const ::onnx::ModelProto& model);

/// The node of `proto` but for its opset and attributes, which may be large.
Node nodeOf(const ::onnx::NodeProto& proto);

} // namespace titan::frontend
