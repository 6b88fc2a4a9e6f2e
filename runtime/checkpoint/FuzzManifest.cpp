// The manifest's parser on arbitrary text, as it is and under a right digest; what it accepts, of
// either version, survives a round trip, and its rows have a place in a checkpoint.
#include "runtime/checkpoint/Folders.h"
#include "runtime/checkpoint/Manifest.h"

#include <cstdint>
#include <cstdlib>

using namespace titan::checkpoint;

namespace {

/// What a seed's own digest is of: a mutation of it gets as far as the fields then.
std::string withoutSeal(std::string_view text) {
  const size_t seal = text.rfind(",\n  \"xxh3_128\"");
  return seal == std::string_view::npos ? std::string(text)
                                        : std::string(text.substr(0, seal)) + "\n}";
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  (void)parseManifest(input).ok();
  const std::string sealed = sealManifest(withoutSeal(input));
  auto manifest = parseManifest(sealed);
  if (!manifest.ok())
    return 0;
  const auto version = manifestVersion(sealed);
  if (!version.ok() || !isKnownVersion(*version) || !byFolder(manifest->program.table).ok())
    std::abort();
  auto again = parseManifest(toJson(*manifest));
  if (!again.ok() || *again != *manifest)
    std::abort();
  return 0;
}
