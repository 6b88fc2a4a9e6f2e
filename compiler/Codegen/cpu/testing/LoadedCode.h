// The machine code of an archive, loaded into this process.
#pragma once

#include "runtime/program/Error.h"
#include "runtime/program/Program.h"

#include <memory>
#include <string>

// Its header takes ten seconds to compile: no test needs it.
namespace llvm::orc {
class LLJIT;
}

namespace titan::codegen::testing {

class LoadedCode {
public:
  static Result<LoadedCode> load(const std::string& archive);

  Result<KernelFunction> kernel(const std::string& symbol) const;

private:
  explicit LoadedCode(std::shared_ptr<llvm::orc::LLJIT> jit) : jit_(std::move(jit)) {}

  std::shared_ptr<llvm::orc::LLJIT> jit_;
};

} // namespace titan::codegen::testing
