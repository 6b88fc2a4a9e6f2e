#include "runtime/device/cuda/LtLibrary.h"
#include "runtime/device/cuda/LtProduct.h"
#include "runtime/device/cuda/VendorLibrary.h"
#include "runtime/device/cuda/testing/FakeLt.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace titan::cuda {
namespace {

using titan::testing::FakeLtVariable;
using titan::testing::Variable;
using titan::testing::WithoutLt;

std::string errorOf(const char* name = LtLibrary::defaultName) {
  const Result<LtLibrary> library = LtLibrary::load(name);
  return library.ok()
             ? std::string()
             : fmt::format("exit {}: {}", library.error().exitCode(), library.error().message());
}

TEST(LtLibrary, IsFoundByTheLoader) {
  const FakeLtVariable version("VERSION", "13.2.1");
  const Result<LtLibrary> library = LtLibrary::load();
  ASSERT_TRUE(library.ok()) << library.error().message();
  EXPECT_EQ(library->version(), "13.2.1");
  EXPECT_EQ(library->text(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_EQ(library->text(static_cast<cublasStatus_t>(77)), "status 77");
}

TEST(LtLibrary, IsFoundInTheFirstFolderThatHasIt) {
  const Variable folders(librariesVariable, ":/nowhere:" TITAN_EMPTY_CUDA ":" TITAN_NO_CUBLASLT);
  EXPECT_EQ(errorOf(), "exit 3: '" TITAN_EMPTY_CUDA "/libcublasLt.so.13' has no function "
                       "cublasLtGetStatusName: it is no cuBLASLt 13.0.0 or later");
}

TEST(LtLibrary, SaysWhatWasLookedFor) {
  EXPECT_EQ(errorOf("libtitan-none.so.13"),
            "exit 3: cannot load cuBLASLt: libtitan-none.so.13: cannot open shared object file: No "
            "such file or directory: install CUDA 13's libcublas, or the wheel nvidia-cublas, and "
            "name its folder in TITAN_CUDA_LIBRARIES");
  const WithoutLt none;
  EXPECT_EQ(
      errorOf().find("exit 3: cannot load cuBLASLt: " TITAN_NO_CUBLASLT "/libcublasLt.so.13: "), 0u)
      << errorOf();
}

TEST(LtLibrary, RefusesAnOldVersion) {
  const FakeLtVariable version("VERSION", "12.9.2");
  EXPECT_EQ(errorOf(), "exit 3: cuBLASLt ('libcublasLt.so.13') has version 12.9.2, and a job takes "
                       "13.0.0 or later: update it, or name another folder in "
                       "TITAN_CUDA_LIBRARIES");
}

/// What needs no card: loading, and every attribute of a product.
TEST(LtLibrary, TheVendorsTakesTheAttributesOfProducts) {
#ifndef TITAN_CUBLASLT
  GTEST_SKIP() << "no libcublasLt.so.13 was found";
#else
  const std::string folder = std::filesystem::path(TITAN_CUBLASLT).parent_path();
  const Variable folders(librariesVariable, folder);
  const Result<LtLibrary> library = LtLibrary::load();
  ASSERT_TRUE(library.ok()) << library.error().message();
  EXPECT_EQ(library->text(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
  for (const int64_t batch : {1, 3})
    for (const bool bias : {false, true}) {
      LibraryCall call;
      call.gemm = {.m = 8, .n = 4, .k = 2, .batch = batch, .lda = 2, .ldb = 2, .ldc = 4};
      call.gemm.batchStrideA = call.gemm.batchStrideB = call.gemm.batchStrideC = 64;
      call.gemm.transposeB = true;
      call.gemm.bias = bias;
      call.workspace = 1024;
      const Result<LtProduct> product = LtProduct::create(*library, nullptr, call, {});
      EXPECT_TRUE(product.ok()) << product.error().message();
    }
#endif
}

} // namespace
} // namespace titan::cuda
