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
//   TITAN_TEST_REFUSE=CALL:N   each CALL, a function below, has error N; flock of any file
//   TITAN_TEST_ALTER=1         what is read of tensors is not what was written
//   TITAN_TEST_QUOTA=N         no more than N bytes are reserved at a time
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
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
           writeMs = number("TITAN_TEST_WRITE_MS"), quota = number("TITAN_TEST_QUOTA");
const bool isShort = number("TITAN_TEST_SHORT") != 0, isAltered = number("TITAN_TEST_ALTER") != 0;
std::atomic<long> operations = 0, writes = 0, written = 0, interruptible = 0, reserved = 0;

bool concerns(const char* path) { return std::strstr(path, "/checkpoints") != nullptr; }

/// Empty if it has none.
std::string pathOf(int file) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return {path, static_cast<size_t>(std::max<ssize_t>(readlink(link, path, sizeof path), 0))};
}

bool concerns(int file) { return concerns(pathOf(file).c_str()); }

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

/// Is `call` refused? With errno.
bool isRefused(const char* call) {
  static const char* const text = std::getenv("TITAN_TEST_REFUSE");
  const char* const colon = text ? std::strchr(text, ':') : nullptr;
  const size_t length = std::strlen(call);
  if (!colon || static_cast<size_t>(colon - text) != length ||
      std::strncmp(text, call, length) != 0)
    return false;
  errno = std::atoi(colon + 1);
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
  if (isRefused("write") || isInterrupted())
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

ssize_t pread(int file, void* into, size_t count, off_t offset) {
  static const auto next = original<ssize_t(int, void*, size_t, off_t)>("pread");
  const ssize_t got = next(file, into, count, offset);
  if (isAltered && got > 0 && pathOf(file).ends_with(".safetensors"))
    static_cast<char*>(into)[got - 1] ^= 1;
  return got;
}

int flock(int file, int operation) {
  static const auto next = original<int(int, int)>("flock");
  return isRefused("flock") ? -1 : next(file, operation);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
  static const auto next = original<int(int, int, off_t, off_t)>("fallocate");
  if (quota > 0 && concerns(file) && (reserved += bytes) > quota) {
    errno = EDQUOT;
    return -1;
  }
  return next(file, mode, offset, bytes);
}

#define TITAN_TEST_CALL(name, parameters, where, fails, arguments)                                 \
  int name parameters {                                                                            \
    static const auto next = original<int parameters>(#name);                                      \
    return enter(where) && (isRefused(#name) || fails) ? -1 : next arguments;                      \
  }

TITAN_TEST_CALL(fdatasync, (int file), file, isInterrupted(), (file))
TITAN_TEST_CALL(fsync, (int file), file, isInterrupted(), (file))
TITAN_TEST_CALL(rename, (const char* from, const char* to), from, false, (from, to))
TITAN_TEST_CALL(mkdir, (const char* path, mode_t mode), path, false, (path, mode))
TITAN_TEST_CALL(unlink, (const char* path), path, false, (path))
TITAN_TEST_CALL(rmdir, (const char* path), path, false, (path))

} // extern "C"
