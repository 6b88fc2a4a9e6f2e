#include "runtime/data/Array.h"

#include "runtime/data/TestFiles.h"
#include "runtime/data/Zip.h"

#include <cstdlib>
#include <random>

namespace titan {
namespace {

using test::bytesOf;
using test::contentsOf;
using test::npy;
using ArrayTest = test::FilesTest;
using NpzTest = test::FilesTest;

std::string npyError(std::string_view bytes) {
  const auto header = parseNpyHeader(bytes);
  return header.ok() ? "" : header.error().message();
}

/// A version 1 file with header `dict` and `data` bytes.
std::string npyOf(std::string dict, size_t data) {
  dict += '\n';
  std::string bytes = "\x93NUMPY\1";
  bytes += '\0';
  bytes += static_cast<char>(dict.size());
  bytes += static_cast<char>(dict.size() >> 8);
  return bytes + dict + std::string(data, '\0');
}

TEST(Npy, HeaderIsNumpys) {
  const std::string header = formatNpyHeader(DType::F32, Shape{3, 4}).take();
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  EXPECT_NE(formatNpyHeader(DType::I64, Shape{3}).take().find("'shape': (3,), }"),
            std::string::npos);
  EXPECT_NE(
      formatNpyHeader(DType::U8, Shape{}).take().find("'|u1', 'fortran_order': False, 'shape': ()"),
      std::string::npos);
  EXPECT_FALSE(formatNpyHeader(DType::BF16, Shape{3}).ok());
}

TEST(Npy, RoundTrip) {
  for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::I64, DType::I32, DType::I16,
                      DType::I8, DType::U32, DType::U16, DType::U8, DType::Bool}) {
    const Shape shape = {2, 3};
    const std::vector<char> data(static_cast<size_t>(6 * byteSize(dtype)), 'x');
    const std::string bytes = npy(dtype, shape, data);
    const auto array = parseNpy(bytes, "a");
    ASSERT_TRUE(array.ok()) << array.error().message();
    EXPECT_EQ(array->dtype, dtype);
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(array->bytes.size(), data.size());
  }
}

TEST(Npy, HeadersInOtherForms) {
  EXPECT_EQ(npyError(npyOf("{\"shape\":(2,),'fortran_order':False,'descr':'<i8'}", 16)), "");
  EXPECT_EQ(npyError(npyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (), }   ", 4)), "");
}

TEST(Npy, Refusals) {
  EXPECT_NE(npyError("PK"), "");
  EXPECT_NE(npyError(npyOf("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4))
                .find("dtype '>f4' is big-endian"),
            std::string::npos);
  EXPECT_NE(npyError(npyOf("{'descr': '<f4', 'fortran_order': True, 'shape': (1,1), }", 4))
                .find("Fortran order"),
            std::string::npos);
  EXPECT_NE(npyError(npyOf("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", 8))
                .find("dtype '<u8' is not supported"),
            std::string::npos);
  EXPECT_NE(npyError(npyOf("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4))
                .find("structured dtypes"),
            std::string::npos);
  EXPECT_EQ(npyError(npyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8)),
            "F32 [3] needs 12 bytes of data, the file has 8");
  EXPECT_NE(npyError(npyOf("{'descr': '<f4', 'fortran_order': False, "
                           "'shape': (4611686018427387904, 4611686018427387904), }",
                           8))
                .find("overflows"),
            std::string::npos);
  for (const char* dict :
       {"", "{", "{'descr': '<f4'", "{'descr': '<f4', }", "{'descr': 'O'}", "{'shape': (1, }",
        "{'shape': (-1,), }", "{'descr': '<f4', 'descr': '<f4'}"})
    EXPECT_NE(npyError(npyOf(dict, 0)), "") << dict;
}

TEST_F(NpzTest, RoundTripAndDeterminism) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> y = {7, 8};
  const NamedArray arrays[] = {{"x", DType::F32, {2, 3}, bytesOf(x)},
                               {"targets", DType::I64, {2}, bytesOf(y)}};
  const std::string bytes = contentsOf(writeNpzFile("a.npz", arrays));
  EXPECT_EQ(contentsOf(writeNpzFile("b.npz", arrays)), bytes);
  const auto read = parseNpz(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].name, "x");
  EXPECT_EQ((*read)[1].shape, (Shape{2}));
  EXPECT_TRUE(std::ranges::equal((*read)[0].bytes, bytesOf(x)));
}

TEST_F(NpzTest, DamageIsFound) {
  const std::vector<float> x(100, 1.5f);
  const NamedArray arrays[] = {{"x", DType::F32, {100}, bytesOf(x)}};
  const std::string bytes = contentsOf(writeNpzFile("a.npz", arrays));
  for (size_t length = 0; length < bytes.size(); ++length)
    ASSERT_FALSE(parseNpz(std::span(bytes).first(length)).ok()) << length;
  std::string damaged = bytes;
  damaged[300] ^= 1;
  const auto read = parseNpz(damaged);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message().find("member 'x.npy' is damaged: its CRC"), std::string::npos);
}

TEST_F(ArrayTest, NumpysFiles) {
  const std::string script = "/usr/bin/python3 -c \"import numpy as n;"
                             "x=n.arange(6,dtype='f4').reshape(2,3);y=n.array([3,4]);"
                             "n.save('" +
                             directory() +
                             "/x.npy',x);"
                             "n.savez('" +
                             directory() +
                             "/s.npz',x=x,y=y);"
                             "n.savez_compressed('" +
                             directory() + "/c.npz',x=x,y=y)\" 2>/dev/null";
  if (std::system(script.c_str()) != 0)
    GTEST_SKIP() << "python3 with numpy is not installed";
  for (const char* name : {"x.npy", "s.npz", "c.npz"}) {
    const auto arrays = readArrays(directory() + "/" + name);
    ASSERT_TRUE(arrays.ok()) << arrays.error().message();
    const Array& x = (*arrays)[0];
    EXPECT_EQ(x.name, "x");
    EXPECT_EQ(x.shape, (Shape{2, 3}));
    const std::vector<float> expected = {0, 1, 2, 3, 4, 5};
    EXPECT_TRUE(std::ranges::equal(x.bytes, bytesOf(expected)));
  }
}

TEST_F(ArrayTest, NumpyReadsOurs) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
  const NamedArray arrays[] = {{"x", DType::F64, {3, 2}, bytesOf(x)},
                               {"π", DType::Bool, {}, {"\1", 1}}};
  ASSERT_TRUE(writeNpz(directory() + "/o.npz", arrays).ok());
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3 with numpy is not installed";
  const std::string script = "/usr/bin/python3 -c \"import numpy as n;z=n.load('" + directory() +
                             "/o.npz');assert z.files==['x','\xcf\x80'];"
                             "assert (z['x']==n.arange(1,7).reshape(3,2)).all();"
                             "assert z['\xcf\x80']==True\"";
  EXPECT_EQ(std::system(script.c_str()), 0);
}

TEST_F(ArrayTest, WritingToAMissingDirectoryIsEnvironment) {
  const Status status = writeNpz(directory() + "/missing/o.npz", {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::Environment);
}

TEST_F(ArrayTest, Safetensors) {
  const std::string header =
      R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[1,1],"data_offsets":[8,10]}} )";
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(header.size() >> 8 * i);
  const std::string path = write("d.safetensors", bytes + header + std::string(10, '\0'));
  const auto arrays = readArrays(path);
  ASSERT_TRUE(arrays.ok()) << arrays.error().message();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ((*arrays)[1].dtype, DType::BF16);
  const auto cut = readArrays(write("cut.safetensors", bytes + header + "12345"));
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), ErrorCode::BadInput);
}

TEST_F(ArrayTest, MissingFileAndDirectory) {
  EXPECT_NE(readArrays("/nonexistent/x.npz").error().message().find("'/nonexistent/x.npz'"),
            std::string::npos);
  EXPECT_NE(readArrays(directory()).error().message().find("not a regular file"),
            std::string::npos);
}

TEST_F(NpzTest, RandomDamageNeverCrashes) {
  const std::vector<float> x(30, 1.5f);
  const NamedArray arrays[] = {{"x", DType::F32, {5, 6}, bytesOf(x)},
                               {"y", DType::F32, {30}, bytesOf(x)}};
  const std::string npz = contentsOf(writeNpzFile("a.npz", arrays));
  const std::string single = npy(DType::F32, {5, 6}, x);
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = i % 2 ? npz : single;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (i % 2)
      (void)parseNpz(bytes);
    else
      (void)parseNpy(bytes, "x");
  }
}

} // namespace
} // namespace titan
