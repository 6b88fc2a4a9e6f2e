#include "runtime/checkpoint/Chunks.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

/// The digest of one chunk in a list: 16 bytes, or fewer at the end of a short one.
std::string_view digestIn(std::string_view list, int64_t chunk) {
  const auto begin = std::min(list.size(), static_cast<size_t>(chunk * chunkDigestBytes));
  return list.substr(begin, static_cast<size_t>(chunkDigestBytes));
}

/// The first chunk whose digests differ, or the number of `found`'s.
int64_t firstDifference(std::string_view list, std::string_view found) {
  const auto [inList, inFound] =
      std::mismatch(list.begin(), list.end(), found.begin(), found.end());
  return (inFound - found.begin()) / chunkDigestBytes;
}

std::string hexOf(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

/// "chunk 2 (bytes 2097152 to 3145727, tensor 'a')", of a file of `bytes` bytes.
std::string describe(int64_t bytes, int64_t chunk, const FileCheck::NameOf& nameOf) {
  const int64_t begin = chunk * chunkBytes, end = std::min(begin + chunkBytes, bytes);
  const std::string name = nameOf ? nameOf(begin, end) : std::string();
  return fmt::format("chunk {} (bytes {} to {}{}{})", chunk, begin, end - 1,
                     name.empty() ? "" : ", ", name);
}

} // namespace

std::string chunkListPath(const std::string& path) { return path + ".chunks"; }

Result<std::string> readChunkList(Env& env, const std::string& path, const FileRecord& record) {
  const std::string listPath = joinPath(parentPath(path), baseName(record.chunks->path));
  const int64_t wanted = chunkCount(record.bytes) * chunkDigestBytes;
  const auto file = TITAN_TRY(env.openFile(listPath));
  if (file->size() != wanted)
    return Error::badInput("'{}' is damaged: expected {} bytes, found {}", listPath, wanted,
                           file->size());
  std::string list(static_cast<size_t>(wanted), '\0');
  TITAN_TRY(file->read(0, list.data(), wanted));
  if (const std::string found = digestOf(list); found != record.chunks->digest)
    return Error::badInput("'{}' is damaged: expected digest {}, found {}", listPath,
                           record.chunks->digest, found);
  return list;
}

void ChunkDigests::update(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.substr(0, static_cast<size_t>(chunkBytes - open_));
    digest_.update(part);
    open_ += static_cast<int64_t>(part.size());
    bytes.remove_prefix(part.size());
    if (open_ == chunkBytes)
      close();
  }
}

void ChunkDigests::close() {
  list_ += digest_.bytes();
  digest_.reset();
  open_ = 0;
}

const std::string& ChunkDigests::finish() {
  if (open_ > 0)
    close();
  return list_;
}

Result<FileCheck> FileCheck::begin(Env& env, const std::string& path, const FileRecord& expected) {
  FileCheck check;
  check.path_ = path;
  check.expected_ = expected;
  if (!expected.chunks)
    return check;
  check.listPath_ = joinPath(parentPath(path), baseName(expected.chunks->path));
  const auto file = TITAN_TRY(env.openFile(check.listPath_));
  check.listBytes_ = file->size();
  const int64_t wanted = chunkCount(expected.bytes) * chunkDigestBytes;
  check.list_.resize(static_cast<size_t>(std::min(file->size(), wanted)));
  TITAN_TRY(file->read(0, check.list_.data(), static_cast<int64_t>(check.list_.size())));
  return check;
}

void FileCheck::update(std::string_view bytes) {
  whole_.update(bytes);
  if (expected_.chunks)
    chunks_.update(bytes);
}

Status FileCheck::finish(const NameOf& nameOf) {
  const std::string found = whole_.hex();
  const bool isWhole = found == expected_.digest;
  if (expected_.chunks) {
    const std::string& list = chunks_.finish();
    const int64_t chunk = firstDifference(list_, list);
    const bool differs = list_ != list;
    if (!isWhole && differs && static_cast<size_t>(chunk * chunkDigestBytes) < list_.size())
      return damagedChunk(path_, expected_.bytes, chunk, digestIn(list_, chunk),
                          digestIn(list, chunk), nameOf);
    if (isWhole && (differs || listBytes_ != static_cast<int64_t>(list.size())))
      return damagedList(chunk, list, nameOf);
    if (isWhole && digestOf(list_) != expected_.chunks->digest)
      return Error::badInput("'{}' is damaged: expected digest {}, found {}", listPath_,
                             expected_.chunks->digest, digestOf(list_));
  }
  if (!isWhole)
    return Error::badInput("'{}' is damaged: expected digest {}, found {}", path_, expected_.digest,
                           found);
  return {};
}

Error FileCheck::damagedList(int64_t chunk, const std::string& found, const NameOf& nameOf) const {
  if (listBytes_ != static_cast<int64_t>(found.size()))
    return Error::badInput("'{}' is damaged: expected {} bytes, found {}{}", listPath_,
                           found.size(), listBytes_,
                           chunk * chunkDigestBytes < static_cast<int64_t>(found.size())
                               ? ": no digest of " + describe(expected_.bytes, chunk, nameOf)
                               : "");
  return Error::badInput("'{}' is damaged: the digest of {} is {}, found {}", listPath_,
                         describe(expected_.bytes, chunk, nameOf), hexOf(digestIn(found, chunk)),
                         hexOf(digestIn(list_, chunk)));
}

Error damagedChunk(const std::string& path, int64_t bytes, int64_t chunk, std::string_view expected,
                   std::string_view found, const FileCheck::NameOf& nameOf) {
  return Error::badInput("'{}' is damaged: expected digest {} of {}, found {}", path,
                         hexOf(expected), describe(bytes, chunk, nameOf), hexOf(found));
}

std::string describeContent(bool header, const std::vector<std::string>& names) {
  constexpr size_t maxNames = 3;
  std::string text = header ? "header" : "";
  if (names.empty())
    return text;
  text += fmt::format("{}tensor{} ", text.empty() ? "" : ", ", names.size() > 1 ? "s" : "");
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), maxNames); ++i)
    shown.push_back(fmt::format("'{}'", names[i]));
  text += fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > maxNames)
    text += fmt::format(" and {} more", names.size() - maxNames);
  return text;
}

} // namespace titan::checkpoint
