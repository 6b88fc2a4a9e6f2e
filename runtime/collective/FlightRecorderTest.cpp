#include "runtime/collective/FlightRecorder.h"

#include "runtime/collective/testing/RunRanks.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(FlightRecorder, KeepsTheLastCollectives) {
  const Mapping memory = Mapping::anonymous(ControlBlock::bytesFor(2)).take();
  const ControlBlock block = ControlBlock::initialize(memory.data(), 2, false);
  EXPECT_TRUE(flightsOf(block, 1).empty());
  RankSlot& slot = block.slot(1);
  for (uint64_t number = 0; number < 70; ++number) {
    FlightRecord& record = slot.recorder[number % RankSlot::records];
    record.collective = static_cast<uint32_t>(number % 3);
    record.step = static_cast<int64_t>(number / 10);
    record.name.store(FixedText(fmt::format("all_reduce of {}", number)));
    record.started = static_cast<int64_t>(number + 1);
    slot.recorded = number + 1;
  }
  const std::vector<Flight> flights = flightsOf(block, 1);
  ASSERT_EQ(flights.size(), RankSlot::records);
  EXPECT_EQ(flights.front().number, 6u);
  EXPECT_EQ(flights.front().name, "all_reduce of 6");
  EXPECT_EQ(flights.back().number, 69u);
  EXPECT_EQ(flights.back().collective, 0u);
  EXPECT_EQ(flights.back().step, 6);
  EXPECT_EQ(flights.back().started, 70);
  EXPECT_EQ(flights.back().done, 0);
}

TEST(ControlBlock, HasTheRunDirectory) {
  const Mapping memory = Mapping::anonymous(ControlBlock::bytesFor(2)).take();
  const ControlBlock block = ControlBlock::initialize(memory.data(), 2, false);
  EXPECT_EQ(block.runDirectory(), "");
  block.setRunDirectory(std::string(5000, 'x'));
  EXPECT_EQ(block.runDirectory(), "");
  block.setRunDirectory("/runs/one");
  EXPECT_EQ(block.runDirectory(), "/runs/one");
}

} // namespace
} // namespace titan
