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

/// Asks the kernel to let this process and the threads that it starts from now on use the registers
/// of AMX. 0, or errno: seccomp (EPERM), an old kernel (EINVAL), a signal stack that is too small
/// for these registers (ENOSPC).
int requestTileRegisters();
/// checkCpuFeatures, then requestTileRegisters where `required` has amx-tile: to be called before
/// the threads start. Environment, with the kernel's reason and an --arch that runs.
Status enableCpuFeatures(std::span<const std::string> required, std::string_view target);

} // namespace titan
