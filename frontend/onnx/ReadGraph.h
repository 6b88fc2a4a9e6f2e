// The first two steps of an import: a file becomes a graph, in which modules and parameters are
// again those of the source (name/SourceModel.h).
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// Reads `path`. Errors name the file, the node and the numbers.
Result<Graph> readGraph(const std::string& path, const GraphOptions& options = {});
/// The same from bytes; `source` names them in errors and in file spans, external data lies in
/// `directory`.
Result<Graph> parseGraph(std::string_view bytes, const std::string& source,
                         const std::string& directory, const GraphOptions& options = {});

} // namespace titan::frontend
