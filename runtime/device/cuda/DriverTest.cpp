#include "runtime/device/cuda/Results.h"
#include "runtime/device/cuda/testing/FakeCard.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include <dlfcn.h>

namespace titan::cuda {
namespace {

using titan::testing::FakeVariable;
using titan::testing::loadDriver;

std::string errorOfLoad() {
  const Result<Driver> driver = Driver::load();
  return driver.ok()
             ? fmt::format("loads CUDA {}", driver->version())
             : fmt::format("exit {}: {}", driver.error().exitCode(), driver.error().message());
}

/// What a process with that LD_LIBRARY_PATH says. (The loader reads it when a process starts.)
std::string errorOfLoad(const std::string& libraryPath) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      fmt::format("LD_LIBRARY_PATH='{}' '{}' --gtest_also_run_disabled_tests "
                  "--gtest_filter=Driver.DISABLED_SaysHowItLoads 2>&1",
                  libraryPath, self);
  std::string text;
  std::array<char, 512> line{};
  FILE* child = popen(command.c_str(), "r");
  while (std::fgets(line.data(), line.size(), child))
    text += line.data();
  pclose(child);
  return text;
}

/// Run by errorOfLoad() in another process.
TEST(Driver, DISABLED_SaysHowItLoads) { std::printf("%s\n", errorOfLoad().c_str()); }

TEST(Driver, KnowsItsVersionAndTellsErrors) {
  const FakeVariable version("VERSION", "12.4");
  const Driver driver = loadDriver();
  EXPECT_EQ(driver.version(), 12040);
  EXPECT_EQ(versionText(driver.version()), "12.4");
  EXPECT_EQ(driver.text({CUDA_ERROR_ILLEGAL_ADDRESS, "cuLaunchKernel"}),
            "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (as the fake driver says)");
  EXPECT_EQ(driver.text({static_cast<CUresult>(12345), "cuInit"}), "cuInit: error 12345");
}

TEST(Driver, ErrorsSayWhoIsToBlame) {
  const Driver driver = loadDriver();
  const auto codeOf = [&](CUresult result) {
    return driver.error({result, "cuLaunchKernel"}, "a launch").code();
  };
  EXPECT_EQ(codeOf(CUDA_ERROR_ILLEGAL_ADDRESS), ErrorCode::Internal);
  EXPECT_EQ(codeOf(CUDA_ERROR_MISALIGNED_ADDRESS), ErrorCode::Internal);
  EXPECT_EQ(codeOf(CUDA_ERROR_LAUNCH_FAILED), ErrorCode::Internal);
  EXPECT_EQ(codeOf(CUDA_ERROR_INVALID_VALUE), ErrorCode::Internal);
  EXPECT_EQ(codeOf(CUDA_ERROR_ECC_UNCORRECTABLE), ErrorCode::RunFailed);
  EXPECT_EQ(codeOf(CUDA_ERROR_LAUNCH_TIMEOUT), ErrorCode::RunFailed);
  EXPECT_EQ(codeOf(CUDA_ERROR_UNKNOWN), ErrorCode::RunFailed);
  EXPECT_EQ(codeOf(CUDA_ERROR_OUT_OF_MEMORY), ErrorCode::Environment);
  EXPECT_TRUE(isSticky(CUDA_ERROR_LAUNCH_FAILED) && isSticky(CUDA_ERROR_ECC_UNCORRECTABLE));
  EXPECT_FALSE(isSticky(CUDA_ERROR_OUT_OF_MEMORY) || isSticky(CUDA_ERROR_INVALID_VALUE));
}

TEST(Driver, IsRefusedBelowCuda12) {
  const FakeVariable version("VERSION", "11.8");
  EXPECT_EQ(errorOfLoad(),
            "exit 3: the driver (libcuda.so.1) serves CUDA 11.8, and a job needs 12.0 "
            "or later: update the driver, or compile the job with --target=cpu");
}

TEST(Driver, SaysThatThereIsNoCard) {
  const FakeVariable devices("DEVICES", "0");
  EXPECT_EQ(errorOfLoad(), "exit 3: the driver (CUDA 13.0) finds no card");
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  EXPECT_EQ(errorOfLoad(),
            "exit 3: the driver (CUDA 13.0) finds no card (CUDA_VISIBLE_DEVICES is '7')");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(Driver, KnowsTheToolkitsStandIn) {
  const FakeVariable fail("FAIL", "cuInit:1:34");
  EXPECT_EQ(errorOfLoad(), "exit 3: the libcuda.so.1 that was found is a toolkit's stand-in for "
                           "linking, no driver: take its folder out of LD_LIBRARY_PATH");
}

TEST(Driver, SaysWhyItDoesNotStart) {
  for (const char* call : {"cuInit", "cuDriverGetVersion"}) {
    const FakeVariable fail("FAIL", fmt::format("{}:1:999", call));
    EXPECT_EQ(errorOfLoad(),
              fmt::format("exit 3: the driver (libcuda.so.1) does not start: {}: "
                          "CUDA_ERROR_UNKNOWN (as the fake driver says): does nvidia-smi work?",
                          call));
  }
}

TEST(Driver, IsMissing) {
  const std::string text = errorOfLoad("");
  if (text.find("loads CUDA") != text.npos)
    GTEST_SKIP() << "this machine has a driver";
  EXPECT_NE(text.find("exit 3: cannot load the CUDA driver: libcuda.so.1: "), text.npos) << text;
  EXPECT_NE(
      text.find(
          "install NVIDIA's driver for CUDA 12.0 or later, or compile the job with --target=cpu"),
      text.npos)
      << text;
}

TEST(Driver, LacksAnEntryPoint) {
  const std::string text = errorOfLoad(TITAN_EMPTY_CUDA);
  EXPECT_NE(text.find("exit 3: libcuda.so.1 has no function cuInit: it is no driver for CUDA 12.0 "
                      "or later"),
            text.npos)
      << text;
}

} // namespace
} // namespace titan::cuda
