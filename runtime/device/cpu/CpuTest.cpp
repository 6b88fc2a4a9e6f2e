#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cpu/testing/RefusedTiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace titan {
namespace {

/// The flags of /proc/cpuinfo: what the kernel says of the same CPU.
std::vector<std::string> kernelFlags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), {}};
    }
  return {};
}

TEST(CpuFeatures, AgreeWithTheKernel) {
  std::vector<std::string> flags = kernelFlags();
  ASSERT_FALSE(flags.empty());
  // Names that LLVM and the kernel share.
  for (const char* name :
       {"adx",        "aes",        "avx",      "avx2",     "avx512bw",   "avx512cd", "avx512dq",
        "avx512f",    "avx512ifma", "avx512vl", "bmi2",     "clflushopt", "clwb",     "clzero",
        "cmov",       "cx16",       "cx8",      "f16c",     "fma",        "fsgsbase", "fxsr",
        "gfni",       "invpcid",    "mmx",      "movbe",    "movdir64b",  "movdiri",  "popcnt",
        "rdpid",      "serialize",  "sse",      "sse2",     "sse4a",      "ssse3",    "vaes",
        "vpclmulqdq", "xsave",      "xsavec",   "xsaveopt", "xsaves"})
    EXPECT_EQ(hasCpuFeature(name), std::ranges::count(flags, name) > 0) << name;
  for (auto [llvm, kernel] :
       {std::pair{"amx-bf16", "amx_bf16"}, std::pair{"amx-tile", "amx_tile"},
        std::pair{"avx512bf16", "avx512_bf16"}, std::pair{"avx512vnni", "avx512_vnni"},
        std::pair{"avx512vbmi2", "avx512_vbmi2"}, std::pair{"sse3", "pni"},
        std::pair{"sse4.1", "sse4_1"}, std::pair{"sse4.2", "sse4_2"}, std::pair{"lzcnt", "abm"},
        std::pair{"bmi", "bmi1"}, std::pair{"pclmul", "pclmulqdq"},
        std::pair{"avxvnni", "avx_vnni"}, std::pair{"64bit", "lm"}, std::pair{"sahf", "lahf_lm"}})
    EXPECT_EQ(hasCpuFeature(llvm), std::ranges::count(flags, kernel) > 0) << llvm;
}

TEST(CpuFeatures, AreSortedAndPresent) {
  std::vector<std::string> features = cpuFeatures();
  EXPECT_TRUE(std::ranges::is_sorted(features));
  EXPECT_TRUE(std::ranges::all_of(features, hasCpuFeature));
  EXPECT_TRUE(checkCpuFeatures(features, "native").ok());
}

TEST(CpuFeatures, MissingOnesAreNamed) {
  std::vector<std::string> required = {"sse2", "quantum", "avx1024"};
  Status status = checkCpuFeatures(required, "znver9");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::Environment);
  EXPECT_NE(status.error().message().find("lacks quantum, avx1024"), std::string::npos)
      << status.error().message();
}

TEST(CpuFeatures, ARefusalOfTheKernelIsItsErrno) {
  int reason = 0;
  if (!testing::whereTilesAreRefused([&] { reason = requestTileRegisters(); }))
    GTEST_SKIP() << "this system lets no seccomp filter be set";
  EXPECT_EQ(reason, EPERM);
}

TEST(CpuFeatures, ARefusalOfTheKernelNamesAnArchThatRuns) {
  std::vector<std::string> required = {"amx-bf16", "amx-tile"};
  if (!checkCpuFeatures(required, "sapphirerapids").ok())
    GTEST_SKIP() << "this CPU has no AMX";
  EXPECT_TRUE(enableCpuFeatures(required, "sapphirerapids").ok());
  Status status;
  if (!testing::whereTilesAreRefused(
          [&] { status = enableCpuFeatures(required, "sapphirerapids"); }))
    GTEST_SKIP() << "this system lets no seccomp filter be set";
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::Environment);
  EXPECT_EQ(status.error().message(),
            "the system does not let this process use amx-tile (Operation not permitted), which "
            "the job was compiled for (--arch sapphirerapids): compile it again with "
            "--arch=x86-64-v4");
}

/// Requests the registers in a process with a signal stack that they do not fit.
[[noreturn]] void requestWithASmallSignalStack() {
  static char memory[8192];
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  if (sigaltstack(&stack, nullptr) != 0)
    _exit(EXIT_SUCCESS); // refused already, as this process has the registers
  _exit(requestTileRegisters());
}

TEST(CpuFeaturesDeathTest, ASmallSignalStackIsARefusalToo) {
  if (!hasCpuFeature("amx-tile"))
    GTEST_SKIP() << "this CPU has no AMX";
  // A process of its own: permission, once given, is the process's.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(requestWithASmallSignalStack(), ::testing::ExitedWithCode(ENOSPC), "");
}

TEST(Arena, IsZeroAndAligned) {
  auto pool = ThreadPool::create(2).take();
  Arena arena = Arena::create(5'000'000, *pool).take();
  EXPECT_EQ(arena.size(), 5'000'000);
  EXPECT_GE(arena.capacity(), arena.size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % (2 << 20), 0u);
  EXPECT_TRUE(
      std::all_of(arena.data(), arena.data() + arena.capacity(), [](char c) { return c == 0; }));
}

TEST(Arena, MoreThanTheMachineHasIsAnError) {
  auto pool = ThreadPool::create(1).take();
  auto arena = Arena::create(int64_t{1} << 60, *pool);
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.error().code(), ErrorCode::Environment);
}

TEST(ArenaDeathTest, StopsAccessesBeyondItsEnds) {
  auto pool = ThreadPool::create(1).take();
  Arena arena = Arena::create(100, *pool).take();
  volatile char* data = arena.data();
  EXPECT_DEATH(data[arena.capacity()] = 1, "");
  EXPECT_DEATH(data[-1] = 1, "");
}

} // namespace
} // namespace titan
