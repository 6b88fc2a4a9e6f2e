// Where the bytes of tensors lie inside a model file. Protobuf copies what it parses and forgets
// the offsets; IR refers to weights by file, offset and length, so we walk the wire format once
// more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace titan::frontend {

struct ByteRange {
  uint64_t offset = 0, bytes = 0;
};

struct TensorRanges {
  /// Of the graph's initializers, in the order of parsing. Nothing for data that is not stored in
  /// its final form (varints).
  std::vector<std::optional<ByteRange>> initializers;
  /// Of the tensors in attributes of the graph's nodes, by (node, attribute).
  std::map<std::pair<size_t, size_t>, ByteRange> attributes;
};

/// `model` is a serialized ModelProto that protobuf has accepted. What the walk does not understand
/// is left out.
TensorRanges scanTensors(std::string_view model);

} // namespace titan::frontend
