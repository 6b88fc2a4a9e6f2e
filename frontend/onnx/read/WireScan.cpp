// Layout (protobuf encoding): a message is a sequence of (tag varint, value); tag = field << 3 |
// type; type 0 varint, 1 eight bytes, 2 length varint + bytes, 5 four bytes. Fields used, from
// onnx.proto:
//
//   ModelProto      graph 7
//   GraphProto      node 1, initializer 5
//   NodeProto       attribute 5
//   AttributeProto  t 5
//   TensorProto     float_data 4 (packed), raw_data 9, double_data 10 (packed)
#include "frontend/onnx/read/WireScan.h"

namespace titan::frontend {

namespace {

/// Reads the fields of one message; `next` is false at its end and at anything malformed.
class FieldReader {
public:
  FieldReader(std::string_view file, ByteRange message)
      : file_(file), at_(message.offset), end_(message.offset + message.bytes) {}

  bool next() {
    uint64_t tag = 0;
    if (at_ >= end_ || !varint(tag))
      return false;
    field = static_cast<int>(tag >> 3);
    delimited = (tag & 7) == 2;
    uint64_t bytes = 0, ignored = 0;
    switch (tag & 7) {
    case 0:
      return varint(ignored);
    case 1:
      bytes = 8;
      break;
    case 2:
      if (!varint(bytes))
        return false;
      break;
    case 5:
      bytes = 4;
      break;
    default:
      return false; // groups: ONNX has none
    }
    if (bytes > end_ - at_)
      return false;
    range = {at_, bytes};
    at_ += bytes;
    return true;
  }

  int field = 0;
  bool delimited = false;
  ByteRange range;

private:
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ < end_; shift += 7) {
      uint8_t byte = static_cast<uint8_t>(file_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }

  std::string_view file_;
  uint64_t at_, end_;
};

std::optional<ByteRange> tensorData(std::string_view file, ByteRange tensor) {
  std::optional<ByteRange> data;
  for (FieldReader reader(file, tensor); reader.next();)
    if (reader.delimited && (reader.field == 4 || reader.field == 9 || reader.field == 10)) {
      // Two pieces of data were concatenated by the parser: they do not lie in one run.
      if (data)
        return std::nullopt;
      data = reader.range;
    }
  return data;
}

} // namespace

TensorRanges scanTensors(std::string_view model) {
  TensorRanges ranges;
  size_t node = 0;
  for (FieldReader top(model, {0, model.size()}); top.next();) {
    if (top.field != 7 || !top.delimited)
      continue;
    for (FieldReader graph(model, top.range); graph.next();) {
      if (!graph.delimited)
        continue;
      if (graph.field == 5)
        ranges.initializers.push_back(tensorData(model, graph.range));
      if (graph.field != 1)
        continue;
      size_t attribute = 0;
      for (FieldReader fields(model, graph.range); fields.next();) {
        if (fields.field != 5 || !fields.delimited)
          continue;
        for (FieldReader value(model, fields.range); value.next();)
          if (value.field == 5 && value.delimited)
            if (std::optional<ByteRange> data = tensorData(model, value.range))
              ranges.attributes[{node, attribute}] = *data;
        ++attribute;
      }
      ++node;
    }
  }
  return ranges;
}

} // namespace titan::frontend
