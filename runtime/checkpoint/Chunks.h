// Digests of the chunks of a file, so that whoever reads a part of it can check that part, and
// damage is found where it is.
//
//   <file>.chunks   XXH3-128 of bytes [0, 2^20), [2^20, 2^21), ... of the file, the last chunk may
//                   be shorter; 16 bytes each, in the canonical (big-endian) form
#pragma once

#include "runtime/checkpoint/Digest.h"
#include "runtime/checkpoint/Env.h"
#include "runtime/checkpoint/Manifest.h"

#include <functional>

namespace titan::checkpoint {

inline constexpr int64_t chunkBytes = 1 << 20;
inline constexpr int64_t chunkDigestBytes = 16;

/// Of a file of `bytes` bytes.
constexpr int64_t chunkCount(int64_t bytes) { return (bytes + chunkBytes - 1) / chunkBytes; }
/// "a/b" -> "a/b.chunks"
std::string chunkListPath(const std::string& path);

/// The list of the file at `path`, which its record names. BadInput: missing, or damaged.
Result<std::string> readChunkList(Env& env, const std::string& path, const FileRecord& record);

/// Digests of the chunks of a stream.
class ChunkDigests {
public:
  /// Of `bytes` bytes, as far as that is known.
  explicit ChunkDigests(int64_t bytes = 0) {
    list_.reserve(static_cast<size_t>(chunkCount(bytes) * chunkDigestBytes));
  }
  void update(std::string_view bytes);
  /// After the last byte: the list, chunkDigestBytes a chunk.
  const std::string& finish();

private:
  void close();

  Digest digest_;
  int64_t open_ = 0; ///< bytes of the chunk that is not full yet
  std::string list_;
};

/// Takes all bytes of a file in their order and holds them against its record.
class FileCheck {
public:
  /// What lies in bytes [begin, end) of the file, for messages: "tensor 'a'"; may be empty.
  using NameOf = std::function<std::string(int64_t begin, int64_t end)>;

  /// Of the file at `path`. Reads the list of chunks that the record names: BadInput where it is
  /// missing.
  static Result<FileCheck> begin(Env& env, const std::string& path, const FileRecord& expected);

  void update(std::string_view bytes);
  /// After the last byte. BadInput: the file or its list is damaged, with the first chunk that
  /// differs and what lies there.
  Status finish(const NameOf& nameOf);

private:
  Error damagedList(int64_t chunk, const std::string& found, const NameOf& nameOf) const;
  std::string path_, listPath_; ///< without a list: empty
  FileRecord expected_;
  std::string list_;      ///< as it was read, at most the bytes that the file needs
  int64_t listBytes_ = 0; ///< of the list's file
  Digest whole_;
  ChunkDigests chunks_;
};

/// Chunk `chunk` of the file at `path`, which has `bytes` bytes, has another digest; of digests as
/// in a list. "'x' is damaged: expected digest ... of chunk 2 (bytes 2097152 to 3145727, tensor
/// 'a'), found ...".
Error damagedChunk(const std::string& path, int64_t bytes, int64_t chunk, std::string_view expected,
                   std::string_view found, const FileCheck::NameOf& nameOf);
/// What some bytes of a file with tensors hold: "header, tensors 'a', 'b' and 7 more".
std::string describeContent(bool header, const std::vector<std::string>& names);

} // namespace titan::checkpoint
