// ONNX's protobuf classes, and the fields that are younger than the protos of libonnx 1.12: those
// survive parsing as unknown fields.
#pragma once

#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace titan::frontend {

/// Field numbers of onnx.proto (IR version 10 and later) that 1.12 does not know.
namespace field {
inline constexpr int kNodeOverload = 8;
inline constexpr int kNodeMetadata = 9;
inline constexpr int kGraphMetadata = 16;
inline constexpr int kFunctionAttributeDefaults = 11;
inline constexpr int kFunctionOverload = 13;
} // namespace field

/// The `metadata_props` of a node or graph. Malformed entries are skipped: metadata only improves
/// names.
std::map<std::string, std::string> metadataOf(const ::onnx::NodeProto& node);
std::map<std::string, std::string> metadataOf(const ::onnx::GraphProto& graph);
/// The `overload` of a call or a function; empty when there is none.
std::string overloadOf(const ::onnx::NodeProto& node);
std::string overloadOf(const ::onnx::FunctionProto& function);
/// The attributes of a function that have a default (`attribute_proto`).
std::vector<::onnx::AttributeProto> attributeDefaultsOf(const ::onnx::FunctionProto& function);

/// UTF-8 without control characters: what a name must be that goes into manifests and checkpoints.
bool isText(std::string_view name);
/// A name from a file as it may stand in a message: what is not text escaped, long names cut.
std::string printable(std::string_view name);
/// The same in quotes.
std::string inQuotes(std::string_view name);

} // namespace titan::frontend
