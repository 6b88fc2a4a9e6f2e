// What this machine's CPU can do, in LLVM's names: a job's kernels need what the compiler's target
// had.
#pragma once

#include "runtime/program/Error.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

/// Does the CPU have `feature` ("avx512f"), and does the system save its registers? False for
/// unknown names.
bool hasCpuFeature(std::string_view feature);
/// All known features that this CPU has, sorted.
std::vector<std::string> cpuFeatures();
/// The CPU's marketing name: "AMD EPYC 9555 64-Core Processor".
std::string cpuModelName();
/// Environment, naming each of `required` that is missing. `target` is the CPU that the job was
/// compiled for.
Status checkCpuFeatures(std::span<const std::string> required, std::string_view target);

} // namespace titan
