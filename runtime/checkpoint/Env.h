// Every operation on files that the checkpoint layer does, behind an interface, so that tests can
// fail or cut off any single one of them (testing/FaultEnv.h, testing/CrashEnv.h).
//
// Paths are plain strings. Errors name the operation, the path and the system's reason. A path that
// does not exist is BadInput where it was to be read; everything else is Environment.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace titan::checkpoint {

/// A new file, written from its beginning. Destroying it closes it; what was not synced may be
/// lost.
class WritableFile {
public:
  virtual ~WritableFile() = default;
  /// Takes the bytes; they may wait for the next call, and its error may be theirs.
  virtual Status append(std::string_view bytes) = 0;
  /// fdatasync: contents and size are durable. The name is durable after syncDirectory only.
  /// After a failure the file must be given up: the kernel may have dropped the dirty pages (never
  /// retry).
  virtual Status sync() = 0;
  virtual Status close() = 0;
  /// Takes room for `bytes` bytes, which the file has until it is removed; its size stays. Does
  /// nothing where the storage keeps no room.
  virtual Status reserve(int64_t bytes) = 0;
};

class ReadableFile {
public:
  virtual ~ReadableFile() = default;
  virtual int64_t size() const = 0;
  /// Reads exactly `bytes` bytes at `offset`; a shorter file is BadInput.
  virtual Status read(int64_t offset, char* into, int64_t bytes) = 0;
};

/// Held until destroyed, or until the process dies.
class FileLock {
public:
  virtual ~FileLock() = default;
  /// Of lockFile's: replaces what it wrote for others, as far as that works and without a sync.
  /// Text that has the same first lines is never seen torn in these.
  virtual void rewrite(std::string_view) {}
};

/// Either the lock, or what its holder wrote about itself.
struct LockAttempt {
  std::unique_ptr<FileLock> lock;
  std::string holder;
};

/// Shared: others may hold it as well, but not Exclusive.
enum class LockKind : uint8_t { Shared, Exclusive };

enum class FileKind : uint8_t { Missing, File, Directory, Other };

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::Other; ///< a symbolic link is Other
  bool operator==(const DirectoryEntry&) const = default;
};

struct Space {
  static constexpr uint64_t unknown = std::numeric_limits<uint64_t>::max();
  uint64_t bytes = unknown;  ///< free for this user; some file systems (ramfs, FUSE) do not say
  uint64_t inodes = unknown; ///< free; some (btrfs) make inodes as they go
  /// Bytes that one file may have: of this process (ulimit -f) and of the file system.
  uint64_t largestFile = unknown;
};

class Env {
public:
  virtual ~Env() = default;

  /// Fails if the path exists.
  virtual Result<std::unique_ptr<WritableFile>> createFile(const std::string& path) = 0;
  virtual Result<std::unique_ptr<ReadableFile>> openFile(const std::string& path) = 0;
  /// Lets go of what the system holds of a file's contents, as far as it does: what is read next is
  /// what the storage has.
  virtual void dropCached(const std::string& path) = 0;
  /// Missing is an answer, not an error. Follows symbolic links.
  virtual Result<FileKind> kindOf(const std::string& path) = 0;
  /// Sorted by name, without "." and "..".
  virtual Result<std::vector<DirectoryEntry>> readDirectory(const std::string& path) = 0;
  /// Fails if the path exists.
  virtual Status makeDirectory(const std::string& path) = 0;
  /// fsync of the directory: its names are durable.
  virtual Status syncDirectory(const std::string& path) = 0;
  /// The same for a directory that others made: where it may not be read, or its file system is
  /// read-only or knows no sync of directories, it counts as durable.
  virtual Status syncAncestor(const std::string& path) = 0;
  /// Atomic. Fails if `to` exists.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status removeFile(const std::string& path) = 0;
  virtual Status removeDirectory(const std::string& path) = 0;
  /// Advisory lock on `path`, made if it is not there; `self` is written into it for others to
  /// read.
  virtual Result<LockAttempt> lockFile(const std::string& path, std::string_view self) = 0;
  /// Advisory lock on a file that others made, which is not changed; does not wait. Null: others
  /// hold it. Where the file is missing, or its file system knows no locks, one that keeps nobody
  /// out.
  virtual Result<std::unique_ptr<FileLock>> tryLock(const std::string& path, LockKind kind) = 0;
  virtual Result<Space> space(const std::string& path) = 0;
  /// A number no other attempt of any process is likely to have.
  virtual uint64_t uniqueNumber() = 0;
};

/// The operating system's files. Lives as long as the process.
Env& posixEnv();

/// The Error of a failed operation: "cannot <verb> '<path>': <reason of errno>".
Error fileError(std::string_view verb, std::string_view path, int errorNumber);

/// "a/b" + "c" = "a/b/c"
std::string joinPath(std::string_view directory, std::string_view name);
/// "a/b/" -> "a"; "a" -> "."; "/" -> "/"
std::string parentPath(std::string_view path);
/// The last component.
std::string baseName(std::string_view path);

/// The whole file; one larger than `limit` bytes is BadInput.
Result<std::string> readWholeFile(Env& env, const std::string& path, int64_t limit);
/// Removes a directory and what is in it. Does not follow symbolic links.
Status removeTree(Env& env, const std::string& path);
/// Makes `path` and its missing ancestors, each durable in its parent before the next is made. The
/// deepest one that is there may be what a process made that died before its sync: it is synced as
/// well.
Status makeDirectories(Env& env, const std::string& path);

} // namespace titan::checkpoint
