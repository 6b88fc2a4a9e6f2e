// CPUs as LLVM knows them: names, instruction sets, this machine.
#pragma once

#include "compiler/Support/TargetInfo.h"
#include "runtime/program/Error.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class MCSubtargetInfo;
} // namespace llvm

namespace titan::codegen {

/// Makes LLVM's code generator known to LLVM. What is declared below does so by itself.
void registerCpus();

/// `arch` is `native` or one of LLVM's CPU names (x86-64-v3, x86-64-v4, znver5, ...), with the
/// machine model of its class; only `native` looks at this machine. Usage for an unknown one.
Result<TargetInfo> resolveCpu(std::string_view arch);
bool isCpu(std::string_view name);
/// The first of `features`, "+avx2,-sse4a", that is not of this form or that no CPU has; empty: none.
std::string unknownFeature(std::string_view features);

/// The instruction sets of a target, by LLVM's names ("avx512f"). Making one reads LLVM's tables:
/// whoever has several questions keeps it.
class CpuFeatures {
public:
  explicit CpuFeatures(const TargetInfo& target);
  ~CpuFeatures();

  bool has(std::string_view feature) const;
  /// Those that generated code may use, sorted: what a job's start-up check requires.
  std::vector<std::string> required() const;

private:
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
};

} // namespace titan::codegen
