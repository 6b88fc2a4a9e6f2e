// .npy, .npz and .safetensors files of any content. The first byte of the input picks the format.
#include "runtime/data/Array.h"

namespace {

/// Touches every byte that an array claims to have.
void touch(const titan::Array& array) {
  volatile char sum = 0;
  for (char byte : array.bytes)
    sum = static_cast<char>(sum + byte);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  if (size == 0)
    return 0;
  const std::span<const char> bytes(data + 1, size - 1);
  if (data[0] == 0) {
    if (const auto array = titan::parseNpy(bytes, "x"); array.ok())
      touch(*array);
    return 0;
  }
  const auto arrays = data[0] == 1 ? titan::parseNpz(bytes) : titan::parseSafetensors(bytes);
  if (arrays.ok())
    for (const titan::Array& array : *arrays)
      touch(array);
  return 0;
}
