#include "runtime/checkpoint/WatchedEnv.h"

#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace titan::checkpoint {
namespace {

TEST(WatchedEnv, SaysWhatGoesOn) {
  TemporaryDirectory directory;
  FaultEnv base(posixEnv());
  WatchedEnv env(base);
  std::vector<std::string> seen;
  base.beforeEach([&](int64_t) {
    const auto running = env.running();
    ASSERT_TRUE(running);
    EXPECT_GE(running->seconds, 0);
    seen.push_back(running->verb + " " + baseName(running->path));
  });
  EXPECT_FALSE(env.running());
  const std::string folder = joinPath(directory.path(), "a"), path = joinPath(folder, "file");
  ASSERT_TRUE(env.makeDirectory(folder).ok());
  {
    auto file = env.createFile(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->append("12345").ok());
    ASSERT_TRUE((*file)->append("67").ok());
    ASSERT_TRUE((*file)->sync().ok());
    ASSERT_TRUE((*file)->close().ok());
  }
  ASSERT_TRUE(env.syncDirectory(folder).ok());
  ASSERT_TRUE(env.rename(path, joinPath(folder, "other")).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"make a", "create file", "write file", "write file",
                                            "sync file", "close file", "sync a", "rename file"}));
  EXPECT_EQ(env.bytesWritten(), 7);
  EXPECT_FALSE(env.running());
}

TEST(WatchedEnv, AFailedOperationHasEnded) {
  TemporaryDirectory directory;
  FaultEnv base(posixEnv());
  WatchedEnv env(base);
  base.failAt(0, EIO, /*forGood=*/false);
  EXPECT_FALSE(env.createFile(joinPath(directory.path(), "file")).ok());
  EXPECT_FALSE(env.running());
  EXPECT_EQ(env.bytesWritten(), 0);
}

} // namespace
} // namespace titan::checkpoint
