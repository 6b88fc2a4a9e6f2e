// A thread whose requests for the registers of AMX the kernel refuses with EPERM, as a container's
// seccomp filter may. It needs no CPU with AMX.
#pragma once

#include <cerrno>
#include <cstddef>
#include <functional>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace titan::testing {

/// Sets the filter for the calling thread and those that it starts. False where the system lets no
/// filter be set.
inline bool refuseTileRegisters() {
  constexpr unsigned requestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, requestPermission, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Runs `body` in such a thread. False, without running it, where the system has no such filters.
inline bool whereTilesAreRefused(const std::function<void()>& body) {
  bool refused = false;
  std::thread([&] {
    refused = refuseTileRegisters();
    if (refused)
      body();
  }).join();
  return refused;
}

} // namespace titan::testing
