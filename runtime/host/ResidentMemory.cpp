#include "runtime/host/ResidentMemory.h"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace titan {

int64_t peakResidentBytes() {
  // Not getrusage: its maximum is inherited from the process that called exec.
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  char text[4096];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0)
    return 0;
  text[size] = '\0';
  constexpr const char* key = "VmHWM:";
  const char* line = std::strstr(text, key);
  return line ? std::strtoll(line + std::strlen(key), nullptr, 10) * 1024 : 0;
}

} // namespace titan
