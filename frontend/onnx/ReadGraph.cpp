#include "frontend/onnx/ReadGraph.h"

#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/read/Reader.h"

#include <filesystem>

namespace titan::frontend {

Result<Graph> parseGraph(std::string_view bytes, const std::string& source,
                         const std::string& directory, const GraphOptions& options) {
  Graph graph = TITAN_TRY(buildGraph(bytes, source, directory, options));
  recoverSource(graph);
  return graph;
}

Result<Graph> readGraph(const std::string& path, const GraphOptions& options) {
  std::string bytes = TITAN_TRY(readModelFile(path));
  return parseGraph(bytes, path, std::filesystem::path(path).parent_path().string(), options);
}

} // namespace titan::frontend
