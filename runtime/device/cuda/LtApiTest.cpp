// Own declarations beside the vendor's, where its header is.
#include "runtime/device/cuda/LtApi.h"
#include "runtime/device/cuda/testing/Signatures.h"

#include <gtest/gtest.h>

#include <cstddef>

#ifdef TITAN_HAVE_CUBLASLT_H
#include <cublasLt.h>

// In this scope the names in the list are ours.
namespace titan::cuda {
#define TITAN_CUBLASLT_SIGNATURE(result, name, parameters) using Type_##name = result parameters;
TITAN_CUBLASLT_ENTRY_POINTS(TITAN_CUBLASLT_SIGNATURE)
} // namespace titan::cuda

namespace {

using titan::cuda::testing::AlikeFunctions;

TEST(LtApi, EntryPointsHaveTheVendorsSignatures) {
#define TITAN_CUBLASLT_COMPARE(result, name, parameters)                                           \
  EXPECT_TRUE((AlikeFunctions<titan::cuda::Type_##name, decltype(::name)>::value)) << #name;
  TITAN_CUBLASLT_ENTRY_POINTS(TITAN_CUBLASLT_COMPARE)
}

TEST(LtApi, ConstantsHaveTheVendorsValues) {
#define TITAN_CUBLASLT_COMPARE_VALUE(name, value)                                                  \
  EXPECT_EQ(static_cast<int>(titan::cuda::name), static_cast<int>(::name)) << #name;
  TITAN_CUBLAS_STATUSES(TITAN_CUBLASLT_COMPARE_VALUE)
  TITAN_CUBLAS_COMPUTE_TYPES(TITAN_CUBLASLT_COMPARE_VALUE)
  TITAN_CUBLAS_OPERATIONS(TITAN_CUBLASLT_COMPARE_VALUE)
  TITAN_CUDA_DATA_TYPES(TITAN_CUBLASLT_COMPARE_VALUE)
  TITAN_CUBLASLT_DESC_ATTRIBUTES(TITAN_CUBLASLT_COMPARE_VALUE)
  TITAN_CUBLASLT_LAYOUT_ATTRIBUTES(TITAN_CUBLASLT_COMPARE_VALUE)
  TITAN_CUBLASLT_PREFERENCE_ATTRIBUTES(TITAN_CUBLASLT_COMPARE_VALUE)
  TITAN_CUBLASLT_VALUES(TITAN_CUBLASLT_COMPARE_VALUE)
}

TEST(LtApi, ResultsHaveTheVendorsLayout) {
  using Ours = titan::cuda::cublasLtMatmulHeuristicResult_t;
  using Theirs = ::cublasLtMatmulHeuristicResult_t;
  EXPECT_EQ(sizeof(titan::cuda::cublasLtMatmulAlgo_t), sizeof(::cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(Ours), sizeof(Theirs));
  EXPECT_EQ(offsetof(Ours, workspaceSize), offsetof(Theirs, workspaceSize));
  EXPECT_EQ(offsetof(Ours, state), offsetof(Theirs, state));
  EXPECT_EQ(offsetof(Ours, wavesCount), offsetof(Theirs, wavesCount));
}

} // namespace

#else

TEST(LtApi, EntryPointsHaveTheVendorsSignatures) {
  GTEST_SKIP() << "cublasLt.h was not found when this was built";
}

#endif
