// One run of a program on every rank of its mesh, on CPU devices that meet in this process.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/program/Program.h"

#include <span>
#include <string>
#include <vector>

namespace titan::testing {

/// What a rank has after a run.
struct RankRun {
  std::string arena;            ///< Program::arenaBytes
  std::vector<Traffic> traffic; ///< by collective
};

/// Runs Program::functions[function] on all ranks at once, each with `threads` threads; the arena
/// of rank r begins as arenas[r].
/// `kernels` has one function per Program::kernels. The first rank's error where one fails.
Result<std::vector<RankRun>> runOnCpus(const Program& program,
                                       std::span<const KernelFunction> kernels, uint32_t function,
                                       std::span<const std::string> arenas, int threads = 1);

} // namespace titan::testing
