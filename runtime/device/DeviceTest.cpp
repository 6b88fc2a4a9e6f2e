// What every device promises (Device.h), on those that need no card; and what a late one shows.
#include "runtime/device/testing/LateDevice.h"
#include "runtime/device/testing/LinearRun.h"
#include "runtime/device/testing/NullDevice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace titan {
namespace {

using testing::LateDevice;
using testing::LinearRun;
using testing::NullDevice;

/// One function whose kernel doubles the i64 at byte 0 and puts the old value at byte 64.
struct Doubling {
  Program program;
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(2).take();
  std::vector<KernelFunction> kernels = {
      [](char* const* operands, const int64_t*, int64_t, int64_t) {
        auto* value = reinterpret_cast<int64_t*>(operands[0]);
        *reinterpret_cast<int64_t*>(operands[1]) = *value;
        *value *= 2;
      }};

  Doubling() {
    program.arenaBytes = 128;
    program.kernels.push_back({"double", "double"});
    Command command;
    command.operands = {{{0}, 8, Access::Both}, {{64}, 8, Access::Write}};
    Function function;
    function.name = "step";
    function.commands = {command};
    program.functions = {function};
  }
};

std::span<char> bytesOf(int64_t& value) { return {reinterpret_cast<char*>(&value), sizeof value}; }

using NamedMaker = std::pair<const char*, LinearRun::Maker>;

class DeviceContract : public ::testing::TestWithParam<NamedMaker> {
protected:
  Doubling table;
  std::unique_ptr<Device> device =
      GetParam().second(table.program, table.kernels, *table.pool).take();
};

TEST_P(DeviceContract, CallsTakeEffectInTheirOrder) {
  int64_t first = 3, second = 10, doubled = 0, old = 0, again = 0, filled = 0;
  ASSERT_TRUE(device->upload(0, bytesOf(first)).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  ASSERT_TRUE(device->download(0, bytesOf(doubled)).ok());
  ASSERT_TRUE(device->download(64, bytesOf(old)).ok());
  ASSERT_TRUE(device->upload(0, bytesOf(second)).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  ASSERT_TRUE(device->download(0, bytesOf(again)).ok());
  ASSERT_TRUE(device->fill(64, 8, 1).ok());
  ASSERT_TRUE(device->download(64, bytesOf(filled)).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(doubled, 6);
  EXPECT_EQ(old, 3);
  EXPECT_EQ(again, 40);
  EXPECT_EQ(filled, 0x0101010101010101);
}

TEST_P(DeviceContract, AnEventStandsForTheCallsBeforeIt) {
  int64_t value = 5, before = 0, after = 0;
  ASSERT_TRUE(device->upload(0, bytesOf(value)).ok());
  ASSERT_TRUE(device->download(0, bytesOf(before)).ok());
  const Device::Event event = device->record();
  ASSERT_TRUE(device->run(0, nullptr).ok());
  ASSERT_TRUE(device->download(0, bytesOf(after)).ok());
  ASSERT_TRUE(device->wait(event).ok());
  EXPECT_EQ(before, 5);
  value = 7; // its upload was waited for
  ASSERT_TRUE(device->wait(device->record()).ok());
  ASSERT_TRUE(device->wait(event).ok()); // once more is no mistake
  EXPECT_EQ(after, 10);
}

TEST_P(DeviceContract, HostBuffersAreZerosThatStay) {
  const std::span<char> buffer = device->hostBuffer(10'000).take();
  ASSERT_EQ(buffer.size(), 10'000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  EXPECT_EQ(std::ranges::count(buffer, 0), 10'000);
  buffer[0] = 21;
  const std::span<char> other = device->hostBuffer(8).take();
  EXPECT_EQ(device->hostBuffer(0).take().size(), 0u);
  ASSERT_TRUE(device->upload(0, buffer.first(8)).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  ASSERT_TRUE(device->download(0, other).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(other[0], 42);
  EXPECT_EQ(buffer[0], 21);
}

TEST_P(DeviceContract, AWindowShowsTheBytesOrIsEmpty) {
  int64_t value = 4;
  ASSERT_TRUE(device->upload(0, bytesOf(value)).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  const std::span<char> window = device->window(64, 8);
  if (std::string_view(GetParam().first) == "late") {
    EXPECT_TRUE(window.empty());
    return;
  }
  ASSERT_EQ(window.size(), 8u);
  EXPECT_EQ(window[0], 4);
  window[0] = 5;
  ASSERT_TRUE(device->download(64, bytesOf(value)).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(value, 5);
}

/// Changes the operand of the command that it sees.
class Meddler final : public CommandObserver {
public:
  explicit Meddler(Device& device) : device_(&device) {}
  void before(const Function&, uint32_t) override { ok = device_->fill(0, 8, 0).ok(); }
  void after(const Function&, uint32_t) override {
    ok = ok && device_->download(0, bytesOf(seen)).ok();
  }
  bool ok = false;
  int64_t seen = -1;

private:
  Device* device_;
};

TEST_P(DeviceContract, WhatAnObserverCallsTakesEffectAtItsCommand) {
  int64_t value = 9, old = -1;
  Meddler meddler(*device);
  ASSERT_TRUE(device->upload(0, bytesOf(value)).ok());
  ASSERT_TRUE(device->run(0, &meddler).ok());
  ASSERT_TRUE(device->download(64, bytesOf(old)).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_TRUE(meddler.ok);
  EXPECT_EQ(old, 0);
  EXPECT_EQ(meddler.seen, 0);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceContract,
                         ::testing::Values(NamedMaker("cpu", testing::makeCpuDevice),
                                           NamedMaker("late", testing::makeLateDevice)),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(LateDevice, DoesNothingBeforeItIsWaitedFor) {
  auto null = std::make_unique<NullDevice>(128);
  NullDevice& inner = *null;
  LateDevice late(std::move(null));
  int64_t sent = 1, read = 2;
  ASSERT_TRUE(late.upload(0, bytesOf(sent)).ok());
  ASSERT_TRUE(late.run(0, nullptr).ok());
  const Device::Event first = late.record();
  ASSERT_TRUE(late.fill(8, 8, 0).ok());
  ASSERT_TRUE(late.download(0, bytesOf(read)).ok());
  const Device::Event second = late.record();
  EXPECT_TRUE(inner.calls.empty());
  EXPECT_EQ(bytesOf(read)[0], LateDevice::garbage); // and not what stood there
  sent = 3;                                         // a mistake, and it shows
  ASSERT_TRUE(late.wait(first).ok());
  EXPECT_EQ(inner.calls, (std::vector<std::string>{"upload 0 8", "run 0"}));
  ASSERT_TRUE(late.wait(second).ok());
  EXPECT_EQ(inner.calls,
            (std::vector<std::string>{"upload 0 8", "run 0", "fill 8 8", "download 0 8"}));
  EXPECT_EQ(read, 3);
}

TEST(LateDevice, AnErrorComesOutAtTheWaitAndStays) {
  auto null = std::make_unique<NullDevice>(128);
  NullDevice& inner = *null;
  inner.failAt = 1;
  inner.error = Error::runFailed("'gemm [4, 8] : linear' of step failed");
  LateDevice late(std::move(null));
  int64_t value = 1;
  ASSERT_TRUE(late.upload(0, bytesOf(value)).ok());
  const Device::Event before = late.record();
  ASSERT_TRUE(late.run(0, nullptr).ok()); // not yet known
  ASSERT_TRUE(late.download(0, bytesOf(value)).ok());
  EXPECT_TRUE(late.wait(before).ok());
  for (int again = 0; again < 2; ++again) {
    const Status failed = late.wait(late.record());
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code(), ErrorCode::RunFailed);
    EXPECT_EQ(failed.error().message(), "'gemm [4, 8] : linear' of step failed");
  }
  EXPECT_FALSE(late.run(0, nullptr).ok());
  EXPECT_FALSE(late.upload(0, bytesOf(value)).ok());
  EXPECT_EQ(inner.calls.size(), 2u); // nothing ran behind the error
}

TEST(LateDevice, TrainsWithTheBitsOfTheCpu) {
  LinearRun cpu(2), late(2, testing::makeLateDevice);
  EXPECT_EQ(cpu.train(20), late.train(20));
  EXPECT_EQ(cpu.stateBytes(), late.stateBytes());
}

TEST(HostMemory, MoreThanTheMachineHasIsAnError) {
  const auto memory = HostMemory::create(int64_t{1} << 60);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code(), ErrorCode::Environment);
  EXPECT_EQ(memory.error().message(), "cannot reserve 1152921504606846976 bytes of host memory");
}

} // namespace
} // namespace titan
