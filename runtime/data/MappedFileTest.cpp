#include "runtime/data/MappedFile.h"

#include "runtime/data/Loader.h"
#include "runtime/data/TestFiles.h"

#include <csignal>

namespace titan {
namespace {

using MappedFileTest = test::FilesTest;
namespace fs = std::filesystem;

constexpr size_t page = 4096;

std::shared_ptr<const MappedFile> mapped(const std::string& path) {
  return MappedFile::open(path).take();
}

std::string messageOf(const Status& status) { return status.ok() ? "" : status.error().message(); }

TEST_F(MappedFileTest, CutFilesAreAnErrorNotASignal) {
  const std::string path = write("data.bin", std::string(8 * page + 100, 'x'));
  auto file = mapped(path), other = mapped(write("other.bin", std::string(8 * page, 'y')));
  EXPECT_EQ(messageOf(file->check()), "");
  fs::resize_file(path, 2 * page);
  EXPECT_EQ(file->bytes()[7 * page], 0);
  const Status status = file->check();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::BadInput);
  EXPECT_EQ(status.error().message(),
            "'" + path +
                "' had 32868 bytes when it was opened and has 8192 now: write data that a "
                "job reads to a new file and rename it into place");
  EXPECT_EQ(messageOf(other->check()), "");
  EXPECT_EQ(other->bytes()[7 * page], 'y');
}

TEST_F(MappedFileTest, WhatWasLostStaysLost) {
  const std::string path = write("data.bin", std::string(4 * page, 'x'));
  auto file = mapped(path);
  fs::resize_file(path, 0);
  EXPECT_EQ(file->bytes()[3 * page], 0);
  fs::resize_file(path, 4 * page);
  EXPECT_NE(messageOf(file->check()).find("'" + path + "' could not be read"), std::string::npos);
  // Closing it frees its place for the next file.
  file = mapped(write("next.bin", std::string(page, 'z')));
  EXPECT_EQ(messageOf(file->check()), "");
}

TEST_F(MappedFileTest, CutWithinTheLastPage) {
  const std::string path = write("data.bin", std::string(100, 'x'));
  auto file = mapped(path);
  fs::resize_file(path, 50);
  EXPECT_NE(messageOf(file->check()).find("had 100 bytes"), std::string::npos);
}

TEST_F(MappedFileTest, AnotherFileInItsPlaceIsNoHarm) {
  const std::string path = write("data.bin", std::string(2 * page, 'x'));
  auto file = mapped(path);
  fs::rename(write("new.bin", "short"), path);
  EXPECT_EQ(messageOf(file->check()), "");
  fs::remove(path);
  EXPECT_EQ(messageOf(file->check()), "");
  EXPECT_EQ(file->bytes()[page], 'x');
}

TEST_F(MappedFileTest, OtherSignalsStillKill) {
  const std::string path = write("data.bin", std::string(page, 'x'));
  auto file = mapped(path);
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(MappedFileTest, LoadersFailAtTheBatchThatReadIt) {
  constexpr int64_t window = 1024;
  const std::string path = write("data.bin", std::string(64 * 2 * window, '\1'));
  const std::string files[] = {path};
  auto dataset = openDataset(files, {}, {{"x", DType::I64, {window}}}).take();
  std::vector<int64_t> x(8 * window);
  char* addresses[] = {reinterpret_cast<char*>(x.data())};
  const ByteSink sinks[] = {std::span(addresses[0], x.size() * sizeof(int64_t))};
  std::vector<char> slot(static_cast<size_t>(BatchSlot::bytesFor(*dataset, 8)));
  PrefetchLoader loader(*dataset, {.micro = 8, .shuffle = false}, 0, slot);
  ASSERT_TRUE(loader.next(sinks).ok());
  fs::resize_file(path, page);
  Status status;
  for (int batch = 0; batch < 3 && status.ok(); ++batch) // some were ready before
    status = loader.next(sinks);
  EXPECT_NE(messageOf(status).find("'" + path + "' had 131072 bytes"), std::string::npos)
      << messageOf(status);
  const BatchLoader sequential(*dataset, {.micro = 8});
  EXPECT_FALSE(sequential.fillSequential(0, addresses).ok());
}

/// Whichever thread comes upon the end of the file: signals are blocked in compute threads.
TEST_F(MappedFileTest, ComputeThreadsMayComeUponTheEnd) {
  constexpr int64_t window = 1024;
  const std::string path = write("data.bin", std::string(64 * 2 * window, '\1'));
  const std::string files[] = {path};
  auto dataset = openDataset(files, {}, {{"x", DType::I64, {window}}}).take();
  std::vector<int64_t> x(64 * window);
  const ByteSink sinks[] = {std::span(reinterpret_cast<char*>(x.data()), x.size() * 8)};
  auto pool = ThreadPool::create(4).take();
  DirectLoader loader(*dataset, {.micro = 64, .shuffle = false}, 0, *pool);
  ASSERT_TRUE(loader.next(sinks).ok());
  fs::resize_file(path, page);
  EXPECT_NE(messageOf(loader.next(sinks)).find("'" + path + "' had 131072 bytes"),
            std::string::npos);
}

} // namespace
} // namespace titan
