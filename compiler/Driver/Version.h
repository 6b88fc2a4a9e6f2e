// What `--version` and the job's `info` say about the compiler.
#pragma once

#include <string>

namespace titan {

/// "0.1.0 (LLVM 22.1.8)"
std::string compilerVersion();

/// The version and the build ids of this executable and of all libraries that it has loaded: two
/// builds that might generate different code differ in it.
std::string buildIdentity();

} // namespace titan
