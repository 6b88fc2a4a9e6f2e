// The manifest's parser on arbitrary text, as it is and under a right digest; what it accepts
// survives a round trip.
#include "runtime/checkpoint/Manifest.h"

#include <cstdint>
#include <cstdlib>

using namespace titan::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  (void)parseManifest(input).ok();
  auto manifest = parseManifest(sealManifest(input));
  if (!manifest.ok())
    return 0;
  auto again = parseManifest(toJson(*manifest));
  if (!again.ok() || *again != *manifest)
    std::abort();
  return 0;
}
