// Where the time of a function goes, by command (as the device measures it, if it can), and a
// Chrome trace of it (chrome://tracing, ui.perfetto.dev).
#pragma once

#include "runtime/device/CommandObserver.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace titan {

/// All executions of the commands that share a label and a phase.
struct ProfileRow {
  std::string label;
  CommandKind kind = CommandKind::Kernel;
  Phase phase = Phase::Forward;
  int64_t calls = 0;
  double seconds = 0;
  int64_t flops = 0, bytes = 0; ///< of all calls
};

class Profiler final : public CommandObserver {
public:
  /// Times the functions of `program`, which outlives the profiler. At most `maxEvents` executions
  /// enter the trace.
  explicit Profiler(const Program& program, size_t maxEvents = 200'000);

  void beforeFunction(const Function& function) override;
  void before(const Function& function, uint32_t command) override;
  bool wantsSeconds() const override { return true; }
  void took(const Function& function, uint32_t command, double seconds) override;
  void after(const Function& function, uint32_t command) override;
  void afterFunction(const Function& function) override;

  /// By time, the longest first.
  std::vector<ProfileRow> rows() const;
  /// Wall-clock seconds between the start and the end of functions.
  double seconds() const { return seconds_; }
  /// JSON in the trace event format: one complete event per executed command, microseconds.
  std::string chromeTrace() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Event {
    uint32_t label;
    Clock::time_point start, end;
  };

  uint32_t labelOf(const Function& function, uint32_t command) const;

  std::vector<ProfileRow> rows_;
  std::vector<std::pair<const Function*, std::vector<uint32_t>>>
      labels_; ///< per command, an index of rows_
  std::vector<Event> events_;
  size_t maxEvents_;
  Clock::time_point origin_, functionStart_, commandStart_;
  double seconds_ = 0;
  std::optional<double> measured_; ///< of the last command, by the device
};

} // namespace titan
