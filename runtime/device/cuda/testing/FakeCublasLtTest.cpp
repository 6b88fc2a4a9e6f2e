// The rules that the tests' cuBLASLt enforces: a job that breaks one is to fail.
#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/LtLibrary.h"
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/FakeLt.h"

#include <gtest/gtest.h>

namespace titan::cuda {
namespace {

using titan::testing::FakeLtVariable;

/// A product of 4 x 4 matrices on the fake card.
class FakeCublasLt : public ::testing::Test {
protected:
  void SetUp() override {
    CUcontext context = nullptr;
    const Card card = chooseCard(driver, 0).take();
    ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, card.handle).result, CUDA_SUCCESS);
    held = OwnedContext(driver, card.handle);
    ASSERT_EQ(driver.cuCtxSetCurrent(context).result, CUDA_SUCCESS);
    CUstream made = nullptr;
    ASSERT_EQ(driver.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING).result, CUDA_SUCCESS);
    stream = OwnedStream(driver, made);
    CUdeviceptr address = 0;
    ASSERT_EQ(driver.cuMemAlloc_v2(&address, bytes).result, CUDA_SUCCESS);
    memory = OwnedMemory(driver, address);
    ASSERT_EQ(driver.cuMemsetD8Async(address, 0, bytes, made).result, CUDA_SUCCESS);
    cublasLtHandle_t opened = nullptr;
    ASSERT_EQ(lt.cublasLtCreate(&opened), CUBLAS_STATUS_SUCCESS);
    handle = OwnedLt(lt, opened);
    cublasLtMatmulDesc_t described = nullptr;
    ASSERT_EQ(lt.cublasLtMatmulDescCreate(&described, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    desc = OwnedLtDesc(lt, described);
    cublasLtMatmulPreference_t preferred = nullptr;
    ASSERT_EQ(lt.cublasLtMatmulPreferenceCreate(&preferred), CUBLAS_STATUS_SUCCESS);
    preference = OwnedLtPreference(lt, preferred);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{4096});
  }

  template <typename T> void prefer(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    ASSERT_EQ(
        lt.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        CUBLAS_STATUS_SUCCESS);
  }
  template <typename T> void describe(cublasLtMatmulDescAttributes_t attribute, T value) {
    ASSERT_EQ(lt.cublasLtMatmulDescSetAttribute(desc.get(), attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  OwnedLtLayout layout(cudaDataType_t type, uint64_t rows, uint64_t columns, int64_t leading) {
    cublasLtMatrixLayout_t made = nullptr;
    EXPECT_EQ(lt.cublasLtMatrixLayoutCreate(&made, type, rows, columns, leading),
              CUBLAS_STATUS_SUCCESS);
    return OwnedLtLayout(lt, made);
  }
  cublasStatus_t heuristic(const OwnedLtLayout& a, const OwnedLtLayout& b, const OwnedLtLayout& d,
                           int wanted = 8) {
    results.resize(static_cast<size_t>(wanted));
    int found = 0;
    const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(
        handle.get(), desc.get(), a.get(), b.get(), d.get(), d.get(), preference.get(), wanted,
        results.data(), &found);
    results.resize(static_cast<size_t>(found));
    return status;
  }
  /// Of the square layout, with operands `offset` bytes behind their places.
  cublasStatus_t run(const cublasLtMatmulAlgo_t& algorithm, size_t workspaceBytes = 4096,
                     uint64_t offset = 0, float alpha = 1) {
    const float beta = 0;
    const auto at = [&](uint64_t place) { return reinterpret_cast<void*>(memory.get() + place); };
    return lt.cublasLtMatmul(handle.get(), desc.get(), &alpha, at(offset), square.get(), at(256),
                             square.get(), &beta, at(512), square.get(), at(512), square.get(),
                             &algorithm, at(4096), workspaceBytes, stream.get());
  }

  static constexpr size_t bytes = 8192;
  const Driver driver = titan::testing::loadDriver();
  const LtLibrary lt = LtLibrary::load().take();
  OwnedContext held;
  OwnedStream stream;
  OwnedMemory memory;
  OwnedLt handle;
  OwnedLtDesc desc;
  OwnedLtPreference preference;
  OwnedLtLayout square = layout(CUDA_R_32F, 4, 4, 4);
  std::vector<cublasLtMatmulHeuristicResult_t> results;
};

TEST_F(FakeCublasLt, KnowsFourAlgorithmsInTheirOrder) {
  ASSERT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(results.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(results[i].workspaceSize, i * 1024);
    EXPECT_EQ(run(results[i].algo), CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(heuristic(square, square, square, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(results.size(), 1u);
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{1500});
  EXPECT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(results.size(), 2u);
}

TEST_F(FakeCublasLt, RefusesShapesAndTypesThatDoNotFit) {
  EXPECT_EQ(heuristic(square, square, layout(CUDA_R_32F, 4, 4, 3)), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(heuristic(square, layout(CUDA_R_32F, 5, 4, 5), square), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(heuristic(square, layout(CUDA_R_16BF, 4, 4, 4), square), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(heuristic(square, square, layout(CUDA_R_16BF, 4, 4, 4)), CUBLAS_STATUS_NOT_SUPPORTED);
  describe(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_EQ(heuristic(square, square, square), CUBLAS_STATUS_NOT_SUPPORTED) << "no bias is set";
  const int64_t wrongSize = 0;
  EXPECT_EQ(lt.cublasLtMatmulDescSetAttribute(desc.get(), CUBLASLT_MATMUL_DESC_TRANSA, &wrongSize,
                                              sizeof wrongSize),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasLt, ReadsF32AloneAsTf32) {
  cublasLtMatmulDesc_t described = nullptr;
  ASSERT_EQ(lt.cublasLtMatmulDescCreate(&described, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  desc = OwnedLtDesc(lt, described);
  const OwnedLtLayout narrow = layout(CUDA_R_16BF, 4, 4, 4);
  EXPECT_EQ(heuristic(narrow, narrow, square), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
}

TEST_F(FakeCublasLt, HoldsCallersToWhatTheyPromised) {
  ASSERT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(results[0].algo, 0, /*offset=*/16), CUBLAS_STATUS_INVALID_VALUE)
      << "256 bytes is what divides addresses unless something else is said";
  EXPECT_EQ(run(results[2].algo, 2047), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(results[0].algo, 4096, 0, /*alpha=*/2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run({}), CUBLAS_STATUS_INVALID_VALUE);
  describe(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_T});
  EXPECT_EQ(run(results[0].algo), CUBLAS_STATUS_INVALID_VALUE) << "it is another product's";
  describe(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_N});
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t{16});
  ASSERT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(results[0].algo, 4096, 16), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(results[0].algo, 4096, 8), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasLt, HoldsCallersToTheBiasThatTheHeuristicSaw) {
  const auto bias = [&](uint64_t address) {
    describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(address));
  };
  describe(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  bias(16); // an alignment, and no place
  ASSERT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
  bias(memory.get() + 1024 + 16);
  EXPECT_EQ(run(results[0].algo), CUBLAS_STATUS_SUCCESS);
  bias(memory.get() + 1024 + 8);
  EXPECT_EQ(run(results[0].algo), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasLt, LoadsNothingInACapture) {
  ASSERT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
  const auto capture = [&] {
    EXPECT_EQ(
        driver.cuStreamBeginCapture_v2(stream.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).result,
        CUDA_SUCCESS);
    const cublasStatus_t status = run(results[0].algo);
    CUgraph graph = nullptr;
    (void)driver.cuStreamEndCapture(stream.get(), &graph);
    const OwnedGraph owned = graph ? OwnedGraph(driver, graph) : OwnedGraph();
    return status;
  };
  EXPECT_EQ(capture(), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(run(results[0].algo), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(capture(), CUBLAS_STATUS_SUCCESS);
}

TEST_F(FakeCublasLt, TakesNoAlgorithmOfAnotherVersion) {
  ASSERT_EQ(heuristic(square, square, square), CUBLAS_STATUS_SUCCESS);
  const cublasLtMatmulAlgo_t algorithm = results[0].algo;
  const FakeLtVariable version("VERSION", "13.2.0");
  cublasLtHandle_t opened = nullptr;
  ASSERT_EQ(lt.cublasLtCreate(&opened), CUBLAS_STATUS_SUCCESS);
  const OwnedLt other(lt, opened);
  cublasLtMatmulHeuristicResult_t result;
  EXPECT_EQ(lt.cublasLtMatmulAlgoCheck(other.get(), desc.get(), square.get(), square.get(),
                                       square.get(), square.get(), &algorithm, &result),
            CUBLAS_STATUS_INVALID_VALUE);
}

} // namespace
} // namespace titan::cuda
