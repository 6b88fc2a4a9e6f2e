#include "runtime/checkpoint/testing/ShortWrites.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan::checkpoint {
namespace {

ShortWrites::Take current;

bool isRegular(int file) {
  struct stat status;
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

ssize_t systemWrite(int file, const void* bytes, size_t count) {
  return ::syscall(SYS_write, file, bytes, count);
}

} // namespace

ShortWrites::ShortWrites(Take take) { current = std::move(take); }
ShortWrites::~ShortWrites() { current = nullptr; }

} // namespace titan::checkpoint

extern "C" ssize_t write(int file, const void* bytes, size_t count) {
  using namespace titan::checkpoint;
  if (!current || !isRegular(file))
    return systemWrite(file, bytes, count);
  const int flags = ::fcntl(file, F_GETFL);
  const bool isDirect = (flags & O_DIRECT) != 0;
  const ssize_t taken = current(count, isDirect);
  if (taken < 0) {
    errno = static_cast<int>(-taken);
    return -1;
  }
  const auto part = static_cast<size_t>(taken);
  if (!isDirect || part == count)
    return systemWrite(file, bytes, part);
  // A kernel may stop anywhere, though it is asked for whole blocks only.
  ::fcntl(file, F_SETFL, flags & ~O_DIRECT);
  const ssize_t written = systemWrite(file, bytes, part);
  ::fcntl(file, F_SETFL, flags);
  return written;
}
