#include "compiler/Driver/Version.h"

#include "llvm/Config/llvm-config.h"

namespace titan {

std::string compilerVersion() { return TITAN_VERSION " (LLVM " LLVM_VERSION_STRING ")"; }

} // namespace titan
