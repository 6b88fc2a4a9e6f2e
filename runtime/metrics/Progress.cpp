#include "runtime/metrics/Progress.h"

#include "runtime/program/Text.h"

#include <algorithm>
#include <chrono>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace titan {

std::string_view nameOf(Skip skip) {
  switch (skip) {
  case Skip::No:
    return "";
  case Skip::NonFiniteGradients:
    return "non-finite gradients";
  case Skip::NoValidTargets:
    return "no valid targets";
  }
  return "";
}

namespace {

constexpr double terminalInterval = 0.1, plainInterval = 1; // seconds
constexpr double smoothing = 0.1; // weight of the newest step in the time per step

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// "431", "52.1k", "1.30M"
std::string withUnit(double value) {
  static constexpr std::pair<double, const char*> units[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [scale, unit] : units)
    if (value >= scale) {
      const double scaled = value / scale;
      return fmt::format("{:.{}f}{}", scaled, scaled < 10 ? 2 : scaled < 100 ? 1 : 0, unit);
    }
  return fmt::format("{:.{}f}", value, value < 10 ? 1 : 0);
}

/// "0:42", "1:02:03"
std::string inTime(double seconds) {
  const auto whole = static_cast<int64_t>(std::min(seconds + 0.5, 3.6e9));
  if (whole < 3600)
    return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// Columns of the terminal, less one: a full line would wrap.
size_t columns(std::FILE* stream) {
  winsize size = {};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
    return size.ws_col - 1u;
  return 119;
}

} // namespace

ProgressLine::ProgressLine(std::FILE* stream, ProgressOptions options)
    : stream_(stream), options_(options), terminal_(::isatty(::fileno(stream)) == 1) {}

ProgressLine::~ProgressLine() { finish(); }

std::string ProgressLine::format(const StepMetrics& metrics) const {
  const bool tokens = metrics.tokens > 0;
  const auto items = static_cast<double>(tokens ? metrics.tokens : metrics.samples);
  const double seconds = secondsPerStep_ > 0 ? secondsPerStep_ : metrics.seconds;
  std::string line = fmt::format("step {}/{}  loss {:.4f}  lr {:.2e}  grad {:.3g}", metrics.step,
                                 options_.steps, metrics.loss, metrics.lr, metrics.gradNorm);
  if (seconds > 0)
    line += fmt::format("  {} {}/s", withUnit(items / seconds), tokens ? "tokens" : "samples");
  if (seconds > 0 && options_.flopsPerStep > 0 && options_.peakFlops > 0)
    line += fmt::format("  MFU {:.1f}%", 100 * static_cast<double>(options_.flopsPerStep) /
                                             seconds / options_.peakFlops);
  line += fmt::format("  mem {}", readableBytes(metrics.memoryBytes));
  if (seconds > 0)
    line += fmt::format(
        "  eta {}",
        inTime(seconds * static_cast<double>(std::max<int64_t>(options_.steps - metrics.step, 0))));
  if (skippedSteps_ > 0)
    line += fmt::format("  skipped {}: {}", skippedSteps_, nameOf(lastSkip_));
  if (!save_.empty())
    line += "  " + save_;
  return line;
}

void ProgressLine::setSave(int64_t step, double share) {
  save_ = fmt::format("ckpt {} {:.0f}%", step, 100 * share);
}

void ProgressLine::update(const StepMetrics& metrics) {
  if (metrics.skipped != Skip::No) {
    ++skippedSteps_;
    lastSkip_ = metrics.skipped;
  }
  secondsPerStep_ = secondsPerStep_ > 0
                        ? (1 - smoothing) * secondsPerStep_ + smoothing * metrics.seconds
                        : metrics.seconds;
  const bool last = metrics.step >= options_.steps;
  const bool due =
      terminal_ || metrics.step % options_.logEvery == 0 || metrics.step == options_.firstStep + 1;
  const double time = now();
  if (!last && (!due || time - lastShown_ < (terminal_ ? terminalInterval : plainInterval)))
    return;
  lastShown_ = time;
  show(format(metrics));
}

void ProgressLine::show(std::string line) {
  if (!terminal_) {
    line += '\n';
  } else {
    line.resize(std::min(line.size(), columns(stream_)));
    // Blanks cover what is left of a longer line before it.
    const size_t width = std::exchange(shownWidth_, line.size());
    line.append(width > line.size() ? width - line.size() : 0, ' ');
    line.insert(line.begin(), '\r');
  }
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

void ProgressLine::note(const std::string& message) {
  finish();
  const std::string line = message + "\n";
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

void ProgressLine::finish() {
  if (std::exchange(shownWidth_, 0) == 0)
    return;
  std::fputc('\n', stream_);
  std::fflush(stream_);
}

} // namespace titan
