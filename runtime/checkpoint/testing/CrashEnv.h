// A file system in memory that knows what of it is durable, and can lose the rest.
//
// The model is as unkind as POSIX allows:
// - What was written since the last sync of a file may be on the disk, page by page: a page of
//   4 KiB is as it was, as it is, or zeros; the file's last one may also be torn at 512 bytes.
// - A file's size is apart from its data: it is what it was at the sync, or after any write since.
// - Each creation, removal or rename since the last sync of a directory is on the disk or is not,
//   each by itself, in any combination. A rename is atomic.
// - A sync of one thing says nothing of another. A directory that is not linked into a durable one
//   is gone with all that was synced in it.
// - After a sync that failed, what it was to write counts as clean: it is visible, it is not
//   durable, and no later sync writes it, though that one succeeds.
#pragma once

#include "runtime/checkpoint/Env.h"
#include "runtime/checkpoint/testing/Choices.h"
#include "runtime/checkpoint/testing/SharedBytes.h"

#include <map>
#include <optional>
#include <set>

namespace titan::checkpoint {

class SettledTrees;

class CrashEnv : public Env {
public:
  enum class Loss : uint8_t {
    Everything, ///< nothing that was not synced is there
    Data, ///< all names, but only synced bytes: what a file system with delayed allocation leaves
    Nothing, ///< the process died, the machine did not
  };

  CrashEnv();
  /// The power fails: what a restarted machine finds. Nobody holds a lock or an open file.
  std::unique_ptr<CrashEnv> crashed(Loss loss) const;
  /// The same, where `choices` decides of everything that was not synced.
  std::unique_ptr<CrashEnv> crashed(Choices& choices) const;
  /// A copy in the same state, to crash it in several ways.
  std::unique_ptr<CrashEnv> clone() const;
  void setSpace(Space space) { space_ = space; }
  /// No call tells of it; files reserve no more than that.
  void setQuota(uint64_t bytes) { quota_ = bytes; }

  /// What happens to a sync, of a file or of a directory.
  enum class SyncFault : uint8_t {
    Fails,   ///< with EIO
    LeftOut, ///< it succeeds and does nothing
    Lost,    ///< it succeeds, what it was to write counts as clean, and no disk has it
  };
  /// Of the syncs from now on, the one of this number, from 0.
  void faultAtSync(int64_t sync, SyncFault fault);
  /// The paths of all syncs since then, in order.
  const std::vector<std::string>& syncs() const { return syncs_; }

  /// Of all names and bytes at and below `path`.
  std::string digest(const std::string& path = ".") const;
  /// crashed(choices)->digest(), which asks the same and makes nothing. `settled` is of this
  /// machine, as it is now.
  std::string digestOfCrashed(Choices& choices, const SettledTrees& settled) const;
  SettledTrees settled() const;

  Result<std::unique_ptr<WritableFile>> createFile(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> openFile(const std::string& path) override;
  void dropCached(const std::string& path) override;
  Result<FileKind> kindOf(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> readDirectory(const std::string& path) override;
  Status makeDirectory(const std::string& path) override;
  Status syncDirectory(const std::string& path) override;
  Status syncAncestor(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status removeFile(const std::string& path) override;
  Status removeDirectory(const std::string& path) override;
  Result<LockAttempt> lockFile(const std::string& path, std::string_view self) override;
  Result<std::unique_ptr<FileLock>> tryLock(const std::string& path, LockKind kind) override;
  Result<Space> space(const std::string& path) override;
  uint64_t uniqueNumber() override { return ++unique_; }

  struct Node;
  using NodePointer = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePointer>;

  /// A change of a directory's names: `removed` goes, `added` comes; either may be empty.
  struct Change {
    enum class State : uint8_t {
      Pending, ///< the next sync writes it
      Clean,   ///< a sync of it failed: no later one writes it
      Durable, ///< behind one that is not
    };
    std::string removed, added;
    NodePointer node;
    State state = State::Pending;

    void applyTo(Names& names) const;
  };

  struct Node {
    bool isDirectory = false;
    // Of a file.
    SharedBytes bytes, durableBytes;
    std::set<size_t> dirty; ///< numbers of the pages that the next sync writes
    bool isSizeDirty = false;
    uint64_t reserved = 0;
    std::vector<size_t> sizes; ///< that it had since durableBytes->size(), in order
    // Of a directory.
    Names names, durableNames;
    std::vector<Change> changes;           ///< from durableNames to names, in order
    std::weak_ptr<std::string> lock;       ///< held alone: what the holder wrote, while it holds it
    std::weak_ptr<std::string> sharedLock; ///< held by readers, while one of them does
  };

  /// Counts a sync of `path`: the fault that hits it.
  std::optional<SyncFault> enterSync(const std::string& path);
  /// Room for a file, until it is removed; false: the quota is exceeded.
  bool reserve(Node& node, uint64_t bytes);

private:
  std::unique_ptr<CrashEnv> withRoot(NodePointer root) const;
  NodePointer find(const std::string& path) const;
  /// The directory that holds `path`, or an error.
  Result<NodePointer> parentOf(std::string_view verb, const std::string& path) const;
  Status add(std::string_view verb, const std::string& path, NodePointer node);

  NodePointer root_;
  Space space_{uint64_t{1} << 40, uint64_t{1} << 30};
  uint64_t quota_ = std::numeric_limits<uint64_t>::max(), reserved_ = 0;
  uint64_t unique_ = 0;
  std::optional<SyncFault> fault_; ///< of sync `faultAt_`
  int64_t faultAt_ = 0;
  std::vector<std::string> syncs_;
};

} // namespace titan::checkpoint
