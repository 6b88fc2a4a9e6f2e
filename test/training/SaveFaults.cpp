// Preloaded into a job of a test (LD_PRELOAD): what storage may do to its saves. Counted and
// changed are operations on what lies below a folder named checkpoints.
//
//   TITAN_TEST_KILL_AT=N       the process is killed before operation N (from 1)
//   TITAN_TEST_COUNT=FILE      the number of operations is written to FILE when the process exits
//   TITAN_TEST_WRITE_MS=N      each write takes so much longer
//   TITAN_TEST_ROOM=N          the disk is full after N bytes
//   TITAN_TEST_HANG=N          operation N does not return
//   TITAN_TEST_FAIL=N          write N fails, as on a disk that is full for a moment
//   TITAN_TEST_SHORT=1         each write takes a half, and writes and syncs are interrupted before
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

template <typename Function> Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

long number(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atol(text) : 0;
}

const long killAt = number("TITAN_TEST_KILL_AT"), hangAt = number("TITAN_TEST_HANG"),
           failAt = number("TITAN_TEST_FAIL"), room = number("TITAN_TEST_ROOM"),
           writeMs = number("TITAN_TEST_WRITE_MS");
const bool isShort = number("TITAN_TEST_SHORT") != 0;
std::atomic<long> operations = 0, writes = 0, written = 0, interruptible = 0;

bool concerns(const char* path) { return std::strstr(path, "/checkpoints") != nullptr; }

bool concerns(int file) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0)
    return false;
  path[length] = '\0';
  return concerns(path);
}

/// Before each operation; false: it is none that counts.
template <typename Where> bool enter(Where where) {
  if (!concerns(where))
    return false;
  const long operation = ++operations;
  if (operation == killAt)
    kill(getpid(), SIGKILL);
  while (operation == hangAt)
    pause();
  return true;
}

/// Every second call that may be interrupted is.
bool isInterrupted() {
  if (!isShort || ++interruptible % 2 == 0)
    return false;
  errno = EINTR;
  return true;
}

__attribute__((destructor)) void tellCount() {
  const char* path = std::getenv("TITAN_TEST_COUNT");
  std::FILE* file = path ? std::fopen(path, "w") : nullptr;
  if (!file)
    return;
  std::fprintf(file, "%ld\n", operations.load());
  std::fclose(file);
}

} // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  static const auto next = original<ssize_t(int, const void*, size_t)>("write");
  if (!enter(file))
    return next(file, bytes, count);
  if (isInterrupted())
    return -1;
  if (isShort)
    count = (count + 1) / 2;
  const timespec pause = {writeMs / 1000, writeMs % 1000 * 1'000'000};
  if (writeMs > 0)
    nanosleep(&pause, nullptr);
  const bool isFull = room > 0 && (written += static_cast<long>(count)) > room;
  if (++writes == failAt || isFull) {
    errno = ENOSPC;
    return -1;
  }
  return next(file, bytes, count);
}

#define TITAN_TEST_CALL(name, parameters, where, fails, arguments)                                 \
  int name parameters {                                                                            \
    static const auto next = original<int parameters>(#name);                                      \
    return enter(where) && fails ? -1 : next arguments;                                            \
  }

TITAN_TEST_CALL(fdatasync, (int file), file, isInterrupted(), (file))
TITAN_TEST_CALL(fsync, (int file), file, isInterrupted(), (file))
TITAN_TEST_CALL(rename, (const char* from, const char* to), from, false, (from, to))
TITAN_TEST_CALL(mkdir, (const char* path, mode_t mode), path, false, (path, mode))
TITAN_TEST_CALL(unlink, (const char* path), path, false, (path))
TITAN_TEST_CALL(rmdir, (const char* path), path, false, (path))

} // extern "C"
