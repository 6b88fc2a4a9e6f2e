// Files for the tests of this folder.
#pragma once

#include "runtime/data/Npy.h"
#include "runtime/data/NpzWriter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace titan::test {

template <typename T> std::span<const char> bytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::string npy(DType dtype, const Shape& shape, const std::vector<T>& values) {
  const auto bytes = bytesOf(values);
  return formatNpyHeader(dtype, shape).take() + std::string(bytes.begin(), bytes.end());
}

inline std::string contentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator(file), {}};
}

/// A test with a directory of its own.
class FilesTest : public testing::Test {
protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  template <typename T>
  std::string writeNpy(const std::string& name, DType dtype, const Shape& shape,
                       const std::vector<T>& values) const {
    return write(name, npy(dtype, shape, values));
  }
  std::string writeNpzFile(const std::string& name, std::span<const NamedArray> arrays) const {
    const std::string path = directory_ + "/" + name;
    EXPECT_TRUE(writeNpz(path, arrays).ok());
    return path;
  }
  const std::string& directory() const { return directory_; }

private:
  std::string directory_ = testing::TempDir() + "titan_data_" + std::to_string(::getpid()) + "_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
};

} // namespace titan::test
