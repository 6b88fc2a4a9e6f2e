// Real full and read-only disks: tmpfs mounts in a mount namespace of the test's own. Where the
// kernel does not allow that, the test says so; FaultTest covers the same errors without a kernel.
#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace titan::checkpoint {
namespace {

constexpr int notAllowed = 77;

/// Runs `body`, given the path of a small tmpfs, in a child process; its result is the child's exit
/// code.
void onSmallDisk(const char* options, const std::function<int(const std::string&)>& body) {
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool own = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!own || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, options) != 0)
      ::_exit(notAllowed);
    ::_exit(body(directory.path()));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == notAllowed)
    fmt::print("skipped: this kernel does not let a test mount a tmpfs of its own\n");
  else
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// Mounts in place of the directory at `path` what it holds, to be read only.
bool makeReadOnly(const std::string& path) {
  return ::mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
         ::mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
}

/// 0 if `error` has the exit code and text, else 1 and the difference on stderr.
int compare(const Error& error, int exitCode, const std::string& text) {
  if (error.exitCode() == exitCode && error.message().find(text) != std::string::npos)
    return 0;
  fmt::print(stderr, "exit code {}: {}\n", error.exitCode(), error.message());
  return 1;
}

bool isIntact(const std::string& run) {
  SampleState loaded(255);
  return loadLatest(run, loaded.loadRequest()).ok() && loaded == SampleState(1);
}

TEST(Disk, FullDuringASaveFailsTheRunAndKeepsTheCheckpointBefore) {
  onSmallDisk("size=512k", [](const std::string& path) {
    const std::string run = path + "/run";
    auto store = CheckpointStore::open(run);
    if (!store.ok() || !store->save(SampleState(1).saveRequest(1), 0).ok())
      return 2;
    SampleState big(2);
    big.add("big", StateKind::Param, DType::U8, {1 << 20});
    auto report = store->save(big.saveRequest(2), 0);
    if (report.ok() || !isIntact(run))
      return 3;
    // What the failed save had written is gone, so a save that fits still works.
    if (!store->save(SampleState(1).saveRequest(3), 0).ok())
      return 4;
    return compare(report.error(), 5, "No space left on device");
  });
}

TEST(Disk, WithoutRoomIsFoundByPreflight) {
  onSmallDisk("size=2m", [](const std::string& path) {
    auto store = CheckpointStore::open(path + "/run");
    SampleState big(2);
    big.add("big", StateKind::Param, DType::U8, {1 << 20});
    const auto passed = store->preflight(big.saveRequest(0), 2);
    return passed.ok() ? 2 : compare(passed.error(), 3, "bytes free, 3 more checkpoint(s)");
  });
}

TEST(Disk, WithoutInodesIsFoundByPreflight) {
  onSmallDisk("size=64m,nr_inodes=10", [](const std::string& path) {
    auto store = CheckpointStore::open(path + "/run");
    const auto passed = store->preflight(SampleState(1).saveRequest(0), 2);
    return passed.ok() ? 2 : compare(passed.error(), 3, "inodes free");
  });
}

TEST(Disk, ReservesRoomUntilAFileIsRemoved) {
  onSmallDisk("size=4m", [](const std::string& path) {
    constexpr int64_t room = 3 << 20;
    const std::string first = path + "/first", second = path + "/second";
    auto file = posixEnv().createFile(first);
    if (!file.ok() || !(*file)->reserve(room).ok() || !(*file)->close().ok())
      return 2;
    if (posixEnv().openFile(first).take()->size() != 0)
      return 3;
    auto other = posixEnv().createFile(second);
    const Status refused = (*other)->reserve(room);
    if (refused.ok() || !posixEnv().removeFile(first).ok() || !(*other)->reserve(room).ok())
      return 4;
    return compare(refused.error(), 3,
                   "cannot reserve room in '" + second + "': No space left on device");
  });
}

// Such as ramfs, which knows no direct writes and no reservations either.
TEST(Disk, ThatDoesNotSayHowLargeItIsIsTaken) {
  onSmallDisk("size=1m", [](const std::string& path) {
    const std::string disk = path + "/ramfs", run = disk + "/run";
    if (::mkdir(disk.c_str(), 0777) != 0 ||
        ::mount("ramfs", disk.c_str(), "ramfs", 0, nullptr) != 0)
      return notAllowed;
    auto store = CheckpointStore::open(run);
    SampleState big(1);
    big.add("big", StateKind::Param, DType::U8, {(9 << 20) + 1});
    const auto plan = store->preflight(big.saveRequest(0), 2);
    if (!plan.ok())
      return compare(plan.error(), 0, "");
    SampleState loaded(2);
    loaded.add("big", StateKind::Param, DType::U8, {(9 << 20) + 1});
    return store->save(big.saveRequest(1), 2).ok() && loadLatest(run, loaded.loadRequest()).ok() &&
                   loaded == big
               ? 0
               : 3;
  });
}

TEST(Disk, WithALimitOnFilesIsFoundByPreflight) {
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    // ulimit -f, in bytes: more than preflight writes, less than a save does.
    const rlimit limit{512 << 10, 512 << 10};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0)
      ::_exit(notAllowed);
    auto store = CheckpointStore::open(directory.path("run"));
    SampleState big(2);
    big.add("big", StateKind::Param, DType::U8, {1 << 20});
    const auto passed = store->preflight(big.saveRequest(0), 2);
    ::_exit(passed.ok() ? 2
                        : compare(passed.error(), 3, "may have at most 524288: raise ulimit -f"));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Disk, ThatIsReadOnlyCannotBeOpenedButRead) {
  onSmallDisk("size=1m", [](const std::string& path) {
    const std::string run = path + "/run";
    {
      auto store = CheckpointStore::open(run);
      if (!store->save(SampleState(1).saveRequest(1), 0).ok())
        return 2;
    }
    if (::mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return notAllowed;
    auto store = CheckpointStore::open(run);
    if (store.ok() || !isIntact(run))
      return 3;
    auto fresh = CheckpointStore::open(path + "/other");
    return compare(store.error(), 3, "Read-only file system") +
           (fresh.ok() ? 1 : compare(fresh.error(), 3, "Read-only file system"));
  });
}

TEST(Disk, WithCheckpointsInAReadOnlyMountIsFoundByPreflight) {
  onSmallDisk("size=8m", [](const std::string& path) {
    const std::string run = path + "/run";
    {
      auto store = CheckpointStore::open(run);
      if (!store->save(SampleState(1).saveRequest(1), 0).ok())
        return 2;
    }
    if (!makeReadOnly(checkpointsPath(run)))
      return notAllowed;
    auto store = CheckpointStore::open(run);
    if (!store.ok() || !isIntact(run))
      return 3;
    const auto passed = store->preflight(SampleState(2).saveRequest(2), 2);
    return passed.ok() ? 4 : compare(passed.error(), 3, "Read-only file system (choose a ");
  });
}

/// Runs `body`, given the path of a directory, in a child process of a user to whom that does not
/// belong; its result is the child's exit code.
void asAnotherUser(const std::function<int(const std::string&)>& body) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root may become another user";
  const TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const std::string run = directory.path("run");
  ASSERT_TRUE(CheckpointStore::open(run)->save(SampleState(1).saveRequest(1), 0).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
        ::setresuid(nobody, nobody, nobody) != 0)
      ::_exit(notAllowed);
    ::_exit(body(directory.path()));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Disk, OfSomebodyElseCannotBeOpenedButRead) {
  asAnotherUser([](const std::string& path) {
    auto store = CheckpointStore::open(path + "/run");
    if (store.ok() || !isIntact(path + "/run"))
      return 2;
    auto fresh = CheckpointStore::open(path + "/other");
    return compare(store.error(), 3, "Permission denied (choose a directory that you may write)") +
           (fresh.ok() ? 1 : compare(fresh.error(), 3, "Permission denied (choose a directory"));
  });
}

} // namespace
} // namespace titan::checkpoint
