// What a thread does between two looks at a word that another thread will change.
#pragma once

#if !defined(__x86_64__)
#include <sched.h>
#endif

namespace titan {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  sched_yield();
#endif
}

} // namespace titan
