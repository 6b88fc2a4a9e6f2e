// The safetensors format, read strictly and written as a stream.
//
//   0      u64, little-endian: n, the header's length, at most 100,000,000
//   8      n bytes of JSON that start with '{', padded with spaces so that the data starts at a
//          multiple of 8:
//            { "__metadata__": { "<key>": "<string>", ... },
//              "<name>": { "dtype": "F32", "shape": [128, 784], "data_offsets": [begin, end] },
//              ... }
//   8 + n  the data, row-major, little-endian; offsets are relative to here, and together cover the
//          data to the end of the file without holes or overlaps
//
// Sharded files as torch.distributed.checkpoint.HuggingFaceStorageReader reads them: the metadata
// has DCP_VERSION and DCP_SHARDING_INFO, a JSON string { "<name>": { "saved_offsets": [o0, o1] } }
// that says where in the whole tensor the file's piece starts.
#pragma once

#include "runtime/checkpoint/Env.h"
#include "runtime/program/DType.h"

#include <map>
#include <string>
#include <vector>

namespace titan::checkpoint {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  int64_t begin = 0, end = 0; ///< bytes, from the start of the data
  Shape offsets; ///< of a piece in its whole tensor (saved_offsets); empty: none were given
  int64_t bytes() const { return end - begin; }
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries; ///< in the order of their data
  std::map<std::string, std::string> metadata;
  int64_t dataStart = 0; ///< of the data in the file
};

constexpr int64_t maxSafetensorsHeaderBytes = 100'000'000;

/// `prefix` starts at the file's first byte and holds at least the whole header; `fileBytes` is the
/// file's size. Every rule above is checked; BadInput says which was broken, with the tensor's
/// name.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view prefix, int64_t fileBytes);
/// The bytes of a file before its data, as its first 8 say; nothing else of them is checked.
Result<std::string> readSafetensorsHeaderBytes(ReadableFile& file);

/// The bytes before the data. Sets begin and end of `entries` to pack them in their order; with
/// `sharded`, the metadata for HuggingFaceStorageReader is added.
std::string formatSafetensorsHeader(std::vector<SafetensorsEntry>& entries,
                                    std::map<std::string, std::string> metadata, bool sharded);

} // namespace titan::checkpoint
