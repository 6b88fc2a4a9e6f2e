// The part of cuBLASLt that a job uses, in declarations of our own, as DriverApi.h has them of the
// driver: LtApiTest compares names, values, sizes and signatures with cublasLt.h where that is
// found. One list has the entry points.
#pragma once

#include "runtime/device/cuda/DriverApi.h"

namespace titan::cuda {

using cublasLtHandle_t = struct cublasLtContext*;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque_t*;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque_t*;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque_t*;

#define TITAN_CUBLAS_STATUSES(X)                                                                   \
  X(CUBLAS_STATUS_SUCCESS, 0)                                                                      \
  X(CUBLAS_STATUS_NOT_INITIALIZED, 1)                                                              \
  X(CUBLAS_STATUS_ALLOC_FAILED, 3)                                                                 \
  X(CUBLAS_STATUS_INVALID_VALUE, 7)                                                                \
  X(CUBLAS_STATUS_ARCH_MISMATCH, 8)                                                                \
  X(CUBLAS_STATUS_MAPPING_ERROR, 11)                                                               \
  X(CUBLAS_STATUS_EXECUTION_FAILED, 13)                                                            \
  X(CUBLAS_STATUS_INTERNAL_ERROR, 14)                                                              \
  X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                               \
  X(CUBLAS_STATUS_LICENSE_ERROR, 16)

#define TITAN_CUBLAS_ENUMERATOR(name, value) name = value,

enum cublasStatus_t : int { TITAN_CUBLAS_STATUSES(TITAN_CUBLAS_ENUMERATOR) };

#define TITAN_CUBLAS_COMPUTE_TYPES(X)                                                              \
  X(CUBLAS_COMPUTE_32F, 68)                                                                        \
  X(CUBLAS_COMPUTE_32F_FAST_TF32, 77) /* of operands of f32 */
enum cublasComputeType_t : int { TITAN_CUBLAS_COMPUTE_TYPES(TITAN_CUBLAS_ENUMERATOR) };

#define TITAN_CUBLAS_OPERATIONS(X)                                                                 \
  X(CUBLAS_OP_N, 0)                                                                                \
  X(CUBLAS_OP_T, 1)
enum cublasOperation_t : int { TITAN_CUBLAS_OPERATIONS(TITAN_CUBLAS_ENUMERATOR) };

#define TITAN_CUDA_DATA_TYPES(X)                                                                   \
  X(CUDA_R_32F, 0)                                                                                 \
  X(CUDA_R_16BF, 14)
enum cudaDataType_t : int { TITAN_CUDA_DATA_TYPES(TITAN_CUBLAS_ENUMERATOR) };

/// With the type of the value that SetAttribute takes.
#define TITAN_CUBLASLT_DESC_ATTRIBUTES(X)                                                          \
  X(CUBLASLT_MATMUL_DESC_TRANSA, 3)       /* int32_t, cublasOperation_t */                         \
  X(CUBLASLT_MATMUL_DESC_TRANSB, 4)       /* likewise */                                           \
  X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)     /* uint32_t, cublasLtEpilogue_t */                       \
  X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8) /* const void*, on the card: one element a row of D */
enum cublasLtMatmulDescAttributes_t : int {
  TITAN_CUBLASLT_DESC_ATTRIBUTES(TITAN_CUBLAS_ENUMERATOR)
};

#define TITAN_CUBLASLT_LAYOUT_ATTRIBUTES(X)                                                        \
  X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)          /* int32_t */                                  \
  X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) /* int64_t, elements */
enum cublasLtMatrixLayoutAttribute_t : int {
  TITAN_CUBLASLT_LAYOUT_ATTRIBUTES(TITAN_CUBLAS_ENUMERATOR)
};

#define TITAN_CUBLASLT_PREFERENCE_ATTRIBUTES(X)                                                    \
  X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)   /* uint64_t */                                  \
  X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3) /* uint32_t */                                  \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5) /* uint32_t, as those below */                  \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                                                 \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                                                 \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)
enum cublasLtMatmulPreferenceAttributes_t : int {
  TITAN_CUBLASLT_PREFERENCE_ATTRIBUTES(TITAN_CUBLAS_ENUMERATOR)
};

/// Values of attributes.
#define TITAN_CUBLASLT_VALUES(X)                                                                   \
  X(CUBLASLT_EPILOGUE_DEFAULT, 1)                                                                  \
  X(CUBLASLT_EPILOGUE_BIAS, 4)                                                                     \
  X(CUBLASLT_REDUCTION_SCHEME_NONE, 0)                                                             \
  X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)
enum : uint32_t { TITAN_CUBLASLT_VALUES(TITAN_CUBLAS_ENUMERATOR) };

#undef TITAN_CUBLAS_ENUMERATOR

/// Opaque; may be stored and used again with the same version of the library on the same card.
struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

/// X(result, name as the library exports it, parameters). Matrices are column-major. A, B, C, D,
/// workspaces are on the card; alpha and beta on the host, f32.
#define TITAN_CUBLASLT_ENTRY_POINTS(X)                                                             \
  X(size_t, cublasLtGetVersion, (void)) /* 10000 major + 100 minor + patch */                      \
  X(const char*, cublasLtGetStatusName, (cublasStatus_t status))                                   \
  X(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle))                                   \
  X(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle))                                    \
  X(cublasStatus_t, cublasLtMatmulDescCreate,                                                      \
    (cublasLtMatmulDesc_t * desc, cublasComputeType_t compute, cudaDataType_t scale))              \
  X(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                        \
  X(cublasStatus_t, cublasLtMatmulDescSetAttribute,                                                \
    (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void* value,       \
     size_t bytes))                                                                                \
  X(cublasStatus_t, cublasLtMatrixLayoutCreate,                                                    \
    (cublasLtMatrixLayout_t * layout, cudaDataType_t type, uint64_t rows, uint64_t columns,        \
     int64_t leading))                                                                             \
  X(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                  \
  X(cublasStatus_t, cublasLtMatrixLayoutSetAttribute,                                              \
    (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value,  \
     size_t bytes))                                                                                \
  X(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))     \
  X(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))      \
  X(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,                                          \
    (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,        \
     const void* value, size_t bytes))                                                             \
  X(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,                                                \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,                 \
     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                 \
     cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* results,  \
     int* found))                                                                                  \
  X(cublasStatus_t, cublasLtMatmulAlgoCheck,                                                       \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,                 \
     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                 \
     const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result))              \
  X(cublasStatus_t, cublasLtMatmul,                                                                \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,         \
     cublasLtMatrixLayout_t aLayout, const void* b, cublasLtMatrixLayout_t bLayout,                \
     const void* beta, const void* c, cublasLtMatrixLayout_t cLayout, void* d,                     \
     cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,       \
     size_t workspaceBytes, CUstream stream))

} // namespace titan::cuda
