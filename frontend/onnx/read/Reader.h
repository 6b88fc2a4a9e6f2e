// Bytes to a ModelProto that is safe to walk: sizes, depth of nesting, opsets. What `readGraph` is
// made of.
#pragma once

#include "frontend/onnx/read/Protos.h"
#include "runtime/program/Error.h"

namespace titan::frontend {

/// Limits on what a file may contain; far above real models, far below what hurts.
inline constexpr uint64_t kLargestModelFile = (uint64_t(1) << 31) - 1; ///< protobuf's own limit
inline constexpr int kDeepestSubgraph = 16;
inline constexpr size_t kMostNodes = 1'000'000; ///< after local functions are inlined

/// The contents of a regular file of at most `kLargestModelFile` bytes.
Result<std::string> readModelFile(const std::string& path);

/// Parses and checks `bytes`: an ONNX model with a graph, known opsets, subgraphs not deeper than
/// `kDeepestSubgraph`.
Result<::onnx::ModelProto> parseModel(std::string_view bytes);

/// The imported version of each domain; "ai.onnx" and "" are one.
Result<std::map<std::string, int64_t>>
opsetsOf(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports);

} // namespace titan::frontend
