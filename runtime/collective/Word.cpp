#include "runtime/collective/Word.h"

#include "runtime/host/Relax.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan {
bool Word::spinUntil(uint32_t value, int spins) const {
  for (int spin = 0; spin < spins; ++spin) {
    if (reached(value))
      return true;
    relax();
  }
  return reached(value);
}

bool Word::sleepUntil(uint32_t value, int milliseconds) {
  const timespec limit = {.tv_sec = milliseconds / 1000,
                          .tv_nsec = (milliseconds % 1000) * 1000000L};
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  const uint32_t seen = value_.load(std::memory_order_seq_cst);
  if (static_cast<int32_t>(seen - value) < 0)
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAIT, seen, &limit, nullptr, 0);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  return reached(value);
}

void Word::wakeAll() {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

} // namespace titan
