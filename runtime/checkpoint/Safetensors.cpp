#include "runtime/checkpoint/Safetensors.h"

#include "runtime/checkpoint/StrictJson.h"

#include <algorithm>
#include <tuple>

namespace titan::checkpoint {
namespace {

constexpr int64_t lengthBytes = 8;
constexpr const char* metadataKey = "__metadata__";
constexpr const char* versionKey = "DCP_VERSION";
constexpr const char* shardingKey = "DCP_SHARDING_INFO";
constexpr const char* offsetsKey = "saved_offsets";

Result<int64_t> checkedBytes(const SafetensorsEntry& entry) {
  int64_t bytes = byteSize(entry.dtype);
  for (int64_t extent : entry.shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return Error::badInput("shape {} overflows", toString(entry.shape));
  return bytes;
}

Result<SafetensorsEntry> parseEntry(const std::string& name, const Json& json) {
  if (!json.is_object())
    return Error::badInput("not described by an object");
  for (const auto& [key, value] : json.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return Error::badInput("unknown field '{}'", key);
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = TITAN_TRY(parseDType(TITAN_TRY(stringField(json, "dtype"))));
  entry.shape = TITAN_TRY(extentsField(json, "shape"));
  const Shape range = TITAN_TRY(extentsField(json, "data_offsets"));
  if (range.size() != 2 || range[0] > range[1])
    return Error::badInput("data_offsets {} is not [begin, end]", toString(range));
  entry.begin = range[0];
  entry.end = range[1];
  const int64_t bytes = TITAN_TRY(checkedBytes(entry));
  if (entry.end - entry.begin != bytes)
    return Error::badInput("{} {} takes {} bytes, data_offsets hold {}", titan::name(entry.dtype),
                           toString(entry.shape), bytes, entry.end - entry.begin);
  return entry;
}

Status parseMetadata(const Json& json, SafetensorsHeader& header) {
  if (!json.is_object())
    return Error::badInput("__metadata__ is not an object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      return Error::badInput("__metadata__ '{}' is not a string", key);
    header.metadata[key] = value.get<std::string>();
  }
  return {};
}

Status parseOffsets(const Json& info, SafetensorsEntry& entry) {
  entry.offsets = TITAN_TRY(extentsField(*TITAN_TRY(objectField(info, entry.name)), offsetsKey));
  if (entry.offsets.size() != entry.shape.size())
    return Error::badInput("saved_offsets {} do not fit shape {}", toString(entry.offsets),
                           toString(entry.shape));
  for (size_t i = 0; i < entry.offsets.size(); ++i)
    if (entry.offsets[i] > INT64_MAX - entry.shape[i])
      return Error::badInput("saved_offsets {} overflow", toString(entry.offsets));
  return {};
}

Error about(const std::string& tensor, Error error) {
  return std::move(error).withContext(fmt::format("tensor '{}'", tensor));
}

/// Where the metadata says where the pieces lie, it must do so for every tensor.
Status parseShardingInfo(SafetensorsHeader& header) {
  const auto text = header.metadata.find(shardingKey);
  if (text == header.metadata.end())
    return {};
  const Json info = TITAN_TRY(parseJsonObject(text->second, shardingKey));
  for (SafetensorsEntry& entry : header.entries)
    if (Status parsed = parseOffsets(info, entry); !parsed.ok())
      return about(entry.name, parsed.takeError().withContext(shardingKey));
  return {};
}

/// The data is covered from its first to its last byte, in order, once.
Status checkCoverage(SafetensorsHeader& header, int64_t dataBytes) {
  // An empty tensor begins where its successor begins, so its end decides.
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  int64_t covered = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != covered)
      return Error::badInput("tensor '{}' begins at byte {} of the data, the one before ends at {}",
                             entry.name, entry.begin, covered);
    covered = entry.end;
  }
  if (covered != dataBytes)
    return Error::badInput("the tensors take {} bytes, the file holds {}", covered, dataBytes);
  return {};
}

Result<int64_t> parseHeaderLength(std::string_view prefix, int64_t fileBytes) {
  if (fileBytes < lengthBytes)
    return Error::badInput("{} bytes are too few for a safetensors file", fileBytes);
  uint64_t length = 0;
  for (int i = 0; i < lengthBytes; ++i)
    length |= static_cast<uint64_t>(static_cast<unsigned char>(prefix[i])) << (8 * i);
  if (length > static_cast<uint64_t>(maxSafetensorsHeaderBytes))
    return Error::badInput("the header's length is {}, at most {} are allowed", length,
                           maxSafetensorsHeaderBytes);
  if (static_cast<int64_t>(length) > fileBytes - lengthBytes)
    return Error::badInput("the header's length is {}, the file has {} bytes", length, fileBytes);
  return static_cast<int64_t>(length);
}

} // namespace

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view prefix, int64_t fileBytes) {
  const int64_t length = TITAN_TRY(parseHeaderLength(prefix, fileBytes));
  const std::string_view text = prefix.substr(lengthBytes, static_cast<size_t>(length));
  if (static_cast<int64_t>(text.size()) != length)
    return Error::badInput("the header is cut off after {} of {} bytes", text.size(), length);
  if (!text.starts_with('{'))
    return Error::badInput("the header does not start with '{{'");
  const Json json = TITAN_TRY(parseJsonObject(text, "the header"));

  SafetensorsHeader header;
  header.dataStart = lengthBytes + length;
  for (const auto& [key, value] : json.items()) {
    if (key == metadataKey) {
      TITAN_TRY(parseMetadata(value, header));
      continue;
    }
    auto entry = parseEntry(key, value);
    if (!entry.ok())
      return about(key, entry.takeError());
    header.entries.push_back(entry.take());
  }
  TITAN_TRY(checkCoverage(header, fileBytes - header.dataStart));
  TITAN_TRY(parseShardingInfo(header));
  return header;
}

Result<std::string> readSafetensorsHeaderBytes(ReadableFile& file) {
  std::string prefix(static_cast<size_t>(std::min(lengthBytes, file.size())), '\0');
  TITAN_TRY(file.read(0, prefix.data(), static_cast<int64_t>(prefix.size())));
  const int64_t length = TITAN_TRY(parseHeaderLength(prefix, file.size()));
  prefix.resize(static_cast<size_t>(lengthBytes + length));
  TITAN_TRY(file.read(lengthBytes, prefix.data() + lengthBytes, length));
  return prefix;
}

std::string formatSafetensorsHeader(std::vector<SafetensorsEntry>& entries,
                                    std::map<std::string, std::string> metadata, bool sharded) {
  int64_t position = 0;
  std::string tensors, offsets;
  for (SafetensorsEntry& entry : entries) {
    entry.begin = position;
    entry.end = position += elementCount(entry.shape) * byteSize(entry.dtype);
    const char* separator = &entry == &entries.front() ? "" : ",";
    const std::string name = jsonString(entry.name);
    tensors += fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":{}}})", separator, name,
                           titan::name(entry.dtype), Json(entry.shape).dump(),
                           Json({entry.begin, entry.end}).dump());
    offsets += fmt::format(
        R"({}{}:{{"{}":{}}})", separator, name, offsetsKey,
        Json(entry.offsets.empty() ? Shape(entry.shape.size(), 0) : entry.offsets).dump());
  }
  if (sharded) {
    metadata[versionKey] = "1.0";
    metadata[shardingKey] = "{" + offsets + "}";
  }
  std::string text = "{";
  if (!metadata.empty())
    text +=
        fmt::format("\"{}\":{}{}", metadataKey, Json(metadata).dump(), tensors.empty() ? "" : ",");
  text += tensors + "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (int i = 0; i < lengthBytes; ++i)
    bytes.push_back(static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i)));
  return bytes + text;
}

} // namespace titan::checkpoint
