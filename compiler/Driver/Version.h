// What `--version` and the job's `info` say about the compiler.
#pragma once

#include <string>

namespace titan {

/// "0.1.0 (LLVM 22.1.8)"
std::string compilerVersion();

} // namespace titan
