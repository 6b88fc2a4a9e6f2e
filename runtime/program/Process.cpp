#include "runtime/program/Process.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace titan {

void prepareProcess() {
  std::signal(SIGXFSZ, SIG_IGN);
  // open() takes the lowest free number: what is above stderr was not needed.
  int opened;
  do
    opened = ::open("/dev/null", O_RDWR);
  while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0)
    ::close(opened);
}

} // namespace titan
