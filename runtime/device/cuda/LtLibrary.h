// cuBLASLt, loaded at run time: a job trains without it, by products of its own.
#pragma once

#include "runtime/device/cuda/LtApi.h"
#include "runtime/device/cuda/Owned.h"

#include <string>

namespace titan::cuda {

class LtLibrary {
public:
  static constexpr size_t oldestVersion = 130000;
  static constexpr const char* defaultName = "libcublasLt.so.13";

  /// Loads `name` from the first folder of TITAN_CUDA_LIBRARIES that has such a file, else as the
  /// loader finds it. Environment, with what was looked for and what there is, when it is missing,
  /// older than 13.0.0, or lacks an entry point.
  static Result<LtLibrary> load(const char* name = defaultName);

  /// "13.1.0"
  const std::string& version() const { return version_; }
  /// "CUBLAS_STATUS_NOT_SUPPORTED"
  std::string text(cublasStatus_t status) const;
  Status need(cublasStatus_t status, const char* entry) const;

#define TITAN_CUBLASLT_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  TITAN_CUBLASLT_ENTRY_POINTS(TITAN_CUBLASLT_MEMBER)
#undef TITAN_CUBLASLT_MEMBER

private:
  LtLibrary() = default;
  Status lookUpAll(void* library, const std::string& path);

  std::string version_;
};

using OwnedLt = OwnedOf<LtLibrary, cublasLtHandle_t, &LtLibrary::cublasLtDestroy>;
using OwnedLtDesc = OwnedOf<LtLibrary, cublasLtMatmulDesc_t, &LtLibrary::cublasLtMatmulDescDestroy>;
using OwnedLtLayout =
    OwnedOf<LtLibrary, cublasLtMatrixLayout_t, &LtLibrary::cublasLtMatrixLayoutDestroy>;
using OwnedLtPreference =
    OwnedOf<LtLibrary, cublasLtMatmulPreference_t, &LtLibrary::cublasLtMatmulPreferenceDestroy>;

} // namespace titan::cuda
