// Programs with collectives on CPU devices that meet in one process.
#include "runtime/collective/Null.h"
#include "runtime/device/StateAccess.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/testing/RanksProgram.h"
#include "runtime/program/Ledger.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

using S = testing::RanksShape;

struct Mesh {
  int64_t replicate, shard;
  int64_t ranks() const { return replicate * shard; }
};
constexpr Mesh meshes[] = {{1, 2}, {2, 2}, {1, 3}};

/// Makes the device of one rank, with `threads` threads, and hands it to `body`.
void withDevice(const Program& program, Communicator& communicator, int threads,
                const std::function<void(CpuDevice&)>& body) {
  const auto pool = ThreadPool::create(threads).take();
  auto device = CpuDevice::create(program, testing::ranksKernels(), *pool, {},
                                  {&communicator, communicator.rank()});
  ASSERT_TRUE(device.ok()) << device.error().message();
  body(**device);
}

template <typename T>
std::vector<T> metric(const Program& program, CpuDevice& device, std::string_view name) {
  for (const Binding& binding : program.functions[0].bindings)
    if (binding.name == name) {
      const std::span<char> bytes = device.window(binding.offset, binding.bytes);
      const T* values = reinterpret_cast<const T*>(bytes.data());
      return {values, values + bytes.size() / sizeof(T)};
    }
  return {};
}

TEST(CpuRanks, EveryRankHasTheSumsAndTheWhole) {
  for (const Mesh mesh : meshes) {
    const Program program = testing::ranksProgram(mesh.replicate, mesh.shard);
    testing::onRanks(mesh.ranks(), [&](Communicator& communicator) {
      withDevice(program, communicator, 1 + communicator.rank() % 2, [&](CpuDevice& device) {
        for (int run = 0; run < 3; ++run)
          ASSERT_TRUE(device.run(0, nullptr).ok());
        EXPECT_EQ(metric<float>(program, device, "sums"),
                  testing::expectedSums(mesh.replicate, mesh.shard));
        EXPECT_EQ(metric<int64_t>(program, device, "counts"),
                  std::vector{testing::expectedCount(mesh.replicate, mesh.shard)});
        EXPECT_EQ(metric<int64_t>(program, device, "gathered"),
                  testing::expectedGather(mesh.shard));
      });
    });
  }
}

TEST(CpuRanks, FormsArePlanAreCounted) {
  for (const Mesh mesh : meshes) {
    const Program program = testing::ranksProgram(mesh.replicate, mesh.shard);
    // An all_reduce brings all that it sums, a gather its part.
    const int64_t r = mesh.ranks(), n = S::repeats * (4 * S::elements + 8);
    const int64_t gathered = 8 * mesh.shard;
    const std::vector<LedgerRow> ledger = ledgerOf(program);
    ASSERT_EQ(ledger.size(), 2u);
    EXPECT_EQ(ledger[0].count, S::repeats);
    EXPECT_EQ(ledger[0].payload, n);
    EXPECT_EQ(ledger[0].wire, S::repeats * ((2 * (r - 1) * (4 * S::elements + 8) + r - 1) / r));
    EXPECT_EQ(ledger[1].count, 1);
    EXPECT_EQ(ledger[1].payload, 8);
    EXPECT_EQ(ledger[1].wire, 8 * (mesh.shard - 1));
    constexpr int64_t runs = 2;
    std::vector<std::vector<Traffic>> counted(static_cast<size_t>(r));
    testing::onRanks(r, [&](Communicator& communicator) {
      withDevice(program, communicator, 1, [&](CpuDevice& device) {
        for (int run = 0; run < runs; ++run)
          ASSERT_TRUE(device.run(0, nullptr).ok());
        const std::span<const Traffic> traffic = communicator.traffic();
        counted[static_cast<size_t>(communicator.rank())].assign(traffic.begin(), traffic.end());
      });
    });
    int64_t reduceMoved = 0, gatherMoved = 0;
    for (const std::vector<Traffic>& rank : counted) {
      for (const LedgerRow& row : ledger) {
        EXPECT_EQ(rank[row.collectives.front()].executions, runs * row.count);
        EXPECT_EQ(rank[row.collectives.front()].payload, runs * row.payload);
      }
      reduceMoved += rank[S::allReduce].moved;
      gatherMoved += rank[S::allGather].moved;
    }
    EXPECT_EQ(reduceMoved, runs * 2 * (r - 1) * n) << r << " ranks";
    EXPECT_EQ(gatherMoved, runs * mesh.replicate * (mesh.shard - 1) * gathered);
  }
}

TEST(CpuRanks, ACollectiveThatFailsEndsTheRunWithItsError) {
  const Program program = testing::ranksProgram(1, 2);
  testing::onRanks(2, [&](Communicator& communicator) {
    withDevice(program, communicator, 1, [&](CpuDevice& device) {
      if (communicator.rank() == 1)
        return communicator.fail(Error::runFailed("the disk is gone"));
      const Status status = device.run(0, nullptr);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code(), ErrorCode::RunFailed);
      EXPECT_NE(status.error().message().find("the disk is gone"), std::string::npos)
          << status.error().message();
    });
  });
}

TEST(CpuRanks, ObserversSeeStartsAndWaits) {
  struct Counter final : CommandObserver {
    int before_ = 0, after_ = 0;
    void before(const Function& function, uint32_t command) override {
      before_ += function.commands[command].kind == CommandKind::CollectiveStart;
    }
    void after(const Function& function, uint32_t command) override {
      after_ += function.commands[command].kind == CommandKind::CollectiveWait;
    }
  };
  const Program program = testing::ranksProgram(2, 2);
  testing::onRanks(4, [&](Communicator& communicator) {
    withDevice(program, communicator, 1, [&](CpuDevice& device) {
      Counter counter;
      ASSERT_TRUE(device.run(0, &counter).ok());
      EXPECT_EQ(counter.before_, S::repeats + 1);
      EXPECT_EQ(counter.after_, S::repeats + 1);
      EXPECT_EQ(metric<float>(program, device, "sums"), testing::expectedSums(2, 2));
    });
  });
}

TEST(CpuRanks, NoPeersStillHaveCoordinates) {
  const Program program = testing::ranksProgram(2, 2);
  const std::unique_ptr<Communicator> alone = connectNull(3, 4);
  withDevice(program, *alone, 1, [&](CpuDevice& device) {
    ASSERT_TRUE(device.run(0, nullptr).ok());
    const int64_t source = *reinterpret_cast<const int64_t*>(
        device.window(program.functions[0].commands[1].operands[1].address.base, 8).data());
    EXPECT_EQ(source, 1 + 10 + 200) << "of rank (1, 1) in the last iteration";
  });
}

std::string refusal(const Program& program, const RankPlace& place) {
  const auto pool = ThreadPool::create(1).take();
  const auto device = CpuDevice::create(program, testing::ranksKernels(), *pool, {}, place);
  return device.ok() ? "" : device.error().message();
}

TEST(CpuRanks, ADeviceNeedsTheCommunicatorOfItsRank) {
  const Program program = testing::ranksProgram(1, 2);
  EXPECT_EQ(refusal(program, {}),
            "the program exchanges with 2 ranks, its device has no communicator");
  const std::unique_ptr<Communicator> three = connectNull(1, 3), two = connectNull(1, 2);
  EXPECT_EQ(refusal(program, {three.get(), 1}),
            "the program is for 2 ranks, its device is rank 1 with a communicator of rank 1 of 3");
  EXPECT_EQ(refusal(program, {two.get(), 0}),
            "the program is for 2 ranks, its device is rank 0 with a communicator of rank 1 of 2");
  EXPECT_EQ(refusal(program, {two.get(), 1}), "");
}

} // namespace
} // namespace titan
