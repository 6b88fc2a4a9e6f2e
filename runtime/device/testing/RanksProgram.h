// A program for several ranks, made by hand, and what it must give: for tests of devices, and of
// what looks over their shoulder.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/device/Device.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/program/Program.h"

#include <functional>
#include <memory>
#include <vector>

namespace titan::testing {

/// "step" on a mesh [replicate, shard]: in each of `repeats` iterations i an all_reduce over both
/// axes of `elements` f32 and one i64, and behind them an all_gather over "shard" of one i64 a rank.
/// Rank (p, s) brings
///   f32 number j : 1 + p + 10 s + 100 i + j       i64 : p + 10 s + 100 i
/// and to the gather 7 s. Metrics: "sums" and "counts", added up over the iterations, and "gathered".
struct RanksShape {
  static constexpr int64_t elements = 1000, repeats = 3;
  static constexpr uint32_t allReduce = 0, allGather = 1; ///< in Program::collectives
};
Program ranksProgram(int64_t replicate, int64_t shard);
std::span<const KernelFunction> ranksKernels();

/// The CPU device of the rank that has `communicator`; `kernels` are those of `program`.
Result<std::unique_ptr<Device>> makeRanksDevice(const Program& program,
                                                std::span<const KernelFunction> kernels,
                                                ThreadPool& pool, Communicator& communicator);

/// What every rank has of the metrics.
std::vector<float> expectedSums(int64_t replicate, int64_t shard);
int64_t expectedCount(int64_t replicate, int64_t shard);
std::vector<int64_t> expectedGather(int64_t shard);

/// Runs body(communicator) for each of `ranks` ranks, on a thread of its own.
void onRanks(int64_t ranks, const std::function<void(Communicator&)>& body);

} // namespace titan::testing
