// Files of cases, and cases on the tests' driver: what is equal, what is planted and found.
#include "runtime/device/cuda/testing/cases/CardRunner.h"
#include "runtime/device/cuda/testing/FakeCard.h"

#include <gtest/gtest.h>

#include <cstring>

namespace titan::cases {
namespace {

/// out[i] = in[i] + scalar, of 32 words.
constexpr const char* addPtx = R"(
.version 8.0
.target sm_80
.address_size 64
// titan: add operands(read 128, write 128) scalars(1)
.visible .entry add(.param .u64 add_param_0, .param .u64 add_param_1, .param .u64 add_param_2)
.reqntid 32
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  ld.param.b64 %rd1, [add_param_0];
  ld.param.b64 %rd2, [add_param_1];
  ld.param.b64 %rd3, [add_param_2];
  cvt.u32.u64 %r3, %rd3;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  ld.global.b32 %r2, [%rd5];
  add.s32 %r2, %r2, %r3;
  st.global.b32 [%rd6], %r2;
  ret;
}
)";

std::string words(uint32_t first) {
  std::string bytes;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t word = first + i;
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return bytes;
}

CaseFile additions() {
  CaseFile file;
  KernelCase kernel;
  kernel.name = "addition";
  kernel.module = file.add({addPtx, "sm_90", "no cubin for the tests' card"});
  kernel.launches = {{"add", 1, 32}};
  kernel.operands = {{0, 0, 128, DType::I32}, {1, 16, 128, DType::I32}};
  kernel.scalars = {5};
  const std::string fence(16, 'f');
  kernel.regions = {{words(7), words(7)}, {fence + std::string(128, 'o'), fence + words(12)}};
  file.cases.push_back(kernel);
  return file;
}

TEST(KernelCases, AFileIsWhatWasWritten) {
  CaseFile file = additions();
  EXPECT_EQ(file.add(file.modules[0]), 0U);
  file.cases[0].bound = 0.5;
  const std::string bytes = serialize(file);
  Result<CaseFile> read = parseCases(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, file);
}

TEST(KernelCases, ATruncatedFileIsRefused) {
  const std::string bytes = serialize(additions());
  for (size_t size = 0; size < bytes.size(); size += 7) {
    Result<CaseFile> read = parseCases(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_TRUE(
        read.error().message().starts_with(fmt::format("the file ends after {} bytes, and ", size)))
        << read.error().message();
  }
}

TEST(KernelCases, DamageAndOtherFilesAreRefused) {
  std::string bytes = serialize(additions());
  bytes[bytes.size() - 3] ^= 1;
  Result<CaseFile> damaged = parseCases(bytes);
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().message().find("the file is damaged: its digest is "),
            std::string::npos);
  Result<CaseFile> other = parseCases("%PDF-1.7 is another format");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message(),
            "no file of kernel cases: it does not begin with 'titan kernel cases 1'");
}

TEST(KernelCases, OperandsOutsideOfTheirMemoryAreRefused) {
  CaseFile file = additions();
  file.cases[0].operands[1].offset = 17;
  Result<CaseFile> read = parseCases(serialize(file));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(),
            "case 'addition' has operands beyond its memory: record it again");
}

std::vector<std::string> differences(const CaseFile& file) {
  Result<std::unique_ptr<CardRunner>> runner = CardRunner::open();
  EXPECT_TRUE(runner.ok());
  Result<std::vector<std::string>> found = (*runner)->run(file, file.cases[0]);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message());
  EXPECT_EQ((*runner)->texts(), 1);
  return found.ok() ? *found : std::vector<std::string>();
}

TEST(CardRunner, EqualBitsAreNoDifference) { EXPECT_EQ(differences(additions()).size(), 0U); }

TEST(CardRunner, APlantedDifferenceIsFound) {
  CaseFile file = additions();
  file.cases[0].regions[1].after[16 + 4 * 9 + 3] ^= 1;
  EXPECT_EQ(differences(file),
            std::vector<std::string>{"operand 1 (I32), element 9: 0x00000015, expected 0x01000015; "
                                     "1 of 32 elements differ"});
}

TEST(CardRunner, ASpoiltBitIsFoundAndNamed) {
  CaseFile file = additions();
  Result<std::string> spoilt = spoil(file.cases[0]);
  ASSERT_TRUE(spoilt.ok());
  EXPECT_EQ(*spoilt, "operand 1 (I32), element 31");
  EXPECT_EQ(differences(file), std::vector<std::string>{
                                   "operand 1 (I32), element 31: 0x0000002b, expected 0x0000002a; "
                                   "1 of 32 elements differ"});
}

TEST(KernelCases, WhatAllowsDifferencesIsNotSpoilt) {
  KernelCase bounded = additions().cases[0], empty = bounded;
  bounded.bound = 0.5;
  EXPECT_EQ(spoil(bounded).error().message(),
            "case 'addition' allows differences: spoil another one");
  empty.operands.clear();
  EXPECT_EQ(spoil(empty).error().message(), "case 'addition' is of no values: spoil another one");
}

TEST(CardRunner, AWriteOutsideOfOperandsIsFound) {
  CaseFile file = additions();
  file.cases[0].regions[1].after[3] = 'x';
  EXPECT_EQ(differences(file),
            std::vector<std::string>{"byte 3 of region 1, outside of all operands, was written"});
}

TEST(CardRunner, ACubinRunsWhereItsCardIs) {
  const testing::FakeVariable capability("CAPABILITY", "9.0");
  CaseFile file = additions();
  Result<std::unique_ptr<CardRunner>> runner = CardRunner::open();
  ASSERT_TRUE(runner.ok());
  Result<std::vector<std::string>> found = (*runner)->run(file, file.cases[0]);
  ASSERT_FALSE(found.ok()); // the tests' driver takes PTX alone
  EXPECT_TRUE(found.error().message().starts_with("loading the cubin of 'addition'"))
      << found.error().message();
  found = (*runner)->run(file, file.cases[0], /*onlyPtx=*/true);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(found->empty());
}

TEST(CompareRegion, ABoundIsOfTheLargestValue) {
  const std::vector<float> wanted = {4, 1, 0}, near = {4.0001F, 1.0001F, 0.0001F},
                           far = {4, 1.01F, 0};
  auto bytesOf = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  KernelCase kernel;
  kernel.operands = {{0, 0, 12, DType::F32}};
  kernel.regions = {{bytesOf(wanted), bytesOf(wanted)}};
  EXPECT_EQ(compareRegion(kernel, 0, bytesOf(near)).size(), 1U);
  kernel.bound = 1e-4;
  EXPECT_EQ(compareRegion(kernel, 0, bytesOf(near)).size(), 0U);
  EXPECT_EQ(compareRegion(kernel, 0, bytesOf(far)),
            std::vector<std::string>{"operand 0 (F32), element 1: 1.00999999 (0x3f8147ae), "
                                     "expected 1 (0x3f800000); 1 of 3 elements differ"});
  kernel.bound = 0.1;
  std::vector<float> notANumber = wanted;
  notANumber[2] = __builtin_nanf("");
  EXPECT_EQ(compareRegion(kernel, 0, bytesOf(notANumber)).size(), 1U);
}

} // namespace
} // namespace titan::cases
