#include "compiler/Codegen/CodeCache.h"

#include "runtime/program/File.h"
#include "runtime/program/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

namespace titan::codegen {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark = "titan-code-cache", ending = ".code";
constexpr std::string_view format = "titan code cache, format 1\n";
/// Of files that a process left when it was killed.
constexpr std::time_t abandonedSeconds = 3600;

std::optional<std::string> read(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t count =
        retryInterrupted([&] { return ::read(file.get(), bytes.data() + at, bytes.size() - at); });
    if (count <= 0)
      return std::nullopt;
    at += static_cast<size_t>(count);
  }
  return bytes;
}

/// What the entry at `path` begins with. Its name counts, too: an entry that was copied over
/// another one is whole, but not the code of that key.
std::string headOf(const std::string& path, std::string_view code) {
  const std::string named = fmt::format("{}\n{}", fs::path(path).filename().string(), code);
  return fmt::format("titan-code {} {}\n", digest128(named), code.size());
}

/// A file of the folder that is no entry and does not come from a cache.
bool isForeign(const std::string& name) {
  return !name.starts_with(mark) && !std::string_view(name).ends_with(ending);
}

} // namespace

CodeCache::CodeCache(std::string directory, std::string compiler, int64_t limit)
    : directory_(std::move(directory)), compiler_(std::move(compiler)), limit_(limit) {
  reads_ = writes_ = open();
}

bool CodeCache::open() {
  std::error_code failure;
  fs::create_directories(directory_, failure);
  if (failure) {
    isUnusable(failure.message());
    return false;
  }
  const std::string path = directory_ + "/" + std::string(mark);
  if (const std::optional<std::string> found = read(path)) {
    if (*found == format)
      return true;
    isUnusable("it has another version's format: remove it, or name another folder");
    return false;
  }
  fs::directory_iterator files(directory_, failure);
  for (; !failure && files != fs::directory_iterator(); files.increment(failure))
    if (isForeign(files->path().filename().string())) {
      isUnusable("it holds other files: name a folder of its own");
      return false;
    }
  if (failure || !write(path, "", format)) {
    isUnusable(failure ? failure.message() : std::strerror(errno));
    return false;
  }
  return true;
}

std::string CodeCache::pathOf(std::string_view key) const {
  return fmt::format("{}/{}{}", directory_, digest128(fmt::format("{}\n{}", compiler_, key)),
                     ending);
}

void CodeCache::isUnusable(std::string_view what) {
  notes_.push_back(fmt::format("--cache {} is not used: {}", directory_, what));
}

bool CodeCache::write(const std::string& path, std::string_view head, std::string_view bytes) {
  // Processes of two containers may have one number.
  const std::string temporary =
      fmt::format("{}/{}.{}-{}", directory_, mark, ::getpid(),
                  std::chrono::system_clock::now().time_since_epoch().count());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file)
    return false;
  if (writeAll(file, head) && writeAll(file, bytes) && file.close() &&
      ::rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  const int why = errno;
  ::unlink(temporary.c_str());
  errno = why;
  return false;
}

std::optional<std::string> CodeCache::find(std::string_view key) {
  if (!reads_)
    return std::nullopt;
  const std::string path = pathOf(key);
  std::optional<std::string> entry = read(path);
  if (!entry)
    return std::nullopt;
  const size_t head = entry->find('\n') + 1; // 0 where there is none
  std::string_view code = std::string_view(*entry).substr(head);
  if (std::string_view(*entry).substr(0, head) != headOf(path, code)) {
    if (!damaged_)
      notes_.push_back(fmt::format("--cache: {} is damaged: its kernel is compiled again", path));
    damaged_ = true;
    return std::nullopt;
  }
  // What is used stays: the limit removes the oldest.
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return std::string(code);
}

void CodeCache::store(std::string_view key, std::string_view code) {
  if (!writes_)
    return;
  const std::string path = pathOf(key);
  writes_ = write(path, headOf(path, code), code);
  stored_ |= writes_;
  if (!writes_)
    notes_.push_back(
        fmt::format("--cache {} cannot be written: {}", directory_, std::strerror(errno)));
}

void CodeCache::trim() {
  if (!stored_)
    return;
  struct Entry {
    std::pair<std::time_t, int64_t> used; // seconds, nanoseconds
    int64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code failure;
  const std::time_t now = std::time(nullptr);
  fs::directory_iterator files(directory_, failure);
  for (; !failure && files != fs::directory_iterator(); files.increment(failure)) {
    const std::string name = files->path().filename().string();
    struct stat status{};
    if (::stat(files->path().c_str(), &status) != 0)
      continue;
    if (std::string_view(name).ends_with(ending)) {
      total += status.st_size;
      entries.push_back({{status.st_mtim.tv_sec, status.st_mtim.tv_nsec},
                         status.st_size,
                         files->path().string()});
    } else if (name.starts_with(mark) && name != mark && now - status.st_mtime > abandonedSeconds) {
      ::unlink(files->path().c_str());
    }
  }
  if (total <= limit_)
    return;
  // A part of the limit at once: not at each compilation anew.
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_ / 4 * 3)
      break;
    if (::unlink(entry.path.c_str()) == 0)
      total -= entry.bytes;
  }
}

} // namespace titan::codegen
