#include "runtime/device/cuda/testing/ptx/SharedMemory.h"

#include <algorithm>
#include <cstring>

namespace titan::ptx {

SharedMemory::SharedMemory(uint32_t bytes, int granule, uint32_t warps)
    : size_(bytes), granule_(granule), shift_(__builtin_ctz(granule)), warpTimes_(warps),
      bytes_(bytes + 16), records_(bytes / granule + 1) {}

void SharedMemory::reset() {
  std::fill(records_.begin(), records_.end(), Record{});
  std::fill(warpTimes_.begin(), warpTimes_.end(), 0);
  time_ = barrierTime_ = 1;
}

bool SharedMemory::readRaces(const Record& record, uint32_t thread) const {
  if (record.readTime == 0 || record.readTime < barrierTime_)
    return false;
  switch (record.who()) {
  case Readers::One:
    return record.reader != thread && !ordered(record.readTime, warpOf(record.reader), thread);
  case Readers::Warp:
    return !ordered(record.readTime, warpOf(record.reader), thread);
  case Readers::Block:
    return true;
  }
  return true;
}

bool SharedMemory::mayRead(const Record& record, uint64_t offset, uint32_t thread,
                           std::string& wrong) const {
  if (record.writeTime == 0)
    wrong = fmt::format("reads shared byte {}, which was never written", offset);
  else if (record.writeTime == expected)
    wrong = fmt::format("reads shared byte {}, which a copy of thread {} is still to write: it has "
                        "not waited for it",
                        offset, record.writer);
  else if (writeRaces(record, thread))
    wrong = fmt::format("reads shared byte {}, which thread {} wrote without a barrier between",
                        offset, record.writer);
  return wrong.empty();
}

bool SharedMemory::carefulReadByWarp(uint64_t offset, uint32_t thread, std::string& wrong) {
  Record& record = records_[offset >> shift_];
  // What one of the lanes wrote the others read.
  const bool isOwn = warpOf(record.writer) == warpOf(thread);
  const uint32_t other = isOwn && record.writer == thread ? thread ^ 1 : thread;
  if (!mayRead(record, offset, other, wrong))
    return false;
  // Reads that are in order with this one need no note: what races with them races with it.
  const bool none = record.readTime < barrierTime_;
  const bool alone = record.who() != Readers::Block && warpOf(record.reader) == warpOf(thread);
  record.readBy(thread, none || alone ? Readers::Warp : Readers::Block, time_);
  return true;
}

bool SharedMemory::carefulRead(uint64_t offset, uint32_t thread, std::string& wrong) {
  Record& record = records_[offset >> shift_];
  if (!mayRead(record, offset, thread, wrong))
    return false;
  // Earlier reads that are in order with this one need no note: what races with them races with it.
  bool none = record.readTime < barrierTime_;
  bool sameWarp = warpOf(record.reader) == warpOf(thread);
  Readers group = Readers::Block;
  if (none)
    group = Readers::One;
  else if (record.who() != Readers::Block && sameWarp)
    group = ordered(record.readTime, warpOf(record.reader), thread) ||
                    (record.who() == Readers::One && record.reader == thread)
                ? Readers::One
                : Readers::Warp;
  record.readBy(thread, group, time_);
  return true;
}

bool SharedMemory::mayWrite(const Record& record, uint64_t offset, uint32_t thread,
                            const char* value, uint64_t request, std::string& wrong) const {
  if (record.writeTime == expected) {
    wrong = fmt::format("writes shared byte {}, where a copy of thread {} is on its way", offset,
                        record.writer);
    return false;
  }
  bool together = value && record.writeRequest == static_cast<uint32_t>(request);
  if (writeRaces(record, thread) && !together)
    wrong = fmt::format("writes shared byte {}, which thread {} wrote without a barrier between",
                        offset, record.writer);
  else if (writeRaces(record, thread) && std::memcmp(at(offset), value, granule_) != 0)
    wrong = fmt::format("writes shared byte {}, where thread {} writes another value", offset,
                        record.writer);
  else if (readRaces(record, thread))
    wrong = fmt::format("writes shared byte {}, which {} read without a barrier between", offset,
                        record.who() == Readers::One ? fmt::format("thread {}", record.reader)
                                                     : "other threads");
  return wrong.empty();
}

} // namespace titan::ptx
