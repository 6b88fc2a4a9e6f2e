// What the names in a file tell of the exporter that wrote it.
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// Did an exporter or an optimizer make this name up?
bool isAnonymous(std::string_view name);

/// Is it an export of torch.export whose metadata a conversion to an older opset dropped?
bool isConverted(const Graph& graph);
/// Is `name` one that torch.export gives to a value, after its op: "exp", "add_1"?
bool namesFxValue(std::string_view name);

/// The rules by which onnxscript's optimizer made `node` of others, as it lists them.
std::vector<std::string_view> rewriterRules(const Node& node);
/// Did the exporter multiply a norm of the batch into the weights of `node`, a convolution or a
/// product? They keep the source's names and are other tensors, which train otherwise.
bool holdsFoldedNorm(const Node& node);

} // namespace titan::frontend
