#include "frontend/onnx/read/Protos.h"

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

static std::map<std::string, std::string> pairsOf(const UnknownFieldSet& fields, int number) {
  std::map<std::string, std::string> metadata;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& entry = fields.field(i);
    if (entry.number() != number || entry.type() != UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    ::onnx::StringStringEntryProto pair;
    if (pair.ParseFromString(entry.length_delimited()))
      metadata[pair.key()] = pair.value();
  }
  return metadata;
}

std::map<std::string, std::string> metadataOf(const ::onnx::NodeProto& node) {
  return pairsOf(node.unknown_fields(), field::kNodeMetadata);
}

std::map<std::string, std::string> metadataOf(const ::onnx::GraphProto& graph) {
  return pairsOf(graph.unknown_fields(), field::kGraphMetadata);
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

/// The length of the UTF-8 sequence at the start of `text`; 0 where there is none, or a control
/// character.
static size_t characterLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80)
    return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  // Overlong forms, surrogates and what lies above U+10FFFF; C1 controls.
  bool forbidden = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                   (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f) ||
                   (lead == 0xc2 && byte(1) < 0xa0);
  return forbidden ? 0 : length;
}

bool isText(std::string_view name) {
  while (!name.empty()) {
    size_t length = characterLength(name);
    if (length == 0)
      return false;
    name.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 200;
  std::string out;
  while (!name.empty() && out.size() < kLongest) {
    if (size_t length = characterLength(name)) {
      out += name.substr(0, length);
      name.remove_prefix(length);
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(name.front()));
      name.remove_prefix(1);
    }
  }
  if (!name.empty())
    out += "...";
  return out;
}

std::string inQuotes(std::string_view name) { return "'" + printable(name) + "'"; }

} // namespace titan::frontend
