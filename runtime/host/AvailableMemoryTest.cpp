#include "runtime/host/AvailableMemory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

class AvailableMemory : public ::testing::Test {
protected:
  void SetUp() override {
    root = fs::path(::testing::TempDir()) / ("titan-memory-" + std::to_string(getpid()));
    fs::remove_all(root);
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  int64_t bytes() const {
    return availableMemoryBytes((root / "proc").string(), (root / "groups").string());
  }
  void writeGroup(const std::string& path, const std::string& limit, const std::string& used) {
    write("groups" + path + "/memory.max", limit + "\n");
    write("groups" + path + "/memory.current", used + "\n");
  }

  fs::path root;
};

TEST_F(AvailableMemory, IsUnlimitedWhereNothingIsSaid) {
  EXPECT_EQ(bytes(), INT64_MAX);
  write("proc/meminfo", "MemTotal: 5 kB\n");
  write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(bytes(), INT64_MAX);
}

TEST_F(AvailableMemory, IsTheLeastThatSystemAndGroupsLeave) {
  write("proc/meminfo", "MemTotal:       9 kB\nMemAvailable:   8000 kB\n");
  EXPECT_EQ(bytes(), 8000 * 1024);
  write("proc/self/cgroup", "1:cpu:/other\n0::/a/b\n");
  writeGroup("/a/b", "max", "5");
  EXPECT_EQ(bytes(), 8000 * 1024);
  writeGroup("/a", "5000000", "1000000");
  EXPECT_EQ(bytes(), 4000000);
  writeGroup("/a/b", "1000", "2000"); // taken already
  EXPECT_EQ(bytes(), 0);
  writeGroup("/a/b", "max", "2000");
  writeGroup("", "30", "10"); // of a container: its own group is the root that it sees
  EXPECT_EQ(bytes(), 20);
}

TEST_F(AvailableMemory, OfThisMachine) { EXPECT_GT(availableMemoryBytes(), 0); }

} // namespace
} // namespace titan
