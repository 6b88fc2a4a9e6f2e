// CPUs as LLVM knows them: names, instruction sets, this machine.
#pragma once

#include "compiler/Support/TargetInfo.h"
#include "runtime/program/Error.h"

#include <string>
#include <string_view>
#include <vector>

namespace titan::codegen {

/// `arch` is `native` or one of LLVM's CPU names (x86-64-v3, x86-64-v4, znver5, ...), with the
/// machine model of its class; only `native` looks at this machine. Usage for an unknown one.
Result<TargetInfo> resolveCpu(std::string_view arch);
bool isCpu(std::string_view name);

/// The instruction sets that generated code may use, sorted, by LLVM's names ("avx512f"): what a
/// job's start-up check requires.
std::vector<std::string> requiredFeatures(const TargetInfo& target);
bool hasFeature(const TargetInfo& target, std::string_view feature);

} // namespace titan::codegen
