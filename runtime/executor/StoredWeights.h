// Bytes of a job's payload or of a weights file, read without keeping them: weights that lie in the
// arena need not be in memory a second time.
#pragma once

#include "runtime/device/Bytes.h"

#include <string>
#include <string_view>

namespace titan {

class StoredWeights {
public:
  /// `payload` stays where it is; its pages may be dropped from memory once they were read, and are
  /// read again from the job's file if somebody looks at them later.
  static StoredWeights ofPayload(std::string_view payload) { return StoredWeights(payload); }
  /// BadInput with the system's reason when the file cannot be opened.
  static Result<StoredWeights> ofFile(const std::string& path);
  StoredWeights(StoredWeights&& other) noexcept;
  StoredWeights& operator=(StoredWeights&&) = delete;
  ~StoredWeights();

  /// Copies the bytes from `offset` on to all of `destination` and returns their XXH3-64. BadInput
  /// "too short" when they are not all there.
  Result<uint64_t> read(int64_t offset, const ByteSink& destination) const;

private:
  /// The next bytes, as many as the file gives at once; 0 at its end.
  Result<int64_t> readSome(int64_t offset, std::span<char> into) const;
  explicit StoredWeights(std::string_view payload) : payload_(payload) {}

  std::string_view payload_;
  int file_ = -1;
};

} // namespace titan
