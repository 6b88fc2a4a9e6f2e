#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <gtest/gtest.h>

namespace titan::ptx {
namespace {

TEST(Memory, GivesAlignedAddressesThatNoHostPointerHas) {
  Memory memory;
  uint64_t first = memory.allocate(100).take();
  uint64_t second = memory.allocate(100).take();
  for (uint64_t address : {first, second}) {
    EXPECT_EQ(address % 256, 0u);
    // Canonical addresses have all of bits 56 to 63 equal, with five levels of pages too.
    uint64_t top = address >> 56;
    EXPECT_TRUE(top != 0 && top != 0xff) << address;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.bytes(address, 1).data()) >> 56, 0u);
  }
  EXPECT_GT(second, first + 256) << "a gap lies between two allocations";
}

TEST(Memory, ShowsBytesInsideOneAllocationOnly) {
  Memory memory;
  uint64_t first = memory.allocate(100).take();
  uint64_t second = memory.allocate(100).take();
  EXPECT_EQ(memory.bytes(first, 100).size(), 100u);
  EXPECT_EQ(memory.bytes(first + 99, 1).size(), 1u);
  EXPECT_TRUE(memory.bytes(first, 101).empty());
  EXPECT_TRUE(memory.bytes(first + 100, 1).empty());
  EXPECT_TRUE(memory.bytes(first - 1, 1).empty());
  EXPECT_TRUE(memory.bytes(first, second - first + 1).empty());
  EXPECT_TRUE(memory.bytes(first, -1).empty());
  memory.bytes(first, 100)[7] = 'x';
  EXPECT_EQ(memory.bytes(first + 7, 1)[0], 'x');
}

TEST(Memory, NeverGivesAnAddressTwice) {
  Memory memory;
  uint64_t first = memory.allocate(100).take();
  EXPECT_FALSE(memory.free(first + 1));
  EXPECT_TRUE(memory.free(first));
  EXPECT_FALSE(memory.free(first));
  EXPECT_TRUE(memory.bytes(first, 1).empty());
  EXPECT_NE(memory.allocate(100).take(), first);
}

TEST(Memory, KnowsWhichBytesWereWritten) {
  Memory memory;
  uint64_t address = memory.allocate(64).take();
  EXPECT_EQ(memory.firstUnwritten(address, 64), address);
  memory.markWritten(address, 16);
  memory.markWritten(address + 17, 47);
  EXPECT_EQ(memory.firstUnwritten(address, 16), std::nullopt);
  EXPECT_EQ(memory.firstUnwritten(address, 64), address + 16);
  memory.markWritten(address + 16, 1);
  EXPECT_EQ(memory.firstUnwritten(address, 64), std::nullopt);
  memory.markWritten(address + 64, 1000); // outside: passed over
  EXPECT_EQ(memory.firstUnwritten(address + 60, 5), address + 60);
}

TEST(Memory, AnEmptyAllocationHasAnAddressOfItsOwn) {
  Memory memory;
  uint64_t first = memory.allocate(0).take();
  EXPECT_NE(first, memory.allocate(0).take());
  EXPECT_TRUE(memory.free(first));
}

TEST(Memory, RefusesWhatNoMachineHas) {
  Memory memory;
  EXPECT_EQ(memory.allocate(-1).error().message(), "an allocation of -1 bytes of device memory");
  EXPECT_EQ(memory.allocate(int64_t{1} << 60).error().message(),
            "no host memory for 1152921504606846976 bytes of a device's");
}

} // namespace
} // namespace titan::ptx
