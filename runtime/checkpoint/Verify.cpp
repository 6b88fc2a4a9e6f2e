#include "runtime/checkpoint/Verify.h"

#include "runtime/checkpoint/Chunks.h"
#include "runtime/checkpoint/ReadCheckpoint.h"
#include "runtime/checkpoint/TensorFile.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

namespace titan::checkpoint {
namespace {

/// What a thread takes at once, in chunks.
constexpr int64_t taskChunks = 16;

/// A file of the manifest.
struct CheckedFile {
  const FileRecord* record = nullptr;
  std::string path;
  std::string list;                        ///< digests of its chunks, sound; empty: read in order
  std::optional<SafetensorsHeader> header; ///< where it can be read
  std::optional<Error> error;              ///< of what was looked at first
};

struct Task {
  size_t file = 0;
  int64_t first = 0, behind = 0; ///< chunks; of a file that is read in order: 0, 0
  Status storage;                ///< what ended it
  std::vector<std::string> damages;
};

/// Damage goes to `damages`, other errors are returned.
Status keep(Status status, std::vector<std::string>& damages) {
  if (status.ok() || status.error().code() != ErrorCode::BadInput)
    return status;
  damages.push_back(status.error().message());
  return {};
}

/// Size, header and list of chunks.
Status look(Env& env, CheckedFile& file) {
  const auto open = TITAN_TRY(env.openFile(file.path));
  if (open->size() != file.record->bytes)
    return Error::badInput("'{}' is damaged: expected {} bytes, found {}", file.path,
                           file.record->bytes, open->size());
  if (file.path.ends_with(tensorSuffix)) {
    // It serves to name tensors; whether it is sound its chunks tell.
    auto bytes = readSafetensorsHeaderBytes(*open);
    if (!bytes.ok() && bytes.error().code() != ErrorCode::BadInput)
      return bytes.takeError();
    if (bytes.ok())
      if (auto header = parseSafetensorsHeader(*bytes, open->size()); header.ok())
        file.header = header.take();
  }
  if (!file.record->chunks)
    return {};
  auto list = readChunkList(env, file.path, *file.record);
  if (list.ok())
    file.list = list.take();
  else if (list.error().code() != ErrorCode::BadInput)
    return list.takeError();
  return {};
}

std::string contentOf(const std::optional<SafetensorsHeader>& header, int64_t begin, int64_t end) {
  if (!header)
    return {};
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header->entries)
    if (header->dataStart + entry.begin < end && header->dataStart + entry.end > begin)
      names.push_back(entry.name);
  return describeContent(begin < header->dataStart, names);
}

Status checkChunks(Env& env, const CheckedFile& file, Task& task) {
  const auto open = TITAN_TRY(env.openFile(file.path));
  std::string bytes;
  for (int64_t chunk = task.first; chunk < task.behind; ++chunk) {
    const int64_t begin = chunk * chunkBytes;
    bytes.resize(static_cast<size_t>(std::min(chunkBytes, file.record->bytes - begin)));
    TITAN_TRY(open->read(begin, bytes.data(), static_cast<int64_t>(bytes.size())));
    Digest digest;
    digest.update(bytes);
    const std::string found = digest.bytes();
    const auto expected = std::string_view(file.list).substr(
        static_cast<size_t>(chunk * chunkDigestBytes), static_cast<size_t>(chunkDigestBytes));
    if (found != expected)
      task.damages.push_back(
          damagedChunk(file.path, file.record->bytes, chunk, expected, found,
                       [&](int64_t from, int64_t to) { return contentOf(file.header, from, to); })
              .message());
  }
  return {};
}

std::vector<Task> tasksOf(const std::vector<CheckedFile>& files) {
  std::vector<Task> tasks;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].error)
      continue;
    if (files[i].list.empty()) {
      tasks.push_back({i, 0, 0, {}, {}});
      continue;
    }
    const int64_t chunks = chunkCount(files[i].record->bytes);
    for (int64_t first = 0; first < chunks; first += taskChunks)
      tasks.push_back({i, first, std::min(first + taskChunks, chunks), {}, {}});
  }
  return tasks;
}

void run(Env& env, const std::vector<CheckedFile>& files, std::vector<Task>& tasks, int threads) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) {
      Task& task = tasks[i];
      const CheckedFile& file = files[task.file];
      task.storage = keep(file.list.empty() ? checkFile(env, file.path, *file.record)
                                            : checkChunks(env, file, task),
                          task.damages);
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads && i < static_cast<int>(tasks.size()); ++i)
    others.emplace_back(work);
  work();
}

/// What is wrong with the files' bytes. `folders` gets those of damaged files.
Result<std::vector<std::string>> damagesOfFiles(const std::string& path, const Manifest& manifest,
                                                int threads, std::set<std::string>& folders,
                                                Env& env) {
  std::vector<CheckedFile> files;
  for (const FileRecord& record : manifest.files) {
    files.push_back({&record, joinPath(path, record.path), {}, {}, {}});
    if (Status looked = look(env, files.back()); !looked.ok()) {
      if (looked.error().code() != ErrorCode::BadInput)
        return looked.takeError();
      files.back().error = looked.takeError();
    }
  }
  std::vector<Task> tasks = tasksOf(files);
  run(env, files, tasks, threads);
  std::vector<std::string> damages;
  auto task = tasks.begin();
  for (size_t i = 0; i < files.size(); ++i) {
    const size_t before = damages.size();
    if (files[i].error)
      damages.push_back(files[i].error->message());
    for (; task != tasks.end() && task->file == i; ++task) {
      TITAN_TRY(std::move(task->storage));
      std::ranges::move(task->damages, std::back_inserter(damages));
    }
    if (damages.size() > before)
      folders.insert(parentPath(files[i].record->path));
  }
  return damages;
}

} // namespace

Result<VerifyReport> verifyWhole(const std::string& path, int threads, Env& env) {
  VerifyReport report;
  std::unique_ptr<FileLock> hold;
  const auto open = [&]() -> Status {
    hold = TITAN_TRY(holdCheckpoint(path, env));
    report.manifest = TITAN_TRY(readManifest(path, env));
    return {};
  };
  TITAN_TRY(keep(open(), report.damages));
  if (!report.manifest)
    return report;
  std::set<std::string> damaged;
  report.damages = TITAN_TRY(damagesOfFiles(path, *report.manifest, threads, damaged, env));
  for (Status& wrong : checkStructure(path, *report.manifest, damaged, env))
    TITAN_TRY(keep(std::move(wrong), report.damages));
  return report;
}

} // namespace titan::checkpoint
