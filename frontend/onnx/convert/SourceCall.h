// What a node was in the source, where torch.export wrote it beside the node.
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// A call of torch.export's graph: "torch.ops.aten.linear.default", and the text of its arguments;
/// empty without the metadata.
struct SourceCall {
  std::string_view target, arguments;
};
SourceCall sourceCallOf(const Node& node);

/// Is a BatchNormalization written, or was it run, in training form? One exporter writes the form
/// of inference in both cases, and keeps PyTorch's call beside it.
bool usesBatchStatistics(const Node& node);

} // namespace titan::frontend
