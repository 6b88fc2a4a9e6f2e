// What everybody who works with file descriptors needs: an owner, and calls that go through when a
// signal comes in between. Errors are left in errno, for whoever knows what the file is for.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace titan {

/// Owns a file descriptor; a negative one is none.
class Descriptor {
public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }
  /// Closes what it owns and takes `value`.
  void reset(int value = -1) {
    if (value_ >= 0)
      ::close(value_);
    value_ = value;
  }
  /// Closes, for who must know whether that worked: false with errno.
  bool close() { return ::close(release()) == 0; }

private:
  int value_;
};

/// Calls again as long as `call` fails with EINTR.
template <typename Call> auto retryInterrupted(Call call) {
  decltype(call()) result;
  do
    result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

/// Writes all of `bytes`; false with errno. A short text is one write(): a reader that follows the
/// file never sees half of it.
inline bool writeAll(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        retryInterrupted([&] { return ::write(file.get(), bytes.data(), bytes.size()); });
    if (count < 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

/// The same at `offset`.
inline bool writeAllAt(const Descriptor& file, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = retryInterrupted([&] {
      return ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (count < 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return true;
}

} // namespace titan
