// Serialized programs of any content: refused, or read back to the same bytes.
#include "runtime/program/Program.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  const std::string_view bytes(data, size);
  if (const auto program = titan::deserialize(bytes); program.ok()) {
    if (titan::serialize(*program) != bytes)
      std::abort();
    (void)titan::dump(*program);
  }
  return 0;
}
