#include "runtime/checkpoint/Commit.h"

#include "runtime/checkpoint/Digest.h"

namespace titan::checkpoint {

Result<Attempt> Attempt::begin(Env& env, const std::string& parent, std::string_view what) {
  std::string path =
      joinPath(parent, fmt::format("{}{}-{:016x}", attemptPrefix, what, env.uniqueNumber()));
  TITAN_TRY(env.makeDirectory(path));
  return Attempt(env, parent, std::move(path));
}

Attempt Attempt::join(Env& env, const std::string& path) {
  return Attempt(env, parentPath(path), path);
}

Status Attempt::makeDirectory(const std::string& name) {
  return env_->makeDirectory(joinPath(path_, name));
}

Result<FileRecord> Attempt::write(const std::string& relativePath,
                                  std::span<const ByteSource> pieces, ChunkDigests* chunks,
                                  const std::function<void(size_t)>& onRead) {
  const std::string path = joinPath(path_, relativePath);
  auto file = TITAN_TRY(env_->createFile(path));
  directories_.insert(parentPath(path));
  FileRecord record;
  record.path = relativePath;
  Digest digest;
  const std::function append = [&](std::span<const char> bytes) -> Status {
    std::string_view rest(bytes.data(), bytes.size());
    while (!rest.empty()) {
      // What was just written is in the cache when its digests are taken.
      const std::string_view part = rest.substr(0, static_cast<size_t>(chunkBytes));
      TITAN_TRY(file->append(part));
      digest.update(part);
      if (chunks)
        chunks->update(part);
      record.bytes += static_cast<int64_t>(part.size());
      rest.remove_prefix(part.size());
    }
    return {};
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    TITAN_TRY(pieces[i].forEachPiece(append));
    if (onRead)
      onRead(i);
  }
  TITAN_TRY(file->sync());
  TITAN_TRY(file->close());
  record.digest = digest.hex();
  return record;
}

Status Attempt::writeFile(const std::string& relativePath,
                          std::span<const std::string_view> pieces) {
  const std::vector<ByteSource> sources(pieces.begin(), pieces.end());
  files_.push_back(TITAN_TRY(write(relativePath, sources)));
  return {};
}

Status Attempt::writeDataFile(const std::string& relativePath, std::span<const ByteSource> pieces,
                              const std::function<void(size_t)>& onRead) {
  int64_t bytes = 0;
  for (const ByteSource& piece : pieces)
    bytes += piece.bytes();
  ChunkDigests chunks(bytes);
  FileRecord record = TITAN_TRY(write(relativePath, pieces, &chunks, onRead));
  const ByteSource list[] = {std::span<const char>(chunks.finish())};
  FileRecord listRecord = TITAN_TRY(write(chunkListPath(relativePath), list));
  record.chunks = {std::move(listRecord.path), std::move(listRecord.digest)};
  files_.push_back(std::move(record));
  return {};
}

Status Attempt::syncDirectories() {
  for (const std::string& directory : directories_)
    TITAN_TRY(env_->syncDirectory(directory));
  directories_.clear();
  return {};
}

Status Attempt::publish(std::string_view manifest, const std::string& finalName) {
  TITAN_TRY(env_->syncDirectory(path_));

  const std::string name = Manifest::fileName;
  const ByteSource pieces[] = {std::span<const char>(manifest)};
  TITAN_TRY(write(name + ".tmp", pieces));
  TITAN_TRY(env_->rename(joinPath(path_, name + ".tmp"), joinPath(path_, name)));
  TITAN_TRY(env_->syncDirectory(path_));
  TITAN_TRY(env_->rename(path_, joinPath(parent_, finalName)));
  isPublished_ = true;
  return {};
}

void Attempt::abandon() {
  if (!isPublished_)
    (void)removeTree(*env_, path_);
}

void Attempt::withdraw(const std::string& finalName) {
  (void)env_->rename(joinPath(parent_, finalName), path_);
}

Result<bool> removeCommitted(Env& env, const std::string& path, bool& syncFailed) {
  auto lock = TITAN_TRY(env.tryLock(joinPath(path, Manifest::fileName), LockKind::Exclusive));
  if (!lock)
    return false;
  const std::string parent = parentPath(path);
  const std::string doomed = joinPath(
      parent, fmt::format("{}{}-{:016x}", doomedPrefix, baseName(path), env.uniqueNumber()));
  TITAN_TRY(env.rename(path, doomed));
  // No load finds it any more. NFS keeps the name of a file that is open.
  lock.reset();
  // Without this the files could be gone after a crash, and the name still be there.
  if (Status synced = env.syncDirectory(parent); !synced.ok()) {
    syncFailed = true;
    return synced.takeError();
  }
  TITAN_TRY(removeTree(env, doomed));
  return true;
}

} // namespace titan::checkpoint
