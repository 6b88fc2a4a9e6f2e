#include "compiler/Codegen/cuda/CudaArch.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/ranges.h>

#include <dlfcn.h>

namespace titan::codegen::cuda {
namespace {

constexpr const char* driverName = "libcuda.so.1";
// Of the CUDA driver API: cuda.h is not there where a driver is.
constexpr int noDevice = 100;                             // CUDA_ERROR_NO_DEVICE
constexpr int capabilityMajor = 75, capabilityMinor = 76; // CUdevice_attribute

struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*countCards)(int* count) = nullptr;
  int (*cardAt)(int* card, int number) = nullptr;
  int (*attributeOf)(int* value, int attribute, int card) = nullptr;

  explicit Driver(void* library) {
    load(library, "cuInit", init);
    load(library, "cuDeviceGetCount", countCards);
    load(library, "cuDeviceGet", cardAt);
    load(library, "cuDeviceGetAttribute", attributeOf);
  }
  bool isComplete() const { return init && countCards && cardAt && attributeOf; }

  /// "sm_90"; empty where the driver does not say.
  std::string archOf(int number) const {
    int card = 0, major = 0, minor = 0;
    const bool known = cardAt(&card, number) == 0 &&
                       attributeOf(&major, capabilityMajor, card) == 0 &&
                       attributeOf(&minor, capabilityMinor, card) == 0;
    return known ? fmt::format("sm_{}{}", major, minor) : "";
  }

private:
  template <typename Function>
  static void load(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }
};

Error refusal(const std::string& reason) {
  return Error::environment("--arch=native: {}: name one of {}", reason,
                            fmt::join(knownArchs(), ", "));
}

} // namespace

Result<std::vector<std::string>> nativeArchs() {
  void* library = dlopen(driverName, RTLD_NOW | RTLD_LOCAL); // stays loaded
  if (!library)
    return refusal(fmt::format("this machine has no driver ({})", driverName));
  const Driver driver(library);
  if (!driver.isComplete())
    return refusal(fmt::format("{} is no driver of cards", driverName));
  int count = 0;
  int error = driver.init(0);
  if (error == 0)
    error = driver.countCards(&count);
  if (error != 0 && error != noDevice)
    return refusal(fmt::format("the driver gives error {}", error));
  if (count == 0)
    return refusal("this machine has no card");
  std::vector<std::string> archs;
  for (int number = 0; number < count; ++number) {
    archs.push_back(driver.archOf(number));
    if (!llvm::is_contained(knownArchs(), std::string_view(archs.back())))
      return refusal(fmt::format("card {} is {}", number,
                                 archs.back().empty() ? "of no architecture" : archs.back()));
  }
  return archs;
}

} // namespace titan::codegen::cuda
