// The line before an entry that says what its parameters point to:
//
//   // titan: titan_kernel_3 operands(read 4096, read 512, write 4096, both 64) scalars(1)
#pragma once

#include "runtime/device/cuda/testing/ptx/Module.h"

namespace titan::ptx {

struct Declaration {
  std::string entry;
  std::vector<Window> windows;
  int64_t scalars = 0;
};

/// `text` is what stands behind the colon.
Result<Declaration> parseDeclaration(std::string_view text, uint32_t line);

} // namespace titan::ptx
