// cuBLASLt without a card: libcublasLt.so.13 for tests, with the functions of LtApi.h and no other.
//
// It has four algorithms for every product. Each sums in another order, so their bits differ, and
// those of algorithm i > 0 need i KiB of workspace. What the vendor documents is enforced: which
// types go together, leading dimensions, alignments as they were promised to the heuristic, a
// workspace that is large enough. TITAN_FAKE_CUBLASLT_... make algorithms misbehave
// (FakeLtSettings.h). Work goes into the streams of the tests' driver, and into its graphs.
#include "runtime/device/cuda/testing/FakeLtSettings.h"
#include "runtime/device/cuda/testing/FakeProduct.h"
#include "runtime/device/cuda/testing/FakeWork.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <type_traits>

using namespace titan;
using namespace titan::cuda;
using namespace titan::cuda::testing;

namespace titan::cuda {

struct cublasLtContext {
  FakeLtSettings settings;
  std::set<uint64_t> loaded; ///< products and algorithms that ran once
  std::array<int64_t, FakeLtSettings::algorithms> runs{};
};

struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  CUdeviceptr bias = 0;
};

struct cublasLtMatrixLayoutOpaque_t {
  FakeLayout layout;
};

struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256}; ///< A, B, C, D
};

} // namespace titan::cuda

namespace {

constexpr uint64_t magic = 0x7469'7461'6e4c'7431;
constexpr int64_t workspaceUnit = 1024;

/// In the 64 bytes.
struct Algorithm {
  uint64_t magic, version, number, workspace, product;
  std::array<uint32_t, 4> alignments;
  uint64_t biasAlignment; ///< of the pointer that the heuristic saw
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Algorithm read(const cublasLtMatmulAlgo_t& bytes) {
  Algorithm algorithm;
  std::memcpy(&algorithm, &bytes, sizeof algorithm);
  return algorithm;
}

template <typename T> cublasStatus_t set(T& member, const void* value, size_t bytes) {
  if (!value || bytes != sizeof member)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

FakeLtSettings settings() {
  Result<FakeLtSettings> read = FakeLtSettings::read();
  if (!read.ok()) {
    std::fprintf(stderr, "fake cuBLASLt: %s\n", read.error().message().c_str());
    std::_Exit(read.error().exitCode());
  }
  return read.take();
}

/// Extents of a product.
struct Extents {
  int64_t m, n, k;
};

/// What the vendor documents of types, shapes and leading dimensions.
cublasStatus_t check(cublasLtMatmulDesc_t desc, const FakeLayout& a, const FakeLayout& b,
                     const FakeLayout& c, const FakeLayout& d, Extents& extents) {
  const bool ta = desc->transposeA == CUBLAS_OP_T, tb = desc->transposeB == CUBLAS_OP_T;
  extents = {ta ? a.columns : a.rows, tb ? b.rows : b.columns, ta ? a.rows : a.columns};
  const int64_t depth = tb ? b.columns : b.rows;
  for (const FakeLayout* layout : {&a, &b, &c, &d})
    if (layout->rows < 1 || layout->columns < 1 || layout->leading < layout->rows ||
        layout->batch != d.batch)
      return CUBLAS_STATUS_INVALID_VALUE;
  if (depth != extents.k || d.rows != extents.m || d.columns != extents.n || c.rows != extents.m ||
      c.columns != extents.n)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool computes = desc->compute == CUBLAS_COMPUTE_32F ||
                        (desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a.type == CUDA_R_32F);
  const bool known = computes && desc->scale == CUDA_R_32F && a.type == b.type &&
                     c.type == d.type && (d.type == CUDA_R_32F || d.type == a.type);
  return known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/// Tells products apart.
uint64_t identityOf(cublasLtMatmulDesc_t desc, const FakeLayout& a, const FakeLayout& b,
                    const FakeLayout& d) {
  uint64_t identity = magic;
  const auto take = [&](auto value) {
    identity = (identity ^ static_cast<uint64_t>(value)) * 1099511628211u;
  };
  for (const FakeLayout* layout : {&a, &b, &d})
    take(layout->type), take(layout->rows), take(layout->columns), take(layout->leading),
        take(layout->batch), take(layout->stride);
  take(desc->compute), take(desc->transposeA), take(desc->transposeB), take(desc->epilogue);
  return identity;
}

bool isAligned(CUdeviceptr address, uint64_t to) { return address % to == 0; }

} // namespace

#pragma GCC visibility push(default)
extern "C" {

size_t cublasLtGetVersion(void) { return settings().version; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
#define TITAN_CUBLAS_NAME(name, value)                                                             \
  case name:                                                                                       \
    return #name;
    TITAN_CUBLAS_STATUSES(TITAN_CUBLAS_NAME)
#undef TITAN_CUBLAS_NAME
  }
  return nullptr;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const FakeLtSettings read = settings();
  if (read.start != 0)
    return static_cast<cublasStatus_t>(read.start);
  *handle = new cublasLtContext{read, {}, {}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new cublasLtMatmulDescOpaque_t{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(desc->transposeA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(desc->transposeB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(desc->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(desc->bias, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t{
      {type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return set(layout->layout.batch, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return set(layout->layout.stride, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(preference->workspace, value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return set(preference->reductions, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return set(preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
               value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  Extents extents = {};
  *found = 0;
  if (const cublasStatus_t status =
          check(desc, a->layout, b->layout, c->layout, d->layout, extents);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  const bool hasBias = desc->epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (handle->settings.knowsNothing || (hasBias && !desc->bias) ||
      (preference->reductions & ~uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int number = 0; number < FakeLtSettings::algorithms && *found < wanted; ++number) {
    const bool greedy = handle->settings.greedy.has(number);
    const uint64_t workspace =
        greedy ? preference->workspace + 1 : static_cast<uint64_t>(number * workspaceUnit);
    if (!greedy && workspace > preference->workspace)
      continue;
    const Algorithm algorithm = {magic,
                                 handle->settings.version,
                                 static_cast<uint64_t>(number),
                                 workspace,
                                 identityOf(desc, a->layout, b->layout, d->layout),
                                 preference->alignments,
                                 hasBias ? desc->bias & -desc->bias : 0};
    cublasLtMatmulHeuristicResult_t& result = results[(*found)++];
    result = {};
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = workspace;
  }
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* bytes,
                                       cublasLtMatmulHeuristicResult_t* result) {
  Extents extents = {};
  if (const cublasStatus_t status =
          check(desc, a->layout, b->layout, c->layout, d->layout, extents);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  const Algorithm algorithm = read(*bytes);
  if (algorithm.magic != magic || algorithm.version != handle->settings.version ||
      algorithm.number >= FakeLtSettings::algorithms ||
      algorithm.product != identityOf(desc, a->layout, b->layout, d->layout))
    return CUBLAS_STATUS_INVALID_VALUE;
  *result = {};
  result->algo = *bytes;
  result->workspaceSize = algorithm.workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t aLayout, const void* b,
                              cublasLtMatrixLayout_t bLayout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t cLayout, void* d,
                              cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t* bytes,
                              void* workspace, size_t workspaceBytes, CUstream stream) {
  cublasLtMatmulHeuristicResult_t checked;
  if (const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, desc, aLayout, bLayout, cLayout,
                                                            dLayout, bytes, &checked);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  const Algorithm algorithm = read(*bytes);
  const auto number = static_cast<int>(algorithm.number);
  const FakeLtSettings& settings = handle->settings;
  if (settings.refusing.has(number))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto address = [](const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
  const float scale = *static_cast<const float*>(alpha), added = *static_cast<const float*>(beta);
  constexpr uint64_t workspaceAlignment = 16;
  if (c != d || scale != 1 || (added != 0 && added != 1) || algorithm.workspace > workspaceBytes ||
      (workspaceBytes > 0 && !isAligned(address(workspace), workspaceAlignment)) ||
      !isAligned(address(a), algorithm.alignments[0]) ||
      !isAligned(address(b), algorithm.alignments[1]) ||
      !isAligned(address(c), algorithm.alignments[2]) ||
      !isAligned(address(d), algorithm.alignments[3]))
    return CUBLAS_STATUS_INVALID_VALUE;

  FakeProduct product;
  product.a = aLayout->layout, product.b = bLayout->layout, product.d = dLayout->layout;
  product.transposeA = desc->transposeA == CUBLAS_OP_T;
  product.transposeB = desc->transposeB == CUBLAS_OP_T;
  product.accumulate = added == 1;
  product.aAddress = address(a), product.bAddress = address(b), product.dAddress = address(d);
  if (desc->epilogue == CUBLASLT_EPILOGUE_BIAS) {
    if (!desc->bias || !isAligned(desc->bias, algorithm.biasAlignment))
      return CUBLAS_STATUS_INVALID_VALUE;
    product.biasAddress = desc->bias;
  }
  product.workspace = address(workspace);
  product.workspaceBytes =
      static_cast<int64_t>(settings.careless.has(number) ? workspaceBytes : algorithm.workspace);
  product.parts = number + 1;
  product.misrounds = settings.misrounding.has(number);
  product.coarse = desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32 || settings.coarse.has(number);
  product.careless = settings.careless.has(number);
  product.flips =
      settings.varying.has(number) && ++handle->runs[static_cast<size_t>(number)] % 2 == 0;
  const FakeWork work = {fmt::format("cublasLtMatmul algorithm {}", number),
                         [product](ptx::Memory& memory) { return product.run(memory); },
                         handle->loaded.insert(algorithm.product + algorithm.number).second};
  return titanFakeEnqueue(stream, &work) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                         : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // extern "C"
#pragma GCC visibility pop

// Each entry point of the list is there, with its signature.
#define TITAN_CUBLASLT_CHECK(result, name, parameters)                                             \
  static_assert(std::is_same_v<decltype(&::name), result(*) parameters>);
TITAN_CUBLASLT_ENTRY_POINTS(TITAN_CUBLASLT_CHECK)
