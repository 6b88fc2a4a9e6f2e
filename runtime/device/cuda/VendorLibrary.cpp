#include "runtime/device/cuda/VendorLibrary.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace titan::cuda {

std::string locateLibrary(const char* name) {
  const char* folders = std::getenv(librariesVariable);
  std::string_view rest = folders ? folders : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::filesystem::path path = std::filesystem::path(rest.substr(0, colon)) / name;
    std::error_code error;
    if (colon > 0 && std::filesystem::exists(path, error))
      return path.string();
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return name;
}

} // namespace titan::cuda
