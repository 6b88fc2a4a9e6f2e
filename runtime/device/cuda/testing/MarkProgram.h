// A kernel that marks what it runs on, commands of kernels, and what a call says.
#pragma once

#include "runtime/device/cuda/testing/LinearPtx.h"

#include <string>

namespace titan::testing {

/// Adds a scalar to the u64 that its operand points to.
inline std::string markPtx() {
  return ptxHeader() + ptxEntry("mark", "both 8", 1, 1,
                                "  ld.global.u64 %d0, [%p0];\n  add.s64 %d0, %d0, %p1;\n"
                                "  st.global.u64 [%p0], %d0;\n");
}

/// Runs kernel `kernel` on `bytes` bytes.
inline Command kernelCommand(uint32_t kernel, int64_t offset = 0, int64_t bytes = 4) {
  Command command;
  command.target = kernel;
  command.operands = {{{offset}, bytes, Access::Both}};
  return command;
}

/// "exit 3: ..."; empty: it succeeded.
inline std::string textOf(const Status& status) {
  return status.ok()
             ? std::string()
             : fmt::format("exit {}: {}", status.error().exitCode(), status.error().message());
}

} // namespace titan::testing
