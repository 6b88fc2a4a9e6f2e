// Preloaded into the ranks of a test (LD_PRELOAD): ends or holds a process where a test says.
//
//   SIGRTMIN + 1             leaves with exit code 0, as a library might that calls exit
//   TITAN_TEST_HANG_SYNC=1   fdatasync() does not return: storage that is gone
#include <csignal>
#include <cstdlib>

#include <dlfcn.h>
#include <unistd.h>

namespace {

__attribute__((constructor)) void prepare() {
  struct sigaction leave = {};
  leave.sa_handler = [](int) { _exit(0); };
  sigaction(SIGRTMIN + 1, &leave, nullptr);
}

} // namespace

extern "C" int fdatasync(int file) {
  if (std::getenv("TITAN_TEST_HANG_SYNC"))
    for (;;)
      pause();
  static const auto original = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fdatasync"));
  return original(file);
}
