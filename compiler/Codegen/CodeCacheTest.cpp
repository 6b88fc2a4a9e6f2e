#include "compiler/Codegen/CodeCache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace titan::codegen {
namespace {

namespace fs = std::filesystem;

class CodeCacheTest : public ::testing::Test {
protected:
  CodeCacheTest() {
    std::string name = (fs::temp_directory_path() / "titan-cache-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~CodeCacheTest() override { fs::remove_all(folder_); }

  std::string path(std::string_view name) const { return (folder_ / name).string(); }
  /// The entries of a cache in "cache", by name.
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(path("cache")))
      if (file.path().extension() == ".code")
        found.push_back(file.path());
    return found;
  }
  static void write(const fs::path& file, std::string_view text) { std::ofstream(file) << text; }

  fs::path folder_;
};

TEST_F(CodeCacheTest, FindsWhatWasStoredByTheSameCompiler) {
  const std::string code("a\0b\n", 4);
  CodeCache first(path("deep/cache"), "compiler 1");
  EXPECT_EQ(first.find("key"), std::nullopt);
  first.store("key", code);
  EXPECT_EQ(first.find("key"), code);
  CodeCache second(path("deep/cache"), "compiler 1"), other(path("deep/cache"), "compiler 2");
  EXPECT_EQ(second.find("key"), code);
  EXPECT_EQ(second.find("another key"), std::nullopt);
  EXPECT_EQ(other.find("key"), std::nullopt);
  EXPECT_TRUE(first.notes().empty() && second.notes().empty() && other.notes().empty());
}

TEST_F(CodeCacheTest, DamagedEntriesAreNotUsedAndReplaced) {
  CodeCache(path("cache"), "").store("key", "the code");
  const fs::path entry = entries().at(0);
  std::string whole;
  std::getline(std::ifstream(entry), whole, '\0');
  std::string flipped = whole, noHead = whole.substr(whole.find('\n') + 1);
  flipped.back() ^= 1;
  for (const std::string& damaged : {flipped, whole.substr(0, whole.size() - 1), noHead,
                                     whole + "x", std::string(), whole.substr(0, 5)}) {
    write(entry, damaged);
    CodeCache cache(path("cache"), "");
    EXPECT_EQ(cache.find("key"), std::nullopt);
    EXPECT_EQ(cache.notes(), std::vector{"--cache: " + entry.string() +
                                         " is damaged: its kernel is compiled again"});
    cache.store("key", "the code");
    EXPECT_EQ(cache.find("key"), "the code");
    EXPECT_EQ(cache.notes().size(), 1);
  }
}

TEST_F(CodeCacheTest, AnEntryInThePlaceOfAnotherIsDamaged) {
  CodeCache cache(path("cache"), "");
  cache.store("key", "the code");
  const fs::path entry = entries().at(0);
  cache.store("another key", "other code");
  for (const fs::path& other : entries())
    if (other != entry)
      fs::copy_file(other, entry, fs::copy_options::overwrite_existing);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_EQ(cache.find("another key"), "other code");
  EXPECT_EQ(cache.notes().size(), 1);
}

TEST_F(CodeCacheTest, FolderOfAnotherVersion) {
  fs::create_directory(path("cache"));
  write(path("cache/titan-code-cache"), "titan code cache, format 2\n");
  CodeCache cache(path("cache"), "");
  EXPECT_EQ(cache.notes(), std::vector{"--cache " + path("cache") +
                                       " is not used: it has another version's "
                                       "format: remove it, or name another folder"});
  cache.store("key", "code");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_TRUE(entries().empty());
}

TEST_F(CodeCacheTest, FolderWithOtherFiles) {
  fs::create_directory(path("cache"));
  write(path("cache/thesis.tex"), "");
  CodeCache cache(path("cache"), "", 1);
  EXPECT_EQ(cache.notes(), std::vector{"--cache " + path("cache") +
                                       " is not used: it holds other files: name a folder of its "
                                       "own"});
  cache.store("key", "code");
  cache.trim();
  EXPECT_EQ(std::distance(fs::directory_iterator(path("cache")), fs::directory_iterator()), 1);
}

TEST_F(CodeCacheTest, FolderThatCannotBe) {
  write(path("file"), "");
  EXPECT_EQ(CodeCache(path("file/cache"), "").notes(),
            std::vector{"--cache " + path("file/cache") + " is not used: Not a directory"});
}

TEST_F(CodeCacheTest, KeepsWhatWasUsedLast) {
  constexpr int64_t limit = 5000;
  const std::string code(400, 'x');
  {
    CodeCache cache(path("cache"), "", limit);
    for (int i = 0; i < 10; ++i)
      cache.store(std::to_string(i), code);
    cache.trim();
    ASSERT_EQ(entries().size(), 10); // below the limit
  }
  for (const fs::path& entry : entries())
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(2));
  write(path("cache/titan-code-cache.1-1"), "abandoned");
  fs::last_write_time(path("cache/titan-code-cache.1-1"),
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  write(path("cache/titan-code-cache.2-2"), "being written");
  CodeCache cache(path("cache"), "", limit);
  EXPECT_EQ(cache.find("3"), code);
  cache.store("new", std::string(1000, 'y'));
  cache.trim();
  int64_t total = 0;
  for (const fs::path& entry : entries())
    total += static_cast<int64_t>(fs::file_size(entry));
  EXPECT_LE(total, limit);
  EXPECT_GE(entries().size(), 5);
  EXPECT_EQ(cache.find("3"), code);
  EXPECT_NE(cache.find("new"), std::nullopt);
  EXPECT_FALSE(fs::exists(path("cache/titan-code-cache.1-1")));
  EXPECT_TRUE(fs::exists(path("cache/titan-code-cache.2-2")));
}

TEST_F(CodeCacheTest, SeveralUsersAtOnce) {
  const auto codeOf = [](int i) { return std::string(static_cast<size_t>(1000 + i), 'c'); };
  std::vector<std::thread> users;
  std::array<int, 4> wrong{};
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&, user] {
      for (int round = 0; round < 20; ++round) {
        CodeCache cache(path("cache"), "", 20000); // about half of what is stored
        for (int i = 0; i < 40; ++i) {
          if (std::optional<std::string> found = cache.find(std::to_string(i)))
            wrong[user] += *found != codeOf(i);
          else
            cache.store(std::to_string(i), codeOf(i));
        }
        cache.trim();
        wrong[user] += !cache.notes().empty();
      }
    });
  for (std::thread& user : users)
    user.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

} // namespace
} // namespace titan::codegen
