#include "runtime/checkpoint/StoredFile.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace titan::checkpoint {
namespace {

Status compareSize(const std::string& path, int64_t bytes, const FileRecord& expected) {
  if (bytes != expected.bytes)
    return Error::badInput("'{}' is damaged: expected {} bytes, found {}", path, expected.bytes,
                           bytes);
  return {};
}

/// Calls `see` with the bytes [begin, end) of the file, so many at a time that what was just read
/// is in the cache when its digests are taken.
template <typename See>
Status forEachChunk(ReadableFile& file, int64_t begin, int64_t end, std::string& chunk, See see) {
  for (int64_t offset = begin; offset < end; offset += chunkBytes) {
    const auto bytes = static_cast<size_t>(std::min(chunkBytes, end - offset));
    if (chunk.size() < bytes)
      chunk.resize(bytes);
    TITAN_TRY(file.read(offset, chunk.data(), static_cast<int64_t>(bytes)));
    see(std::string_view(chunk).substr(0, bytes));
  }
  return {};
}

/// Reads all of the file.
Status checkBytes(Env& env, ReadableFile& file, const std::string& path,
                  const FileRecord& expected) {
  FileCheck check = TITAN_TRY(FileCheck::begin(env, path, expected));
  std::string chunk;
  TITAN_TRY(forEachChunk(file, 0, file.size(), chunk,
                         [&](std::string_view bytes) { check.update(bytes); }));
  return check.finish({});
}

/// What bytes [begin, end) of the file hold.
std::string contentOf(const SafetensorsHeader& header, int64_t begin, int64_t end) {
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header.entries)
    if (header.dataStart + entry.begin < end && header.dataStart + entry.end > begin)
      names.push_back(entry.name);
  return describeContent(begin < header.dataStart, names);
}

} // namespace

Status checkFile(Env& env, const std::string& path, const FileRecord& expected) {
  auto file = TITAN_TRY(env.openFile(path));
  TITAN_TRY(compareSize(path, file->size(), expected));
  return checkBytes(env, *file, path, expected);
}

Result<StoredFile> StoredFile::open(Env& env, const std::string& path, const FileRecord* expected,
                                    Reading reading) {
  StoredFile stored;
  stored.path_ = path;
  if (expected)
    stored.expected_ = *expected;
  stored.file_ = TITAN_TRY(env.openFile(path));
  if (expected)
    TITAN_TRY(compareSize(path, stored.file_->size(), *expected));

  std::optional<FileCheck> whole;
  if (expected && reading == Reading::All)
    whole.emplace(TITAN_TRY(FileCheck::begin(env, path, *expected)));
  // What is parsed is what is digested: the header's bytes are read once.
  const auto parse = [&]() -> Result<SafetensorsHeader> {
    stored.headerBytes_ = TITAN_TRY(readSafetensorsHeaderBytes(*stored.file_));
    if (whole)
      whole->update(stored.headerBytes_);
    return parseSafetensorsHeader(stored.headerBytes_, stored.file_->size());
  };
  auto header = parse();
  if (!header.ok()) {
    if (header.error().code() != ErrorCode::BadInput)
      return header.takeError();
    // Of a checkpoint's file, that it was damaged says more than what is wrong with its header.
    if (expected)
      TITAN_TRY(checkBytes(env, *stored.file_, path, *expected));
    return header.takeError().withContext(fmt::format("'{}'", path));
  }
  stored.header_ = header.take();
  if (reading == Reading::Header) {
    if (expected && expected->chunks)
      stored.chunkList_ = TITAN_TRY(readChunkList(env, path, *expected));
    return stored;
  }
  TITAN_TRY(stored.readData(whole ? &*whole : nullptr));
  if (whole)
    TITAN_TRY(whole->finish(
        [&](int64_t begin, int64_t end) { return contentOf(stored.header_, begin, end); }));
  return stored;
}

Status StoredFile::readData(FileCheck* whole) {
  std::string chunk;
  // The entries cover the data in their order, without holes.
  for (const SafetensorsEntry& entry : header_.entries) {
    Digest digest;
    TITAN_TRY(forEachChunk(*file_, header_.dataStart + entry.begin, header_.dataStart + entry.end,
                           chunk, [&](std::string_view bytes) {
                             digest.update(bytes);
                             if (whole)
                               whole->update(bytes);
                           }));
    digests_.push_back(digest.hex());
  }
  return {};
}

EntryReader::EntryReader(const StoredFile& file, size_t entry)
    : file_(file), entry_(entry),
      position_(file.header_.dataStart + file.header_.entries[entry].begin),
      end_(file.header_.dataStart + file.header_.entries[entry].end) {}

Status EntryReader::fetch(char* into, int64_t bytes) {
  while (bytes > 0) {
    const int64_t piece = std::min(chunkBytes, bytes);
    TITAN_TRY(file_.file_->read(position_, into, piece));
    digest_.update({into, static_cast<size_t>(piece)});
    position_ += piece;
    into += piece;
    bytes -= piece;
  }
  return {};
}

Status EntryReader::read(const ByteSink& into) {
  return into.fillPieces([&](int64_t, std::span<char> piece) {
    return readInto(piece.data(), static_cast<int64_t>(piece.size()));
  });
}

Status EntryReader::readInto(char* into, int64_t bytes) {
  if (used_ == buffer_.size() && bytes == end_ - position_)
    return fetch(into, bytes);
  while (bytes > 0) {
    if (used_ == buffer_.size()) {
      buffer_.resize(static_cast<size_t>(std::min(chunkBytes, end_ - position_)));
      used_ = 0;
      TITAN_TRY(fetch(buffer_.data(), static_cast<int64_t>(buffer_.size())));
    }
    const auto piece = std::min(buffer_.size() - used_, static_cast<size_t>(bytes));
    std::memcpy(into, buffer_.data() + used_, piece);
    used_ += piece;
    into += piece;
    bytes -= static_cast<int64_t>(piece);
  }
  return {};
}

Status EntryReader::finish() const {
  if (const std::string first = file_.digest(entry_); !first.empty() && digest_.hex() != first)
    return Error::badInput("'{}' changed while it was loaded: tensor '{}' had digest {}, now {}",
                           file_.path_, file_.header_.entries[entry_].name, file_.digest(entry_),
                           digest_.hex());
  return {};
}

} // namespace titan::checkpoint
