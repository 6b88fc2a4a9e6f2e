#include "runtime/checkpoint/Env.h"

#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/ShortWrites.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

namespace titan::checkpoint {
namespace {

TEST(Paths, AreJoinedAndTakenApart) {
  EXPECT_EQ(joinPath("a", "b"), "a/b");
  EXPECT_EQ(joinPath("a/", "b"), "a/b");
  EXPECT_EQ(joinPath("", "b"), "b");
  EXPECT_EQ(joinPath("/", "b"), "/b");
  EXPECT_EQ(parentPath("a/b"), "a");
  EXPECT_EQ(parentPath("a/b//"), "a");
  EXPECT_EQ(parentPath("a"), ".");
  EXPECT_EQ(parentPath("/a"), "/");
  EXPECT_EQ(parentPath("/"), "/");
  EXPECT_EQ(baseName("a/b/"), "b");
  EXPECT_EQ(baseName("b"), "b");
}

/// The file system in memory stands in for the real one in the crash tests, so both must behave
/// alike.
class EveryEnv : public testing::TestWithParam<bool> {
protected:
  Env& env() { return GetParam() ? static_cast<Env&>(memory_) : posixEnv(); }
  std::string path(const std::string& name) { return GetParam() ? name : directory_.path(name); }

  void write(const std::string& name, std::string_view bytes) {
    auto file = env().createFile(path(name));
    ASSERT_TRUE(file.ok()) << file.error().message();
    EXPECT_TRUE((*file)->append(bytes).ok());
    EXPECT_TRUE((*file)->sync().ok());
    EXPECT_TRUE((*file)->close().ok());
  }

  TemporaryDirectory directory_;
  CrashEnv memory_;
};
INSTANTIATE_TEST_SUITE_P(Env, EveryEnv, testing::Bool(),
                         [](const auto& info) { return info.param ? "Memory" : "Posix"; });

TEST_P(EveryEnv, WritesAndReads) {
  write("file", "hello");
  EXPECT_EQ(*readWholeFile(env(), path("file"), 5), "hello");
  EXPECT_EQ(readWholeFile(env(), path("file"), 4).error().code(), ErrorCode::BadInput);
  EXPECT_EQ(readWholeFile(env(), path("gone"), 4).error().code(), ErrorCode::BadInput);
  auto file = env().openFile(path("file"));
  ASSERT_TRUE(file.ok());
  char bytes[3] = {};
  EXPECT_TRUE((*file)->read(1, bytes, 3).ok());
  EXPECT_EQ(std::string(bytes, 3), "ell");
  EXPECT_EQ((*file)->read(3, bytes, 3).error().code(), ErrorCode::BadInput);
}

TEST_P(EveryEnv, ReplacesNothing) {
  write("a", "1");
  write("b", "2");
  ASSERT_TRUE(env().makeDirectory(path("d")).ok());
  EXPECT_FALSE(env().createFile(path("a")).ok());
  EXPECT_FALSE(env().makeDirectory(path("a")).ok());
  EXPECT_FALSE(env().makeDirectory(path("d")).ok());
  EXPECT_FALSE(env().rename(path("a"), path("b")).ok());
  EXPECT_FALSE(env().rename(path("a"), path("d")).ok());
  EXPECT_EQ(*readWholeFile(env(), path("b"), 9), "2");
  EXPECT_TRUE(env().rename(path("a"), path("c")).ok());
  EXPECT_EQ(*env().kindOf(path("a")), FileKind::Missing);
  EXPECT_EQ(*env().kindOf(path("c")), FileKind::File);
}

TEST_P(EveryEnv, MakesListsAndRemovesTrees) {
  ASSERT_TRUE(makeDirectories(env(), path("x/y/z")).ok());
  ASSERT_TRUE(makeDirectories(env(), path("x/y/z")).ok());
  write("x/y/file", "1");
  EXPECT_FALSE(makeDirectories(env(), path("x/y/file/z")).ok());
  const auto entries = env().readDirectory(path("x/y"));
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(*entries,
            (std::vector<DirectoryEntry>{{"file", FileKind::File}, {"z", FileKind::Directory}}));
  EXPECT_FALSE(env().removeDirectory(path("x")).ok());
  EXPECT_TRUE(removeTree(env(), path("x")).ok());
  EXPECT_EQ(*env().kindOf(path("x")), FileKind::Missing);
}

TEST_P(EveryEnv, LocksOnce) {
  auto first = env().lockFile(path("lock"), "me");
  ASSERT_TRUE(first.ok() && first->lock);
  auto second = env().lockFile(path("lock"), "you");
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->lock);
  EXPECT_EQ(second->holder, "me");
  first->lock.reset();
  EXPECT_TRUE(env().lockFile(path("lock"), "you")->lock);
}

TEST_P(EveryEnv, RewritesWhatALockSays) {
  auto first = env().lockFile(path("lock"), "me");
  ASSERT_TRUE(first.ok() && first->lock);
  for (const char* text : {"me\nlonger", "me", ""}) {
    first->lock->rewrite(text);
    EXPECT_EQ(env().lockFile(path("lock"), "you")->holder, text);
  }
  // A lock on what others made changes nothing.
  write("file", "bytes");
  auto other = env().tryLock(path("file"), LockKind::Exclusive);
  ASSERT_TRUE(other.ok() && *other);
  (*other)->rewrite("text");
  EXPECT_EQ(readWholeFile(env(), path("file"), 100).take(), "bytes");
}

TEST(PosixEnv, LocksBehindAMomentOfReading) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("lock");
  ASSERT_TRUE(posixEnv().lockFile(path, "me").ok());
  auto reader = posixEnv().tryLock(path, LockKind::Shared);
  ASSERT_TRUE(reader.ok() && *reader);
  EXPECT_FALSE(posixEnv().lockFile(path, "you")->lock);
  std::jthread leaves([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    reader->reset();
  });
  EXPECT_TRUE(posixEnv().lockFile(path, "you")->lock);
}

TEST(PosixEnv, DoesNotFollowLinksWhenItRemoves) {
  TemporaryDirectory directory;
  Env& env = posixEnv();
  ASSERT_TRUE(makeDirectories(env, directory.path("kept")).ok());
  ASSERT_TRUE(env.createFile(directory.path("kept/file")).ok());
  ASSERT_TRUE(makeDirectories(env, directory.path("tree")).ok());
  ASSERT_EQ(::symlink(directory.path("kept").c_str(), directory.path("tree/link").c_str()), 0);
  EXPECT_TRUE(removeTree(env, directory.path("tree")).ok());
  EXPECT_EQ(*env.kindOf(directory.path("kept/file")), FileKind::File);
}

/// Several of the buffers that are written past the page cache, and a rest.
std::string largeContent() {
  std::string bytes((13 << 20) + 777, '\0');
  std::mt19937_64 random(1);
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

/// In pieces of no round size.
Status writeInPieces(const std::string& path, std::string_view bytes) {
  auto file = TITAN_TRY(posixEnv().createFile(path));
  for (size_t at = 0, piece = 1; at < bytes.size(); at += piece, piece = piece * 3 % 3'000'001 + 1)
    TITAN_TRY(file->append(bytes.substr(at, piece)));
  TITAN_TRY(file->sync());
  return file->close();
}

constexpr const char* noDirectWrites = "skipped: the file system of the temporary directory knows "
                                       "no direct writes\n";

TEST(PosixEnv, WritesLargeFilesWholeHoweverLittleIsTaken) {
  const TemporaryDirectory directory;
  const std::string bytes = largeContent();
  constexpr size_t sector = 512, page = 4096, buffer = 4 << 20;
  int directWrites = 0;
  for (const size_t taken : {size_t{1}, sector - 1, sector, page + 1, 3 * page, buffer - 1}) {
    const std::string path = directory.path(fmt::format("file {}", taken));
    int writes = 0;
    const ShortWrites shortWrites([&](size_t count, bool isDirect) -> ssize_t {
      directWrites += isDirect;
      if (++writes % 2 == 0)
        return -EINTR;
      // What is left behind a short write goes in parts, too.
      return static_cast<ssize_t>(std::min(count, isDirect ? taken : 1'000'003));
    });
    const Status written = writeInPieces(path, bytes);
    ASSERT_TRUE(written.ok()) << written.error().message();
    EXPECT_TRUE(*readWholeFile(posixEnv(), path, std::ssize(bytes)) == bytes) << taken;
    posixEnv().dropCached(path);
    EXPECT_TRUE(*readWholeFile(posixEnv(), path, std::ssize(bytes)) == bytes) << taken;
  }
  if (directWrites == 0)
    fmt::print(noDirectWrites);
}

TEST(PosixEnv, ADiskThatIsFullBehindAShortDirectWriteIsAnError) {
  const TemporaryDirectory directory;
  bool isFull = false;
  const ShortWrites shortWrites([&](size_t count, bool isDirect) -> ssize_t {
    if (std::exchange(isFull, isFull || isDirect))
      return -ENOSPC;
    return static_cast<ssize_t>(isDirect ? count - 1000 : count);
  });
  const std::string path = directory.path("file");
  const Status written = writeInPieces(path, largeContent());
  if (!isFull) {
    fmt::print(noDirectWrites);
    return;
  }
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message().find(path), std::string::npos);
  EXPECT_NE(written.error().message().find("No space left on device"), std::string::npos);
}

TEST(PosixEnv, OpensRegularFilesOnly) {
  TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo(directory.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(posixEnv().openFile(directory.path("pipe")).ok());
  EXPECT_FALSE(posixEnv().openFile(directory.path()).ok());
}

} // namespace
} // namespace titan::checkpoint
