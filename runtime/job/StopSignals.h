// SIGTERM, SIGINT and SIGUSR1 ask a run to stop after its step; a second SIGINT ends the process at
// once.
#pragma once

#include <csignal>

namespace titan {

/// Handles the three signals for its lifetime; one object at a time.
class StopSignals {
public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that came first, or 0.
  int received() const;
  /// "SIGTERM"
  const char* name() const;

private:
  struct sigaction before_[3];
};

} // namespace titan
