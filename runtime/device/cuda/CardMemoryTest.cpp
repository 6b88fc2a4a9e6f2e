// An arena in several allocations, some of them in the host's memory.
#include "runtime/device/cuda/CardMemory.h"

#include "runtime/device/cuda/testing/CudaRun.h"
#include "runtime/program/HostStates.h"
#include "runtime/program/Recipe.h"

#include <cstdlib>

namespace titan {
namespace {

using testing::CudaRun;
using testing::FakeVariable;
using testing::LinearRun;
using testing::Record;

/// The linear program, whose momentum is called an average and lies in the host's memory.
Program hostProgram() {
  Program program = testing::linearCudaProgram();
  for (State& state : program.states)
    if (state.kind == StateKind::Slot)
      state.kind = StateKind::Ema, state.profile = "slow";
  Recipe recipe = parseRecipeJson(program.recipe).take();
  recipe.ema.device = "host";
  program.recipe = toJson(recipe);
  return program;
}

struct HostRun : LinearRun {
  HostRun() : LinearRun(1, testing::makeCudaDevice, hostProgram()) {}
};

/// Sizes of what `entry` allocated: "cuMemAlloc_v2".
std::vector<int64_t> allocated(const Record& record, const std::string& entry) {
  std::vector<int64_t> sizes;
  for (const std::string& line : record.lines())
    if (line.starts_with(entry + "("))
      sizes.push_back(std::strtoll(line.c_str() + entry.size() + 1, nullptr, 10));
  return sizes;
}

TEST(CardMemory, StatesInTheHostsMemoryHaveTheBitsOfTheCards) {
  CudaRun card;
  const std::vector<float> losses = card.train(20);
  for (const char* seed : {"0", "1", "2"}) {
    const FakeVariable variable("SEED", seed);
    HostRun host;
    EXPECT_EQ(host.train(20), losses);
    EXPECT_EQ(host.stateBytes(), card.stateBytes());
  }
}

TEST(CardMemory, WhatLiesOnTheHostIsNotTheCards) {
  const Record record;
  const HostRun host;
  const int64_t onHost = hostBytes(host.program);
  ASSERT_GT(onHost, 0);
  const std::vector<int64_t> card = allocated(record, "cuMemAlloc_v2");
  ASSERT_EQ(card.size(), 3u) << "before and behind the averages, and staged batches";
  EXPECT_EQ(card[0] + card[1], host.device->bytes() - onHost);
  int64_t mapped = 0;
  for (const std::string& line : record.lines())
    if (line.starts_with("cuMemHostAlloc(") && line.ends_with(", 2) = CUDA_SUCCESS"))
      mapped += std::strtoll(line.c_str() + 15, nullptr, 10);
  EXPECT_EQ(mapped, onHost);
}

TEST(CardMemory, TransfersGoAcrossAllocations) {
  HostRun run;
  run.train(2);
  const State& last = run.program.states.back();
  const int64_t bytes = last.offset + last.bytes;
  const std::span<char> read = run.device->hostBuffer(bytes).take();
  ASSERT_TRUE(run.device->download(0, read).ok());
  ASSERT_TRUE(run.access->settle().ok());
  for (const State& state : run.program.states)
    EXPECT_EQ(std::string(read.data() + state.offset, static_cast<size_t>(state.bytes)),
              run.bytesOfState(state))
        << state.name;
  const std::span<char> written = run.device->hostBuffer(bytes).take();
  for (size_t i = 0; i < written.size(); ++i)
    written[i] = static_cast<char>(i * 31 + i / 251);
  ASSERT_TRUE(run.device->upload(0, written).ok());
  ASSERT_TRUE(run.device->fill(8, 8, 'x').ok());
  ASSERT_TRUE(run.device->download(0, read).ok());
  ASSERT_TRUE(run.access->settle().ok());
  std::fill_n(written.begin() + 8, 8, 'x');
  EXPECT_TRUE(std::ranges::equal(read, written));
}

TEST(CardMemory, ASplitArenaHasThemToo) {
  const auto stateAfter5 = [] {
    HostRun run;
    run.train(5);
    return run.stateBytes();
  };
  const std::string whole = stateAfter5();
  const Record record;
  setenv(cuda::CardMemory::splitVariable, "1", 1);
  const std::string split = stateAfter5();
  unsetenv(cuda::CardMemory::splitVariable);
  EXPECT_EQ(split, whole);
  EXPECT_GT(record.count("cuMemHostGetDevicePointer_v2"), 0);
}

TEST(CardMemory, MissingHostMemoryIsNamed) {
  for (const auto& [call, text] :
       {std::pair{"cuMemHostAlloc:1:2", " of pinned host memory, and "},
        std::pair{"cuMemHostAlloc:1:999", "reserving pinned host memory for averages failed: "}}) {
    const FakeVariable fail("FAIL", call);
    const Program program = hostProgram();
    const auto device = CudaDevice::create(program, testing::linearCudaPayload());
    ASSERT_FALSE(device.ok());
    EXPECT_NE(device.error().message().find(text), std::string::npos) << device.error().message();
  }
}

} // namespace
} // namespace titan
