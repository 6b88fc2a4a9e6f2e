// A file system in memory that knows what of it is durable, and can lose the rest.
//
// The model is as unkind as POSIX allows. A file's bytes are durable as of its last sync; later
// ones may be there, be torn or be zeros. A directory's names are durable as of its last sync; each
// later creation, removal or rename may or may not have reached the disk, each by itself, in any
// combination. A rename is atomic. A directory that is not linked into a durable one is gone with
// all that was synced in it.
#pragma once

#include "runtime/checkpoint/Env.h"

#include <map>

namespace titan::checkpoint {

class CrashEnv : public Env {
public:
  enum class Loss : uint8_t {
    Everything, ///< nothing that was not synced is there
    Data, ///< all names, but only synced bytes: what a file system with delayed allocation leaves
    Nothing, ///< the process died, the machine did not
    Random,  ///< each unsynced name and file by itself, after the seed
  };

  CrashEnv();
  /// The power fails: afterwards this is what a restarted machine finds. Nobody holds a lock or an
  /// open file.
  void crash(Loss loss, uint64_t seed = 0);
  /// A copy in the same state, to crash it in several ways.
  std::unique_ptr<CrashEnv> clone() const;
  void setSpace(Space space) { space_ = space; }

  Result<std::unique_ptr<WritableFile>> createFile(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> openFile(const std::string& path) override;
  Result<FileKind> kindOf(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> readDirectory(const std::string& path) override;
  Status makeDirectory(const std::string& path) override;
  Status syncDirectory(const std::string& path) override;
  Status syncAncestor(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status removeFile(const std::string& path) override;
  Status removeDirectory(const std::string& path) override;
  Result<LockAttempt> lockFile(const std::string& path, std::string_view self) override;
  Result<Space> space(const std::string& path) override;
  uint64_t uniqueNumber() override { return ++unique_; }

  struct Node;
  using NodePointer = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePointer>;

  /// A change of a directory's names that was not synced: `removed` goes, `added` comes; either may
  /// be empty.
  struct Change {
    std::string removed, added;
    NodePointer node;
  };

  struct Node {
    bool isDirectory = false;
    std::string bytes, durableBytes;
    Names names, durableNames;
    std::vector<Change> changes;
    std::weak_ptr<std::string> lock; ///< of a lock file: what the holder wrote, while it holds it
  };

private:
  NodePointer find(const std::string& path) const;
  /// The directory that holds `path`, or an error.
  Result<NodePointer> parentOf(std::string_view verb, const std::string& path) const;
  Status add(std::string_view verb, const std::string& path, NodePointer node);

  NodePointer root_;
  Space space_{uint64_t{1} << 40, uint64_t{1} << 30, true};
  uint64_t unique_ = 0;
};

} // namespace titan::checkpoint
