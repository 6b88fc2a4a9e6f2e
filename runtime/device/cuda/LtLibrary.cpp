#include "runtime/device/cuda/LtLibrary.h"

#include "runtime/device/cuda/VendorLibrary.h"

#include <dlfcn.h>

namespace titan::cuda {
namespace {

std::string textOfVersion(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

} // namespace

Result<LtLibrary> LtLibrary::load(const char* name) {
  const std::string path = locateLibrary(name);
  // Never unloaded: it has state of the process.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error::environment("cannot load cuBLASLt: {}: install CUDA 13's libcublas, or the wheel "
                              "nvidia-cublas, and name its folder in {}",
                              dlerror(), librariesVariable);
  LtLibrary loaded;
  // Before the other functions are looked for: an old library may lack some.
  if (void* version = dlsym(library, "cublasLtGetVersion")) {
    const size_t number = reinterpret_cast<size_t (*)()>(version)();
    loaded.version_ = textOfVersion(number);
    if (number < oldestVersion)
      return Error::environment("cuBLASLt ('{}') has version {}, and a job takes {} or later: "
                                "update it, or name another folder in {}",
                                path, loaded.version_, textOfVersion(oldestVersion),
                                librariesVariable);
  }
  TITAN_TRY(loaded.lookUpAll(library, path));
  return loaded;
}

Status LtLibrary::lookUpAll(void* library, const std::string& path) {
  const char* missing = nullptr;
#define TITAN_CUBLASLT_LOOK_UP(result, entry, parameters)                                          \
  entry = reinterpret_cast<result(*) parameters>(dlsym(library, #entry));                          \
  if (!entry && !missing)                                                                          \
    missing = #entry;
  TITAN_CUBLASLT_ENTRY_POINTS(TITAN_CUBLASLT_LOOK_UP)
#undef TITAN_CUBLASLT_LOOK_UP
  if (missing)
    return Error::environment("'{}' has no function {}: it is no cuBLASLt {} or later", path,
                              missing, textOfVersion(oldestVersion));
  return {};
}

std::string LtLibrary::text(cublasStatus_t status) const {
  const char* name = cublasLtGetStatusName(status);
  return name ? name : fmt::format("status {}", static_cast<int>(status));
}

Status LtLibrary::need(cublasStatus_t status, const char* entry) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return {};
  return Error::environment("cuBLASLt {} does not work here: {}: {}", version_, entry,
                            text(status));
}

} // namespace titan::cuda
