// TensorBoard event files: TFRecord frames around hand-encoded protobuf messages
// (tensorflow/core/util/event.proto).
//
//   frame   : length (u64), masked CRC-32C of the length, data, masked CRC-32C of the data; all
//             little-endian
//   masked  : rotate right by 15, plus 0xa282ead8
//   Event   : wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5,
//             session_log = 7
//   Summary : value = 1 { tag = 1 (string), simple_value = 2 (float) }
#pragma once

#include "runtime/metrics/StepMetrics.h"
#include "runtime/program/Error.h"
#include "runtime/program/File.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace titan {

using EventScalar = std::pair<std::string_view, float>;

class EventFile {
public:
  /// Creates a new file events.out.tfevents.<unix time>.<host>.<pid> in `directory`. After a resume
  /// at step `resumedStep` > 0 it starts with a session log that makes TensorBoard forget later
  /// steps of earlier files.
  static Result<EventFile> create(const std::string& directory, int64_t resumedStep);

  /// One event with train/loss, train/lr, train/grad_norm and train/{samples,tokens}_per_second.
  Status write(const StepMetrics& metrics);
  Status write(int64_t step, std::span<const EventScalar> scalars);

  const std::string& path() const { return path_; }

private:
  EventFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  Status writeRecord();

  Descriptor descriptor_;
  std::string path_;
  std::string event_, frame_; ///< reused
};

} // namespace titan
