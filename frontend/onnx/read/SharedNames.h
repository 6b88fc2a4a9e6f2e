// torch.export names a tensor of the root module after its attribute, and a result after its fx
// node: a buffer `mean` and the value of `x.mean(-1)` have one name in the file.
#pragma once

#include "frontend/onnx/read/Graph.h"

#include <functional>

namespace titan::frontend {

/// What is behind the name of a result that had that of a tensor.
inline constexpr std::string_view kOfResult = "#result";

/// Gives results that are called like a tensor a name of their own. Who reads before the result is
/// there means the tensor; of those behind it the fx node tells. Error: nothing tells what a node
/// reads. The nodes are in the file's order.
Status renameSharedResults(Graph& graph, const std::function<bool(const std::string&)>& isTensor);

} // namespace titan::frontend
