#include "runtime/metrics/MetricsFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace titan {

namespace {

Error cannot(const char* verb, const std::string& path) {
  return Error::environment("cannot {} '{}': {}", verb, path, std::strerror(errno));
}

Result<std::string> readWhole(int descriptor, const std::string& path) {
  std::string text;
  char block[1 << 16];
  for (ssize_t count;
       (count = retryInterrupted([&] { return ::read(descriptor, block, sizeof block); })) != 0;) {
    if (count < 0)
      return cannot("read", path);
    text.append(block, static_cast<size_t>(count));
  }
  return text;
}

/// The "step" of a line that this class wrote (it comes first); -1 for any other line.
int64_t stepOf(std::string_view line) {
  constexpr std::string_view head = "{\"step\": ";
  if (!line.starts_with(head))
    return -1;
  int64_t step = -1;
  std::from_chars(line.data() + head.size(), line.data() + line.size(), step);
  return step;
}

/// The whole lines of `text` whose step is at most `lastStep`.
std::string keepLines(std::string_view text, int64_t lastStep) {
  std::string kept;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    if (stepOf(text.substr(0, end)) <= lastStep)
      kept.append(text.substr(0, end + 1));
  return kept;
}

void appendValue(std::string& line, const MetricValue& value) {
  std::visit(
      [&](auto number) {
        if (std::isfinite(static_cast<double>(number)))
          fmt::format_to(std::back_inserter(line), "{}", number);
        else
          line += "null";
      },
      value);
}

} // namespace

Result<MetricsFile> MetricsFile::open(const std::string& path, int64_t resumedStep) {
  Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor)
    return cannot("open", path);
  MetricsFile file(std::move(descriptor), path);
  const std::string text = TITAN_TRY(readWhole(file.descriptor_.get(), path));
  const std::string kept = keepLines(text, resumedStep);
  if (kept.size() == text.size())
    return file;
  // Steps grow along the file, so that what is kept is nearly always a prefix; the rest is written
  // again if it is not.
  const auto same = static_cast<size_t>(
      std::mismatch(kept.begin(), kept.end(), text.begin()).first - kept.begin());
  if (::ftruncate(file.descriptor_.get(), static_cast<off_t>(same)) != 0)
    return cannot("truncate", path);
  file.line_ = kept.substr(same);
  if (!file.line_.empty())
    TITAN_TRY(file.writeLine());
  return file;
}

Status MetricsFile::write(const StepMetrics& metrics) {
  Metric values[10] = {
      {"loss", metrics.loss},
      {"lr", metrics.lr},
      {"grad_norm", metrics.gradNorm},
      metrics.tokens > 0 ? Metric("tokens", metrics.tokens) : Metric("samples", metrics.samples),
      {"seconds", metrics.seconds},
      {"memory", metrics.memoryBytes},
  };
  size_t count = 6;
  if (metrics.residentBytes > 0)
    values[count++] = {"resident", metrics.residentBytes};
  if (metrics.slowestRank >= 0) {
    values[count++] = {"wait_seconds", metrics.waitSeconds};
    values[count++] = {"slowest_rank", metrics.slowestRank};
  }
  if (metrics.skipped != Skip::No)
    values[count++] = {"skipped", int64_t{1}};
  return write(metrics.step, std::span(values).first(count));
}

Status MetricsFile::write(int64_t step, std::span<const Metric> metrics) {
  line_.clear();
  fmt::format_to(std::back_inserter(line_), "{{\"step\": {}", step);
  for (const auto& [name, value] : metrics) {
    fmt::format_to(std::back_inserter(line_), ", \"{}\": ", name);
    appendValue(line_, value);
  }
  line_ += "}\n";
  return writeLine();
}

Status MetricsFile::writeLine() {
  if (!writeAll(descriptor_, line_))
    return cannot("write", path_);
  return {};
}

} // namespace titan
