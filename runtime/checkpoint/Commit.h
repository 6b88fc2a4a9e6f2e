// The commit protocol of one checkpoint. In this order, each step durable before the
// next counts on it:
//
//   1. a directory of its own, .attempt-<what>-<unique>
//   2. each file, and the list of its chunks' digests beside it: created, written, fdatasync
//   3. each directory of the attempt: fsync. Of several ranks, each does 2 and 3 for its files;
//      then they meet, and rank 0 goes on
//   4. manifest.json.tmp: written, fdatasync, renamed to manifest.json; the attempt's directory:
//      fsync
//   5. the attempt renamed to its final name
//   6. the parent directory: fsync. Only now is the checkpoint committed
//
// A crash before 5 leaves an attempt, which loads ignore and the next holder of the lock removes. A
// crash between 5 and 6 leaves either the attempt or the whole checkpoint. The parent's ancestors
// were made durable when the store was opened.
#pragma once

#include "runtime/checkpoint/Chunks.h"
#include "runtime/checkpoint/Env.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/device/Bytes.h"

#include <functional>
#include <set>
#include <span>

namespace titan::checkpoint {

inline constexpr std::string_view attemptPrefix = ".attempt-";
inline constexpr std::string_view doomedPrefix = ".doomed-";

class Attempt {
public:
  /// Step 1, in `parent`; `what` makes the name readable: "step-00000100".
  static Result<Attempt> begin(Env& env, const std::string& parent, std::string_view what);
  /// The attempt at `path` that another rank has begun.
  static Attempt join(Env& env, const std::string& path);
  Attempt(Attempt&&) = default;
  Attempt& operator=(Attempt&&) = default;

  Status makeDirectory(const std::string& name);
  /// Step 2: the file is the concatenation of `pieces`.
  Status writeFile(const std::string& relativePath, std::span<const std::string_view> pieces);
  /// The same of bytes that may lie on a device, with the list of its chunks' digests. `onRead` is
  /// called with the number of each piece that is needed no more.
  Status writeDataFile(const std::string& relativePath, std::span<const ByteSource> pieces,
                       const std::function<void(size_t)>& onRead = {});
  /// Step 3, of the directories that this process has written to.
  Status syncDirectories();
  /// Steps 3 to 5; the manifest has all files' records.
  Status publish(std::string_view manifest, const std::string& finalName);
  /// Removes what is there, as far as that is possible: what stays is removed by the next holder of
  /// the lock. Nothing of what was published.
  void abandon();
  /// After step 6 has failed: the name is taken back, as far as that is possible, so that nobody
  /// counts the checkpoint. Its files stay: the name may be on the disk.
  void withdraw(const std::string& finalName);

  const std::string& path() const { return path_; }
  /// Of the files that were written here.
  const std::vector<FileRecord>& files() const { return files_; }

private:
  Attempt(Env& env, std::string parent, std::string path)
      : env_(&env), parent_(std::move(parent)), path_(std::move(path)) {}

  /// `chunks`, if not null, takes what is written.
  Result<FileRecord> write(const std::string& relativePath, std::span<const ByteSource> pieces,
                           ChunkDigests* chunks = nullptr,
                           const std::function<void(size_t)>& onRead = {});

  Env* env_;
  std::string parent_, path_;
  bool isPublished_ = false;
  std::set<std::string> directories_; ///< with new names in them
  std::vector<FileRecord> files_;
};

/// Renames `path` to a doomed name, makes that durable and removes it; a crash at any point leaves
/// the whole checkpoint or none. False: a load holds it (Load.h), and nothing was done. Sets
/// `syncFailed` if the directory's state on the disk is unknown.
Result<bool> removeCommitted(Env& env, const std::string& path, bool& syncFailed);

} // namespace titan::checkpoint
