#include "runtime/device/cuda/testing/ptx/SharedMemory.h"

#include <algorithm>
#include <cstring>

namespace titan::ptx {

SharedMemory::SharedMemory(uint32_t bytes, int granule, uint32_t warps)
    : size_(bytes), granule_(granule), warpTimes_(warps), bytes_(bytes + 16),
      records_(bytes / granule + 1) {}

void SharedMemory::reset() {
  std::fill(records_.begin(), records_.end(), Record{});
  std::fill(warpTimes_.begin(), warpTimes_.end(), 0);
  time_ = barrierTime_ = 1;
}

bool SharedMemory::readRaces(const Record& record, uint32_t thread) const {
  if (record.readTime == 0 || record.readTime < barrierTime_)
    return false;
  switch (record.readers) {
  case Record::Readers::One:
    return record.reader != thread && !ordered(record.readTime, warpOf(record.reader), thread);
  case Record::Readers::Warp:
    return !ordered(record.readTime, warpOf(record.reader), thread);
  case Record::Readers::Block:
    return true;
  }
  return true;
}

std::string SharedMemory::read(uint64_t offset, int size, uint32_t thread) {
  for (int done = 0; done < size; done += granule_) {
    Record& record = records_[(offset + done) / granule_];
    if (record.writeTime == 0)
      return fmt::format("reads shared byte {}, which was never written", offset + done);
    if (writeRaces(record, thread))
      return fmt::format("reads shared byte {}, which thread {} wrote without a barrier between",
                         offset + done, record.writer);
    // A read that all later ones of this thread's warp follow needs no note of its own.
    bool alone = record.readTime == 0 || ordered(record.readTime, warpOf(record.reader), thread) ||
                 (record.readers == Record::Readers::One && record.reader == thread);
    if (record.readers == Record::Readers::Block && record.readTime >= barrierTime_)
      alone = false;
    if (alone)
      record.readers = Record::Readers::One;
    else if (record.readers != Record::Readers::Block)
      record.readers =
          warpOf(record.reader) == warpOf(thread) ? Record::Readers::Warp : Record::Readers::Block;
    record.reader = static_cast<uint16_t>(thread);
    record.readTime = time_;
  }
  return {};
}

std::string SharedMemory::write(uint64_t offset, int size, uint32_t thread, const char* value,
                                uint64_t request) {
  for (int done = 0; done < size; done += granule_) {
    Record& record = records_[(offset + done) / granule_];
    if (writeRaces(record, thread)) {
      bool sameRequest = record.writeRequest == request;
      if (!sameRequest)
        return fmt::format("writes shared byte {}, which thread {} wrote without a barrier between",
                           offset + done, record.writer);
      if (std::memcmp(at(offset + done), value + done, granule_) != 0)
        return fmt::format("writes shared byte {}, where thread {} writes another value",
                           offset + done, record.writer);
    }
    if (readRaces(record, thread))
      return fmt::format(
          "writes shared byte {}, which {} {} read without a barrier between", offset + done,
          record.readers == Record::Readers::One ? "thread" : "with others thread", record.reader);
    record.writer = static_cast<uint16_t>(thread);
    record.writeTime = time_;
    record.writeRequest = request;
  }
  return {};
}

} // namespace titan::ptx
