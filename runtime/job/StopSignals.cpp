#include "runtime/job/StopSignals.h"

#include <atomic>

#include <unistd.h>

namespace titan {
namespace {

constexpr int signals[] = {SIGTERM, SIGINT, SIGUSR1};
// The handler may run on any thread.
std::atomic<int> firstSignal{0}, interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void handleStop(int signal) {
  if (signal == SIGINT && ++interrupts > 1)
    _exit(128 + SIGINT);
  int none = 0;
  firstSignal.compare_exchange_strong(none, signal);
}

} // namespace

StopSignals::StopSignals() {
  firstSignal = 0;
  interrupts = 0;
  struct sigaction action = {};
  action.sa_handler = handleStop;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART; // a write that was under way goes on; the loop looks at the flag
  for (int i = 0; i < 3; ++i)
    sigaction(signals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 3; ++i)
    sigaction(signals[i], &before_[i], nullptr);
}

int StopSignals::received() const { return firstSignal; }

const char* StopSignals::name() const {
  switch (received()) {
  case SIGTERM:
    return "SIGTERM";
  case SIGINT:
    return "SIGINT";
  case SIGUSR1:
    return "SIGUSR1";
  default:
    return "no signal";
  }
}

} // namespace titan
