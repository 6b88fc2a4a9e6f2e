#include "runtime/data/NpzWriter.h"

#include "runtime/data/MappedFile.h"
#include "runtime/data/TestFiles.h"

#include <cstdlib>

namespace titan {
namespace {

using NpzWriterTest = test::FilesTest;
using test::bytesOf;
using test::contentsOf;
namespace fs = std::filesystem;

size_t filesIn(const std::string& directory) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST_F(NpzWriterTest, ArraysTakeTurns) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> y = {7, 8};
  const NamedArray whole[] = {{"x", DType::F32, {2, 3}, bytesOf(x)},
                              {"y", DType::I64, {2}, bytesOf(y)}};
  const ArrayHead heads[] = {{"x", DType::F32, {2, 3}}, {"y", DType::I64, {2}}};
  const std::string path = directory() + "/o.npz";
  auto writer = NpzWriter::create(path, heads).take();
  for (size_t row = 0; row < 2; ++row) {
    ASSERT_TRUE(writer->append(1, bytesOf(y).subspan(8 * row, 8)).ok());
    ASSERT_TRUE(writer->append(0, bytesOf(x).subspan(12 * row, 12)).ok());
  }
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(contentsOf(path), contentsOf(writeNpzFile("whole.npz", whole)));
  EXPECT_EQ(filesIn(directory()), 2u);
}

TEST_F(NpzWriterTest, WhatDoesNotFitIsRefusedBeforeTheWork) {
  const ArrayHead heads[] = {{"x", DType::F32, {1, 4}}, {"y", DType::F32, {int64_t{1} << 57}}};
  const auto writer = NpzWriter::create(directory() + "/o.npz", heads);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code(), ErrorCode::Environment);
  EXPECT_NE(writer.error().message().find("o.npz', 576460752303424"), std::string::npos)
      << writer.error().message();
  EXPECT_EQ(filesIn(directory()), 0u);
}

TEST_F(NpzWriterTest, UnfinishedFilesAreRemoved) {
  const ArrayHead heads[] = {{"x", DType::F32, {2}}};
  const std::string path = write("o.npz", "old");
  {
    auto writer = NpzWriter::create(path, heads).take();
    EXPECT_EQ(writer->append(0, std::string(12, 'x')).error().code(), ErrorCode::Internal);
    ASSERT_TRUE(writer->append(0, std::string(4, 'x')).ok());
    EXPECT_EQ(writer->finish().error().message(), "array 0 of '" + path + "' lacks 4 bytes");
  }
  EXPECT_EQ(contentsOf(path), "old");
  EXPECT_EQ(filesIn(directory()), 1u);
  fs::create_directory(directory() + "/folder");
  EXPECT_EQ(NpzWriter::create(directory() + "/folder", heads).error().code(),
            ErrorCode::Environment);
}

/// Members behind and beyond 4 GiB, in a file of holes.
TEST_F(NpzWriterTest, LargeArchives) {
  constexpr uint64_t large = uint64_t{5} << 30;
  const std::string small = "behind";
  ZipLayout layout;
  ASSERT_TRUE(layout.add("large", large).ok());
  ASSERT_TRUE(layout.add("small", small.size()).ok());
  const uint32_t crcs[] = {0, 0xad193be4};
  const std::string path = write("large.zip", "");
  std::ofstream file(path, std::ios::binary);
  for (size_t i = 0; i < 2; ++i)
    file.seekp(static_cast<std::streamoff>(layout.headerAt(i))) << layout.header(i, crcs[i]);
  file.seekp(static_cast<std::streamoff>(layout.contentsAt(1))) << small;
  file.seekp(static_cast<std::streamoff>(layout.directoryAt())) << layout.directory(crcs);
  file.close();

  const auto mapped = MappedFile::open(path).take();
  const auto members = parseZip(mapped->bytes());
  ASSERT_TRUE(members.ok()) << members.error().message();
  ASSERT_EQ(members->size(), 2u);
  EXPECT_EQ((*members)[0].size, large);
  EXPECT_EQ((*members)[0].stored.data(), mapped->bytes().data() + layout.contentsAt(0));
  EXPECT_TRUE(std::ranges::equal((*members)[1].stored, small));
  EXPECT_TRUE(checkCrc((*members)[1], (*members)[1].stored).ok());
  const std::string script = "/usr/bin/python3 -c \"import zipfile;z=zipfile.ZipFile('" + path +
                             "');assert z.getinfo('large').file_size==5<<30;"
                             "assert z.read('small')==b'behind';"
                             "assert len(z.open('large').read(9))==9\"";
  if (std::system("/usr/bin/python3 -c '' 2>/dev/null") == 0)
    EXPECT_EQ(std::system(script.c_str()), 0);
}

} // namespace
} // namespace titan
