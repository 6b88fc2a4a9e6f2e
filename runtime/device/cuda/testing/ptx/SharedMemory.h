// Shared memory of one block: its bytes, and who touched them when.
//
// Time goes on at each barrier and each bar.warp.sync. Two accesses of different threads are in
// order when a barrier of the block lies between them, or, for lanes of one warp, a bar.warp.sync.
// What is not in order is a race, if one of them writes. shfl and vote order no memory. A copy
// (cp.async) writes from its instruction to the wait for it: the two ends of the time are checked,
// and whoever touches the bytes between is wrong.
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
  const char* at(uint64_t offset) const { return bytes_.data() + offset; }

  /// Notes that `thread` reads or writes here. False: that is wrong, and `wrong` says why.
  /// `value` are the bytes that are about to be written: lanes that write the same value in the
  /// same instruction do no harm. `request` numbers the instructions that ran.
  bool read(uint64_t offset, int64_t size, uint32_t thread, std::string& wrong) {
    for (uint64_t at = offset; at < offset + size; at += granule_)
      if (!quickRead(records_[at >> shift_], thread) && !carefulRead(at, thread, wrong))
        return false;
    return true;
  }
  bool write(uint64_t offset, int64_t size, uint32_t thread, const char* value, uint64_t request,
             std::string& wrong) {
    for (uint64_t at = offset; at < offset + size; at += granule_, value += granule_) {
      Record& record = records_[at >> shift_];
      bool unordered = record.writeTime >= barrierTime_ || record.readTime >= barrierTime_;
      if (unordered && !mayWrite(record, at, thread, value, request, wrong))
        return false;
      record.writer = static_cast<uint16_t>(thread);
      record.writeTime = time_;
      record.writeRequest = static_cast<uint32_t>(request);
    }
    return true;
  }

  /// Lanes of the warp of `thread` read together what each of several gets a part of (ldmatrix).
  bool readByWarp(uint64_t offset, int64_t size, uint32_t thread, std::string& wrong) {
    for (uint64_t at = offset; at < offset + size; at += granule_)
      if (!quickReadByWarp(records_[at >> shift_], thread) && !carefulReadByWarp(at, thread, wrong))
        return false;
    return true;
  }
  /// Several lanes of the warp of `thread` read here. False: look at each of them.
  bool quickReadByMany(uint64_t offset, int64_t size, uint32_t thread) {
    for (uint64_t at = offset; at < offset + size; at += granule_)
      if (!quickReadByWarp(records_[at >> shift_], thread))
        return false;
    return true;
  }
  /// A copy of `thread` is on its way here. False: as for a write.
  bool expect(uint64_t offset, int64_t size, uint32_t thread, std::string& wrong) {
    for (uint64_t at = offset; at < offset + size; at += granule_) {
      Record& record = records_[at >> shift_];
      bool unordered = record.writeTime >= barrierTime_ || record.readTime >= barrierTime_;
      if (unordered && !mayWrite(record, at, thread, nullptr, 0, wrong))
        return false;
      record.writer = static_cast<uint16_t>(thread);
      record.writeTime = expected;
    }
    return true;
  }
  /// The copy has come: where its bytes go.
  char* arrive(uint64_t offset, int64_t size, uint32_t thread) {
    for (uint64_t at = offset; at < offset + size; at += granule_) {
      Record& record = records_[at >> shift_];
      record.writer = static_cast<uint16_t>(thread);
      record.writeTime = time_;
    }
    return at(offset);
  }

private:
  /// Time of a write that a copy is still to do: later than all others.
  static constexpr uint32_t expected = ~uint32_t{0};

  /// Which threads have read a granule since it was last in order.
  enum class Readers : uint8_t { One, Warp, Block };

  /// Of one granule. Times are 0 where there was no access.
  struct Record {
    uint32_t writeTime = 0, readTime = 0;
    uint32_t writeRequest = 0;
    uint16_t writer = 0;
    uint16_t reader : 12 = 0;
    uint16_t readers : 4 = 0;

    Readers who() const { return static_cast<Readers>(readers); }
    void readBy(uint32_t thread, Readers group, uint32_t time) {
      reader = thread & 0xfff;
      readers = static_cast<uint16_t>(group) & 0xf;
      readTime = time;
    }
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

  /// The usual case: written before the last barrier, and read since by nobody, by this warp or by
  /// many. False: look carefully.
  bool quickRead(Record& record, uint32_t thread) {
    if (record.writeTime == 0 || record.writeTime >= barrierTime_)
      return false;
    uint32_t warp = warpOf(thread);
    if (record.readTime < barrierTime_)
      record.readBy(thread, Readers::One, time_);
    else if (record.who() == Readers::Block)
      record.readTime = time_;
    else if (warpOf(record.reader) == warp && record.readTime >= warpTimes_[warp])
      record.readBy(thread,
                    record.who() == Readers::One && record.reader == thread ? Readers::One
                                                                            : Readers::Warp,
                    time_);
    else
      return false;
    return true;
  }
  /// The same of a warp that reads together.
  bool quickReadByWarp(Record& record, uint32_t thread) {
    if (record.writeTime == 0 || record.writeTime >= barrierTime_)
      return false;
    const bool others = record.readTime >= barrierTime_ &&
                        (record.who() == Readers::Block || warpOf(record.reader) != warpOf(thread));
    record.readBy(thread, others ? Readers::Block : Readers::Warp, time_);
    return true;
  }
  bool carefulReadByWarp(uint64_t offset, uint32_t thread, std::string& wrong);
  bool mayRead(const Record& record, uint64_t offset, uint32_t thread, std::string& wrong) const;
  bool carefulRead(uint64_t offset, uint32_t thread, std::string& wrong);
  bool mayWrite(const Record& record, uint64_t offset, uint32_t thread, const char* value,
                uint64_t request, std::string& wrong) const;

  uint32_t size_;
  int granule_, shift_;
  uint32_t time_ = 1, barrierTime_ = 1;
  std::vector<uint32_t> warpTimes_;
  std::vector<char> bytes_;
  std::vector<Record> records_;
};

} // namespace titan::ptx
