#include "frontend/onnx/Protos.h"

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

namespace titan::frontend {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

static std::string unknownString(const UnknownFieldSet& fields, int number) {
  std::string value;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& entry = fields.field(i);
    if (entry.number() == number && entry.type() == UnknownField::TYPE_LENGTH_DELIMITED)
      value = entry.length_delimited();
  }
  return value;
}

std::map<std::string, std::string> metadataOf(const ::onnx::NodeProto& node) {
  std::map<std::string, std::string> metadata;
  const UnknownFieldSet& fields = node.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& entry = fields.field(i);
    if (entry.number() != field::kNodeMetadata ||
        entry.type() != UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    ::onnx::StringStringEntryProto pair;
    if (pair.ParseFromString(entry.length_delimited()))
      metadata[pair.key()] = pair.value();
  }
  return metadata;
}

std::string overloadOf(const ::onnx::NodeProto& node) {
  return unknownString(node.unknown_fields(), field::kNodeOverload);
}

std::string overloadOf(const ::onnx::FunctionProto& function) {
  return unknownString(function.unknown_fields(), field::kFunctionOverload);
}

std::vector<::onnx::AttributeProto> attributeDefaultsOf(const ::onnx::FunctionProto& function) {
  std::vector<::onnx::AttributeProto> defaults;
  const UnknownFieldSet& fields = function.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& entry = fields.field(i);
    if (entry.number() != field::kFunctionAttributeDefaults ||
        entry.type() != UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    ::onnx::AttributeProto attribute;
    if (attribute.ParseFromString(entry.length_delimited()))
      defaults.push_back(std::move(attribute));
  }
  return defaults;
}

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 200;
  std::string out;
  for (unsigned char c : name.substr(0, kLongest)) {
    if (c < 0x20 || c >= 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else
      out += static_cast<char>(c);
  }
  if (name.size() > kLongest)
    out += "...";
  return out;
}

} // namespace titan::frontend
