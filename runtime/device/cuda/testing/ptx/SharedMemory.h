// Shared memory of one block: its bytes, and who touched them when.
//
// Time goes on at each barrier and each bar.warp.sync. Two accesses of different threads are in order
// when a barrier of the block lies between them, or, for lanes of one warp, a bar.warp.sync. What is
// not in order is a race, if one of them writes. shfl and vote order no memory (PTX ISA, 9.7.13).
#pragma once

#include "runtime/device/cuda/testing/ptx/Module.h"

namespace titan::ptx {

class SharedMemory {
public:
  SharedMemory(uint32_t bytes, int granule, uint32_t warps);

  /// For the next block: nothing is written.
  void reset();
  void barrier() { barrierTime_ = ++time_; }
  void warpSync(uint32_t warp) { warpTimes_[warp] = ++time_; }

  uint32_t size() const { return size_; }
  char* at(uint64_t offset) { return bytes_.data() + offset; }

  /// What is wrong when `thread` reads or writes here; empty: nothing is, and it is noted.
  /// `value` are the bytes that are about to be written: lanes that write the same value in the same
  /// instruction do no harm. `request` numbers the instructions that ran.
  std::string read(uint64_t offset, int size, uint32_t thread);
  std::string write(uint64_t offset, int size, uint32_t thread, const char* value,
                    uint64_t request);

private:
  /// Of one granule. Times are 0 where there was no access.
  struct Record {
    uint64_t writeRequest = 0;
    uint32_t writeTime = 0, readTime = 0;
    uint16_t writer = 0, reader = 0;
    enum class Readers : uint8_t { One, Warp, Block } readers = Readers::One;
  };

  static uint32_t warpOf(uint32_t thread) { return thread / warpSize; }
  bool ordered(uint32_t time, uint32_t warp, uint32_t thread) const {
    return time < barrierTime_ || (warp == warpOf(thread) && time < warpTimes_[warp]);
  }
  bool writeRaces(const Record& record, uint32_t thread) const {
    return record.writeTime != 0 && record.writer != thread &&
           !ordered(record.writeTime, warpOf(record.writer), thread);
  }
  bool readRaces(const Record& record, uint32_t thread) const;

  uint32_t size_;
  int granule_;
  uint32_t time_ = 1, barrierTime_ = 1;
  std::vector<uint32_t> warpTimes_;
  std::vector<char> bytes_;
  std::vector<Record> records_;
};

} // namespace titan::ptx
