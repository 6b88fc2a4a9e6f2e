#include "runtime/device/cuda/Driver.h"

#include "runtime/device/cuda/Results.h"

#include <cstdlib>

#include <dlfcn.h>

namespace titan::cuda {
namespace {

constexpr const char* libraryName = "libcuda.so.1";

} // namespace

template <typename... Parameters> bool Entry<CUresult(Parameters...)>::lookUp(void* library) {
  function_ = reinterpret_cast<CUresult (*)(Parameters...)>(dlsym(library, name_));
  return function_ != nullptr;
}

std::string versionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string visibleDevices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", visible) : std::string();
}

Result<Driver> Driver::load() {
  // Never unloaded: it has threads, and state of the process.
  void* library = dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error::environment("cannot load the CUDA driver: {}: install NVIDIA's driver for CUDA "
                              "{} or later, or compile the job with --target=cpu",
                              dlerror(), versionText(oldestVersion));
  Driver driver;
  // Before the other functions are looked for: an old driver may lack some. Texts of errors are
  // among them, so initialize() is the one that complains of this call.
  if (driver.cuDriverGetVersion.lookUp(library))
    TITAN_TRY(driver.checkVersion());
  TITAN_TRY(driver.lookUpAll(library));
  TITAN_TRY(driver.initialize());
  return driver;
}

Status Driver::checkVersion() const {
  int version = 0;
  if (cuDriverGetVersion(&version).ok() && version < oldestVersion)
    return Error::environment("the driver ({}) serves CUDA {}, and a job needs {} or later: update "
                              "the driver, or compile the job with --target=cpu",
                              libraryName, versionText(version), versionText(oldestVersion));
  return {};
}

Status Driver::lookUpAll(void* library) {
  const char* missing = nullptr;
#define TITAN_CUDA_LOOK_UP(name, parameters)                                                       \
  if (!missing && !name.lookUp(library))                                                           \
    missing = #name;
  TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_LOOK_UP)
#undef TITAN_CUDA_LOOK_UP
  if (missing)
    return Error::environment("{} has no function {}: it is no driver for CUDA {} or later",
                              libraryName, missing, versionText(oldestVersion));
  return {};
}

Status Driver::initialize() {
  Answer answer = cuDriverGetVersion(&version_);
  if (answer.ok())
    answer = cuInit(0);
  if (answer.result == CUDA_ERROR_STUB_LIBRARY)
    return Error::environment("the {} that was found is a toolkit's stand-in for linking, no "
                              "driver: take its folder out of LD_LIBRARY_PATH",
                              libraryName);
  if (answer.result == CUDA_ERROR_NO_DEVICE)
    return Error::environment("the driver (CUDA {}) finds no card{}", versionText(version_),
                              visibleDevices());
  if (!answer.ok())
    return Error::environment("the driver ({}) does not start: {}: does nvidia-smi work?",
                              libraryName, text(answer));
  return {};
}

std::string Driver::text(Answer answer) const {
  const char *name = nullptr, *meaning = nullptr;
  if (!cuGetErrorName(answer.result, &name).ok() || !name)
    return fmt::format("{}: error {}", answer.entry, static_cast<int>(answer.result));
  if (!cuGetErrorString(answer.result, &meaning).ok() || !meaning)
    return fmt::format("{}: {}", answer.entry, name);
  return fmt::format("{}: {} ({})", answer.entry, name, meaning);
}

Error Driver::error(Answer answer, const std::string& what) const {
  const ErrorCode code = isFault(answer.result) || isMisuse(answer.result) ? ErrorCode::Internal
                         : isLoss(answer.result)                           ? ErrorCode::RunFailed
                                                                           : ErrorCode::Environment;
  return {code, fmt::format("{} failed: {}", what, text(answer))};
}

} // namespace titan::cuda
