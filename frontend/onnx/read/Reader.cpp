#include "frontend/onnx/read/Reader.h"

#include "frontend/onnx/read/Graph.h"
#include "runtime/program/File.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace titan::frontend {

Result<std::string> readModelFile(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file)
    return Error::badInput("cannot open '{}': {}", path, std::strerror(errno));
  struct stat status;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Error::badInput("'{}' is not a regular file", path);
  uint64_t size = static_cast<uint64_t>(status.st_size);
  if (size > kLargestModelFile)
    return Error::badInput(
        "'{}' has {} bytes, an ONNX file at most {}: export it with external data", path, size,
        kLargestModelFile);
  std::string bytes(size, '\0');
  uint64_t done = 0;
  while (done < size) {
    ssize_t got =
        retryInterrupted([&] { return ::read(file.get(), bytes.data() + done, size - done); });
    if (got <= 0)
      break;
    done += static_cast<uint64_t>(got);
  }
  if (done != size)
    return Error::badInput("'{}': only {} of {} bytes could be read", path, done, size);
  return bytes;
}

/// The deepest nesting of subgraphs in `nodes`, counted up to the limit.
static int subgraphDepth(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes,
                         int depth) {
  int deepest = depth;
  if (depth > kDeepestSubgraph)
    return depth;
  for (const ::onnx::NodeProto& node : nodes)
    for (const ::onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g())
        deepest = std::max(deepest, subgraphDepth(attribute.g().node(), depth + 1));
      for (const ::onnx::GraphProto& graph : attribute.graphs())
        deepest = std::max(deepest, subgraphDepth(graph.node(), depth + 1));
    }
  return deepest;
}

Result<std::map<std::string, int64_t>>
opsetsOf(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) {
  std::map<std::string, int64_t> opsets;
  for (const ::onnx::OperatorSetIdProto& import : imports) {
    std::string domain = import.domain() == "ai.onnx" ? "" : import.domain();
    auto [it, fresh] = opsets.try_emplace(domain, import.version());
    if (!fresh && it->second != import.version())
      return Error::badInput("opset domain '{}' is imported twice, as {} and {}", printable(domain),
                             it->second, import.version());
  }
  if (auto it = opsets.find(""); it != opsets.end()) {
    if (it->second > kNewestOpset)
      return Error::badInput("opset {} is newer than {}, the newest that is understood: export "
                             "with opset_version={}",
                             it->second, kNewestOpset, kNewestOpset);
    if (it->second < kOldestOpset)
      return Error::badInput("opset {} is older than {}, the oldest that is understood: convert "
                             "the model with onnx.version_converter",
                             it->second, kOldestOpset);
  }
  return opsets;
}

Result<::onnx::ModelProto> parseModel(std::string_view bytes) {
  if (bytes.empty())
    return Error::badInput("is empty");
  // Protobuf prints its own complaint about bad input; ours names the file.
  google::protobuf::LogSilencer silence;
  ::onnx::ModelProto model;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream input(&stream);
  input.SetRecursionLimit(3 * kDeepestSubgraph + 16); // a subgraph level is three messages
  if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage())
    return Error::badInput("is not an ONNX model, or is truncated ({} bytes)", bytes.size());
  if (!model.has_graph())
    return Error::badInput("is not an ONNX model: it has no graph");
  if (model.opset_import_size() == 0)
    return Error::badInput("is not an ONNX model: it imports no opset");
  TITAN_TRY(opsetsOf(model.opset_import()));

  int depth = subgraphDepth(model.graph().node(), 0);
  for (const ::onnx::FunctionProto& function : model.functions())
    depth = std::max(depth, subgraphDepth(function.node(), 0));
  if (depth > kDeepestSubgraph)
    return Error::badInput("has subgraphs nested deeper than {}", kDeepestSubgraph);
  if (model.graph().sparse_initializer_size() > 0)
    return Error::badInput("has sparse initializers, which are not supported: '{}'",
                           printable(model.graph().sparse_initializer(0).values().name()));
  return model;
}

} // namespace titan::frontend
