#include "runtime/collective/CommDelay.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>
#include <span>
#include <utility>

namespace titan {
namespace {

constexpr int64_t nanosecondsPerSecond = 1000000000;
using Unit = std::pair<std::string_view, double>;
constexpr Unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit rates[] = {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"B/s", 1}};
constexpr double longestLatency = 3600e9;

/// A number that is not negative, and a unit; in the first unit's scale.
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (code != std::errc() || !std::isfinite(number) || number < 0)
    return std::nullopt;
  for (const auto& [name, scale] : units)
    if (unit == name)
      return number * scale;
  return std::nullopt;
}

} // namespace

int64_t CommDelay::nanoseconds(int64_t wire) const {
  const double transfer = bytesPerSecond == 0 ? 0 : static_cast<double>(wire) / bytesPerSecond;
  return latency + std::llround(transfer * nanosecondsPerSecond);
}

Result<CommDelay> parseCommDelay(std::string_view text) {
  const size_t comma = text.find(',');
  const std::optional<double> latency = quantity(text.substr(0, comma), times);
  const std::optional<double> rate =
      comma == text.npos ? std::nullopt : quantity(text.substr(comma + 1), rates);
  if (!latency || *latency > longestLatency || !rate || *rate < 1)
    return Error::usage("TITAN_COMM_DELAY = '{}' is no latency and rate: write 50us,2GB/s", text);
  return CommDelay{std::llround(*latency), *rate};
}

int64_t monotonicNow() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * nanosecondsPerSecond + time.tv_nsec;
}

void sleepUntil(int64_t monotonicNanoseconds) {
  const timespec time = {.tv_sec = monotonicNanoseconds / nanosecondsPerSecond,
                         .tv_nsec = monotonicNanoseconds % nanosecondsPerSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR)
    ;
}

} // namespace titan
