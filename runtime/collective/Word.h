// A number that one rank raises and others wait for, across processes.
//
// Sleeping is the usual two-sided check: the sleeper counts itself, then looks again; who raises
// stores, then looks for sleepers; both in one total order (seq_cst), so that one sees the other.
#pragma once

#include <atomic>
#include <cstdint>

namespace titan {

class alignas(64) Word {
public:
  /// One thread raises. Everything that it wrote before is seen by whoever saw the number.
  void raiseTo(uint32_t value) {
    value_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0)
      wakeAll();
  }

  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  /// Numbers may wrap around: they are never 2^31 apart.
  bool reached(uint32_t value) const {
    return static_cast<int32_t>(value_.load(std::memory_order_acquire) - value) >= 0;
  }
  /// Looks `spins` times.
  bool spinUntil(uint32_t value, int spins) const;
  /// Sleeps until the number is there, somebody wakes all, or `milliseconds` are over.
  bool sleepUntil(uint32_t value, int milliseconds);
  void wakeAll();

private:
  std::atomic<uint32_t> value_{0}, sleepers_{0};
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
};

} // namespace titan
