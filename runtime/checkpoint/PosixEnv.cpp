#include "runtime/checkpoint/Env.h"

#include "runtime/program/File.h"
#include "runtime/program/Process.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace titan::checkpoint {
namespace {

/// What a file collects before it writes. The kernel looks up each page of a direct write, and a
/// page is made when it is first touched: so pages are large where the system has such, and one
/// buffer stays for the next file.
namespace write_buffer {

constexpr size_t bytes = 4 << 20, largePage = 2 << 20;
std::atomic<char*> spare = nullptr;

char* take() {
  if (char* kept = spare.exchange(nullptr))
    return kept;
  auto* buffer = static_cast<char*>(std::aligned_alloc(largePage, bytes));
  if (buffer)
    (void)::madvise(buffer, bytes, MADV_HUGEPAGE);
  return buffer;
}

struct GiveBack {
  void operator()(char* buffer) const { std::free(spare.exchange(buffer)); }
};

} // namespace write_buffer

/// Collects what is appended, and writes it past the page cache where the system can: the kernel's
/// copy of a large file would cost more of a CPU than everything else that a save does.
class PosixWritableFile : public WritableFile {
public:
  PosixWritableFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status append(std::string_view bytes) override {
    while (!bytes.empty()) {
      if (!buffer_)
        buffer_.reset(write_buffer::take());
      if (!buffer_)
        return fileError("write", path_, ENOMEM);
      const size_t count = std::min(bytes.size(), write_buffer::bytes - filled_);
      std::memcpy(buffer_.get() + filled_, bytes.data(), count);
      filled_ += count;
      bytes.remove_prefix(count);
      if (filled_ == write_buffer::bytes)
        TITAN_TRY(flush(/*direct=*/true));
    }
    return {};
  }
  Status reserve(int64_t bytes) override {
    const auto take = [&] { return ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, bytes); };
    // Any other error says that this storage does not do it.
    if (retryInterrupted(take) != 0 && (errno == ENOSPC || errno == EDQUOT))
      return fileError("reserve room in", path_, errno);
    noteProgress();
    return {};
  }
  Status sync() override {
    TITAN_TRY(flush(/*direct=*/false));
    if (retryInterrupted([&] { return ::fdatasync(fd_.get()); }) != 0)
      return fileError("sync", path_, errno);
    noteProgress();
    return {};
  }
  Status close() override {
    TITAN_TRY(flush(/*direct=*/false));
    if (!fd_.close() && errno != EINTR)
      return fileError("close", path_, errno);
    return {};
  }

private:
  /// `direct`: the buffer is full, and the file so far is full buffers.
  Status flush(bool direct) {
    const std::string_view bytes(buffer_.get(), std::exchange(filled_, 0));
    if (bytes.empty())
      return {};
    size_t done = 0;
    if (setDirect(direct)) {
      const ssize_t count =
          retryInterrupted([&] { return ::write(fd_.get(), bytes.data(), bytes.size()); });
      done = static_cast<size_t>(std::max<ssize_t>(count, 0));
    }
    // What the system did not take so, for whatever reason, has its error by the common way.
    if (done < bytes.size() && (setDirect(false), !writeAll(fd_, bytes.substr(done))))
      return fileError("write", path_, errno);
    noteProgress();
    return {};
  }

  /// Is the file in direct mode now? File systems that do not know it are not asked again.
  bool setDirect(bool direct) {
    if (direct == isDirect_ || (direct && isRefused_))
      return isDirect_;
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    const bool isSet = flags >= 0 && ::fcntl(fd_.get(), F_SETFL,
                                             direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
    isRefused_ = isRefused_ || !isSet;
    if (isSet)
      isDirect_ = direct;
    return isDirect_;
  }

  std::string path_;
  Descriptor fd_;
  std::unique_ptr<char, write_buffer::GiveBack> buffer_;
  size_t filled_ = 0;
  bool isDirect_ = false, isRefused_ = false;
};

/// O_NONBLOCK: a pipe in the place of a file must not make us wait for its writer.
Descriptor openToRead(const std::string& path) {
  return Descriptor(
      retryInterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
}

class PosixReadableFile : public ReadableFile {
public:
  PosixReadableFile(std::string path, Descriptor fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  int64_t size() const override { return size_; }
  Status read(int64_t offset, char* into, int64_t bytes) override {
    while (bytes > 0) {
      const ssize_t got = retryInterrupted(
          [&] { return ::pread(fd_.get(), into, static_cast<size_t>(bytes), offset); });
      if (got < 0)
        return fileError("read", path_, errno);
      if (got == 0)
        return Error::badInput("'{}' ends at byte {}: {} more were expected", path_, offset, bytes);
      into += got;
      offset += got;
      bytes -= got;
      noteProgress();
    }
    return {};
  }

private:
  std::string path_;
  Descriptor fd_;
  int64_t size_;
};

class PosixFileLock : public FileLock {
public:
  explicit PosixFileLock(Descriptor fd) : fd_(std::move(fd)) {}

private:
  Descriptor fd_; // closing it releases the lock
};

/// A lock with a text in it.
class PosixTextLock : public FileLock {
public:
  explicit PosixTextLock(Descriptor fd) : fd_(std::move(fd)) {}

  void rewrite(std::string_view self) override {
    const auto size = static_cast<off_t>(self.size());
    if (retryInterrupted([&] { return ::pwrite(fd_.get(), self.data(), self.size(), 0); }) == size)
      (void)retryInterrupted([&] { return ::ftruncate(fd_.get(), size); });
  }

private:
  Descriptor fd_; // closing it releases the lock
};

/// False with errno set.
bool trySync(const std::string& directory) {
  Descriptor fd(retryInterrupted(
      [&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (fd.get() < 0)
    return false;
  const bool synced = retryInterrupted([&] { return ::fsync(fd.get()); }) == 0;
  const int reason = errno; // closing the descriptor may change it
  fd.reset();
  errno = reason;
  return synced;
}

FileKind kindOfMode(mode_t mode) {
  if (S_ISREG(mode))
    return FileKind::File;
  return S_ISDIR(mode) ? FileKind::Directory : FileKind::Other;
}

/// Is the open file the one at `path`, and not one that was there before?
bool isAt(const std::string& path, const Descriptor& fd) {
  struct stat open, there;
  return ::fstat(fd.get(), &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

/// FAT is the one file system in use whose files end before 2^43 bytes, and no call tells.
uint64_t largestFile(const std::string& path) {
  rlimit limit{};
  uint64_t most = std::numeric_limits<uint64_t>::max();
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    most = limit.rlim_cur;
  struct statfs system;
  if (::statfs(path.c_str(), &system) == 0 && system.f_type == MSDOS_SUPER_MAGIC)
    most = std::min<uint64_t>(most, std::numeric_limits<uint32_t>::max());
  return most;
}

class PosixEnv : public Env {
public:
  Result<std::unique_ptr<WritableFile>> createFile(const std::string& path) override {
    Descriptor fd(retryInterrupted(
        [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
    if (fd.get() < 0)
      return fileError("create", path, errno);
    return std::unique_ptr<WritableFile>(new PosixWritableFile(path, std::move(fd)));
  }

  Result<std::unique_ptr<ReadableFile>> openFile(const std::string& path) override {
    Descriptor fd = openToRead(path);
    struct stat status;
    if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0)
      return fileError("open", path, errno);
    if (!S_ISREG(status.st_mode))
      return Error::badInput("'{}' is not a regular file", path);
    return std::unique_ptr<ReadableFile>(
        new PosixReadableFile(path, std::move(fd), status.st_size));
  }

  void dropCached(const std::string& path) override {
    if (const Descriptor fd = openToRead(path); fd.get() >= 0)
      ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }

  Result<FileKind> kindOf(const std::string& path) override {
    struct stat status;
    if (::stat(path.c_str(), &status) == 0)
      return kindOfMode(status.st_mode);
    if (errno == ENOENT || errno == ENOTDIR)
      return FileKind::Missing;
    return fileError("look at", path, errno);
  }

  Result<std::vector<DirectoryEntry>> readDirectory(const std::string& path) override {
    std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
    if (!directory)
      return fileError("open", path, errno);
    std::vector<DirectoryEntry> entries;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (!entry && errno != 0)
        return fileError("read", path, errno);
      if (!entry)
        break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..")
        continue;
      struct stat status;
      if (::fstatat(::dirfd(directory.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
          continue; // removed since it was listed
        return fileError("look at", joinPath(path, name), errno);
      }
      entries.push_back({name, kindOfMode(status.st_mode)});
    }
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
  }

  Status makeDirectory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) != 0)
      return fileError("make directory", path, errno);
    return {};
  }

  Status syncDirectory(const std::string& path) override {
    if (!trySync(path))
      return fileError("sync directory", path, errno);
    return {};
  }

  Status syncAncestor(const std::string& path) override {
    if (trySync(path) || errno == EACCES || errno == EPERM || errno == EROFS || errno == EINVAL)
      return {};
    return fileError("sync directory", path, errno);
  }

  Status rename(const std::string& from, const std::string& to) override {
    // rename(2) would replace a file or an empty directory. We hold the directory's lock, so
    // looking first is enough; RENAME_NOREPLACE is missing on NFS.
    struct stat status;
    if (::lstat(to.c_str(), &status) == 0)
      return fileError("rename to", to, EEXIST);
    if (::rename(from.c_str(), to.c_str()) != 0)
      return fileError("rename", fmt::format("{}' to '{}", from, to), errno);
    return {};
  }

  Status removeFile(const std::string& path) override {
    if (::unlink(path.c_str()) != 0)
      return fileError("remove", path, errno);
    return {};
  }

  Status removeDirectory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0)
      return fileError("remove directory", path, errno);
    return {};
  }

  Result<LockAttempt> lockFile(const std::string& path, std::string_view self) override {
    Descriptor fd(
        retryInterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); }));
    if (fd.get() < 0)
      return fileError("lock", path, errno);
    // Who lists the run has a shared lock for a moment (RunListing.h).
    constexpr int tries = 5;
    constexpr auto pause = std::chrono::milliseconds(10);
    const auto isLocked = [&] {
      return retryInterrupted([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) == 0;
    };
    bool locked = isLocked();
    for (int i = 1; i < tries && !locked && errno == EWOULDBLOCK; ++i) {
      std::this_thread::sleep_for(pause);
      locked = isLocked();
    }
    if (!locked) {
      if (errno != EWOULDBLOCK)
        return fileError("lock", path, errno);
      char holder[256];
      const ssize_t got = ::pread(fd.get(), holder, sizeof holder, 0);
      return LockAttempt{nullptr, std::string(holder, got > 0 ? static_cast<size_t>(got) : 0)};
    }
    // Who held it took it away meanwhile (CheckpointStore::takeBack): others would lock a new file.
    if (!isAt(path, fd))
      return lockFile(path, self);
    if (::ftruncate(fd.get(), 0) != 0)
      return fileError("write", path, errno);
    if (!writeAll(fd, self))
      return fileError("write", path, errno);
    return LockAttempt{std::make_unique<PosixTextLock>(std::move(fd)), {}};
  }

  Result<std::unique_ptr<FileLock>> tryLock(const std::string& path, LockKind kind) override {
    const bool isShared = kind == LockKind::Shared;
    const auto openAs = [&](int mode) {
      return Descriptor(
          retryInterrupted([&] { return ::open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC); }));
    };
    // NFS makes of an exclusive lock one of a file that is open for writing.
    Descriptor fd = openAs(isShared ? O_RDONLY : O_RDWR);
    if (fd.get() < 0 && !isShared && (errno == EACCES || errno == EROFS))
      fd = openAs(O_RDONLY);
    if (fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR))
      return std::make_unique<FileLock>();
    if (fd.get() < 0)
      return fileError("lock", path, errno);
    if (retryInterrupted(
            [&] { return ::flock(fd.get(), (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB); }) == 0)
      return std::unique_ptr<FileLock>(new PosixFileLock(std::move(fd)));
    if (errno == EWOULDBLOCK)
      return std::unique_ptr<FileLock>();
    if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL ||
        errno == EBADF)
      return std::make_unique<FileLock>();
    return fileError("lock", path, errno);
  }

  Result<Space> space(const std::string& path) override {
    struct statvfs status;
    if (::statvfs(path.c_str(), &status) != 0)
      return fileError("ask for the free space of", path, errno);
    Space space;
    space.largestFile = largestFile(path);
    if (status.f_blocks != 0)
      space.bytes = static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
    if (status.f_files != 0)
      space.inodes = status.f_favail;
    return space;
  }

  uint64_t uniqueNumber() override {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
  }
};

} // namespace

Env& posixEnv() {
  static PosixEnv env;
  return env;
}

} // namespace titan::checkpoint
