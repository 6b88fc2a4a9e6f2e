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

} // namespace

std::string chunkListPath(const std::string& path) { return path + ".chunks"; }

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
      return damagedChunk(chunk, list, nameOf);
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

Error FileCheck::damagedChunk(int64_t chunk, const std::string& found, const NameOf& nameOf) const {
  return Error::badInput("'{}' is damaged: expected digest {} of {}, found {}", path_,
                         hexOf(digestIn(list_, chunk)), describe(chunk, nameOf),
                         hexOf(digestIn(found, chunk)));
}

Error FileCheck::damagedList(int64_t chunk, const std::string& found, const NameOf& nameOf) const {
  if (listBytes_ != static_cast<int64_t>(found.size()))
    return Error::badInput("'{}' is damaged: expected {} bytes, found {}{}", listPath_,
                           found.size(), listBytes_,
                           chunk * chunkDigestBytes < static_cast<int64_t>(found.size())
                               ? ": no digest of " + describe(chunk, nameOf)
                               : "");
  return Error::badInput("'{}' is damaged: the digest of {} is {}, found {}", listPath_,
                         describe(chunk, nameOf), hexOf(digestIn(found, chunk)),
                         hexOf(digestIn(list_, chunk)));
}

std::string FileCheck::describe(int64_t chunk, const NameOf& nameOf) const {
  const int64_t begin = chunk * chunkBytes, end = std::min(begin + chunkBytes, expected_.bytes);
  const std::string name = nameOf ? nameOf(begin, end) : std::string();
  return fmt::format("chunk {} (bytes {} to {}{}{})", chunk, begin, end - 1,
                     name.empty() ? "" : ", ", name);
}

} // namespace titan::checkpoint
