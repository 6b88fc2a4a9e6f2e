#include "runtime/metrics/EventFile.h"

#include "runtime/metrics/Crc32c.h"

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace titan {

namespace {

// Protobuf wire types, and the field numbers that EventFile.h names.
enum Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
namespace event {
constexpr uint32_t wallTime = 1, step = 2, fileVersion = 3, summary = 5, sessionLog = 7;
}
constexpr uint32_t summaryValue = 1, valueTag = 1, valueSimple = 2;
constexpr uint32_t sessionStatus = 1, sessionStart = 1;

void appendFixed(std::string& out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    out += static_cast<char>(value >> 8 * i);
}

void appendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

size_t varintBytes(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

void appendTag(std::string& out, uint32_t field, Wire wire) {
  appendVarint(out, field << 3 | wire);
}

void appendBytes(std::string& out, uint32_t field, std::string_view value) {
  appendTag(out, field, bytes);
  appendVarint(out, value.size());
  out += value;
}

/// The fields that every event starts with.
void beginEvent(std::string& out, int64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  out.clear();
  appendTag(out, event::wallTime, fixed64);
  appendFixed(out, std::bit_cast<uint64_t>(now.count()), 8);
  appendTag(out, event::step, varint);
  appendVarint(out, static_cast<uint64_t>(step));
}

uint32_t maskedCrc(std::string_view data) { return std::rotr(crc32c(data), 15) + 0xa282ead8u; }

/// "<directory>/events.out.tfevents.<seconds>.<host>.<pid>"
std::string newPath(const std::string& directory) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  char host[256] = "localhost";
  if (::gethostname(host, sizeof host - 1) != 0)
    std::strcpy(host, "localhost");
  return fmt::format("{}/events.out.tfevents.{:010}.{}.{}", directory, seconds.count(), host,
                     ::getpid());
}

} // namespace

Result<EventFile> EventFile::create(const std::string& directory, int64_t resumedStep) {
  std::string path = newPath(directory);
  // O_APPEND, not O_EXCL: a process that opens twice within a second goes on in its own file.
  Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor)
    return Error::environment("cannot create '{}': {}", path, std::strerror(errno));
  EventFile file(std::move(descriptor), std::move(path));
  beginEvent(file.event_, 0);
  appendBytes(file.event_, event::fileVersion, "brain.Event:2");
  TITAN_TRY(file.writeRecord());
  if (resumedStep > 0) {
    beginEvent(file.event_, resumedStep + 1);
    std::string log;
    appendTag(log, sessionStatus, varint);
    appendVarint(log, sessionStart);
    appendBytes(file.event_, event::sessionLog, log);
    TITAN_TRY(file.writeRecord());
  }
  return file;
}

Status EventFile::write(const StepMetrics& metrics) {
  const bool tokens = metrics.tokens > 0;
  const auto items = static_cast<double>(tokens ? metrics.tokens : metrics.samples);
  const double rate = metrics.seconds > 0 ? items / metrics.seconds : 0;
  const EventScalar scalars[] = {
      {"train/loss", metrics.loss},
      {"train/lr", metrics.lr},
      {"train/grad_norm", metrics.gradNorm},
      {tokens ? "train/tokens_per_second" : "train/samples_per_second", static_cast<float>(rate)},
  };
  return write(metrics.step, scalars);
}

Status EventFile::write(int64_t step, std::span<const EventScalar> scalars) {
  constexpr size_t floatBytes = 5; // tag and value
  beginEvent(event_, step);
  std::string& summary = frame_; // free until the record is written
  summary.clear();
  for (const auto& [tag, value] : scalars) {
    appendTag(summary, summaryValue, bytes);
    appendVarint(summary, 1 + varintBytes(tag.size()) + tag.size() + floatBytes);
    appendBytes(summary, valueTag, tag);
    appendTag(summary, valueSimple, fixed32);
    appendFixed(summary, std::bit_cast<uint32_t>(value), 4);
  }
  appendBytes(event_, event::summary, summary);
  return writeRecord();
}

Status EventFile::writeRecord() {
  frame_.clear();
  appendFixed(frame_, event_.size(), 8);
  appendFixed(frame_, maskedCrc(frame_), 4);
  frame_ += event_;
  appendFixed(frame_, maskedCrc(event_), 4);
  if (!writeAll(descriptor_, frame_))
    return Error::environment("cannot write '{}': {}", path_, std::strerror(errno));
  return {};
}

} // namespace titan
