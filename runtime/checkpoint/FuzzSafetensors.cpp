// Header parser and piece assembly on arbitrary files: no crash, no overrun, no allocation beyond
// the input's size.
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/StoredTensors.h"
#include "runtime/checkpoint/testing/CrashEnv.h"

#include <cstdlib>

using namespace titan;
using namespace titan::checkpoint;

namespace {

/// The input as it is, and as the text of a header that has its right length: random lengths would
/// end nearly every run.
void parse(std::string_view bytes) {
  CrashEnv env;
  auto file = env.createFile("w.safetensors");
  if (!(*file)->append(bytes).ok())
    std::abort();
  StoredTensors tensors;
  if (!tensors.add(env, "w.safetensors", nullptr).ok() || !tensors.finish().ok())
    return;
  for (const auto& [name, tensor] : tensors.tensors()) {
    std::string whole(static_cast<size_t>(elementCount(tensor.shape) * byteSize(tensor.dtype)), 0);
    if (whole.size() > bytes.size())
      std::abort();
    if (!tensor.readInto(std::span<char>(whole)).ok())
      std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  parse(input);
  const size_t brace = input.rfind('}');
  const size_t header = brace == std::string_view::npos ? 0 : brace + 1;
  std::string framed;
  for (int i = 0; i < 8; ++i)
    framed.push_back(static_cast<char>(header >> (8 * i)));
  parse(framed.append(input));
  return 0;
}
