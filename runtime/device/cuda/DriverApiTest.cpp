// Own declarations beside the vendor's, where its header is.
#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/cuda/testing/Signatures.h"

#include <gtest/gtest.h>

#ifdef TITAN_HAVE_CUDA_H
#include <cuda.h>
#endif

#ifdef TITAN_HAVE_CUDA_H
// In this scope the names in the list are ours.
namespace titan::cuda {
#define TITAN_CUDA_SIGNATURE(name, parameters) using Type_##name = CUresult parameters;
TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_SIGNATURE)
} // namespace titan::cuda
#endif

namespace {

#ifdef TITAN_HAVE_CUDA_H

using titan::cuda::testing::alike;
using titan::cuda::testing::AlikeFunctions;

TEST(DriverApi, EntryPointsHaveTheVendorsSignatures) {
#define TITAN_CUDA_COMPARE(name, parameters)                                                       \
  EXPECT_TRUE((AlikeFunctions<titan::cuda::Type_##name, decltype(::name)>::value)) << #name;
  TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_COMPARE)
}

TEST(DriverApi, ConstantsHaveTheVendorsValues) {
#define TITAN_CUDA_COMPARE_VALUE(name, value)                                                      \
  EXPECT_EQ(static_cast<int>(titan::cuda::name), static_cast<int>(::name)) << #name;
  TITAN_CUDA_RESULTS(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_DEVICE_ATTRIBUTES(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_FUNCTION_ATTRIBUTES(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_JIT_OPTIONS(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_CAPTURE_MODES(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_FLAGS(TITAN_CUDA_COMPARE_VALUE)
  EXPECT_EQ(titan::cuda::mappedHostMemory, unsigned{CU_MEMHOSTALLOC_DEVICEMAP});
}

TEST(DriverApi, ComparisonSeesDifferences) {
  EXPECT_FALSE((alike<int, unsigned>()));
  EXPECT_FALSE((alike<int, long>()));
  EXPECT_FALSE((alike<const void*, void*>()));
  EXPECT_FALSE((alike<int*, void*>()));
  EXPECT_FALSE((alike<titan::cuda::CUstream, ::CUdeviceptr>()));
  EXPECT_TRUE((alike<titan::cuda::CUstream, ::CUstream>()));
  EXPECT_TRUE((alike<titan::cuda::CUdeviceptr, ::CUdeviceptr>()));
}

#else

TEST(DriverApi, EntryPointsHaveTheVendorsSignatures) {
  GTEST_SKIP() << "cuda.h was not found when this was built";
}

#endif

} // namespace
