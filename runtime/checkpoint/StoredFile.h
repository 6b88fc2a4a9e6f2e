// A safetensors file that is read twice: once when it is opened, to check every byte of it, and
// once when its tensors go into the program's state. What the second pass reads must be what the
// first one checked. Neither pass keeps more than a small buffer.
//
// Ranks that load together read blocks instead, each once (LoadBlocks.h): for them the header alone
// is read here, and a block is checked by whoever reads it.
#pragma once

#include "runtime/checkpoint/Chunks.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/device/Bytes.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace titan::checkpoint {

/// How much of a file is read when it is opened.
enum class Reading : uint8_t { All, Header };

class StoredFile {
public:
  /// First pass: reads the whole file and parses its header. With `expected`, size and digests must
  /// be its: BadInput names the chunk that is not, and the tensors in it. The file stays open: one
  /// that is renamed over it later is not read. Of Reading::Header, size and list of chunks only.
  static Result<StoredFile> open(Env& env, const std::string& path, const FileRecord* expected,
                                 Reading reading = Reading::All);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  int64_t bytes() const { return file_->size(); }
  /// The bytes before the data.
  const std::string& headerBytes() const { return headerBytes_; }
  /// The file's record; null where nothing is known of it.
  const FileRecord* expected() const { return expected_ ? &*expected_ : nullptr; }
  /// Of a file whose header alone was read: the digests of its chunks, as its record says.
  const std::string& chunkList() const { return chunkList_; }
  /// XXH3-128 of the data of header().entries[entry], as the first pass read it; empty where it did
  /// not.
  std::string digest(size_t entry) const { return digests_.empty() ? "" : digests_[entry]; }

private:
  friend class EntryReader;

  /// Takes the digest of each entry; `whole`, if not null, sees the same bytes.
  Status readData(FileCheck* whole);

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::optional<FileRecord> expected_;
  std::string headerBytes_, chunkList_;
  SafetensorsHeader header_;
  std::vector<std::string> digests_;
};

/// Second pass over the data of one entry, from its first byte to its last.
class EntryReader {
public:
  /// `file` must outlive the reader.
  EntryReader(const StoredFile& file, size_t entry);

  /// The next into.bytes() bytes; all of the entry at once are read straight into a place that is
  /// direct.
  Status read(const ByteSink& into);
  /// After the last byte: BadInput if they are not what the first pass read, where it did.
  Status finish() const;

private:
  Status readInto(char* into, int64_t bytes);
  Status fetch(char* into, int64_t bytes);

  const StoredFile& file_;
  size_t entry_;
  int64_t position_, end_; ///< in the file: [position_, end_) was not fetched yet
  std::string buffer_;     ///< fetched
  size_t used_ = 0;        ///< of the buffer
  Digest digest_;
};

/// Size and digests of the file are the record's; BadInput names what was expected and found.
Status checkFile(Env& env, const std::string& path, const FileRecord& expected);

} // namespace titan::checkpoint
