#include "runtime/launch/OutputLines.h"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace titan::launch {

void writeAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready = {.fd = file, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

void OutputLines::take(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    rest_ += bytes.substr(0, end);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    if (end == bytes.npos && rest_.size() < longestLine)
      break;
    lines += prefix_ + rest_ + '\n';
    rest_.clear();
  }
  writeAll(file_, lines);
}

void OutputLines::end() {
  if (!rest_.empty())
    take("\n");
}

} // namespace titan::launch
