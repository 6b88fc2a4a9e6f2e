// Bytes that may lie in host memory or in a device's arena, for whoever takes or gives them without
// caring where: checkpoints, initial weights, batches.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace titan {

class StateAccess;

/// A copy to a device that may still go on. What it copies from must stay as it is until then.
class Transfer {
public:
  Transfer() = default; ///< done

  /// Returns when it is done. The errors of the device.
  Status wait() const;
  bool isDone() const { return access_ == nullptr; }

private:
  friend class StateAccess;
  Transfer(StateAccess& access, uint64_t event) : access_(&access), event_(event) {}

  StateAccess* access_ = nullptr;
  uint64_t event_ = 0; ///< Device::Event::number
};

/// A range of bytes: what ByteSource (`Char` is const) and ByteSink share. A handle: it is copied
/// freely, and what it names outlives it.
template <typename Derived, typename Char> class ByteRange {
public:
  ByteRange() = default;
  /// Bytes at hand.
  explicit ByteRange(std::span<Char> memory)
      : memory_(memory.data()), bytes_(static_cast<int64_t>(memory.size())) {}

  int64_t bytes() const { return bytes_; }
  /// All of them where the host can reach them; empty where it cannot.
  std::span<Char> direct() const { return {memory_, memory_ ? static_cast<size_t>(bytes_) : 0}; }
  /// Bytes [first, first + bytes).
  Derived part(int64_t first, int64_t bytes) const {
    Derived part = static_cast<const Derived&>(*this);
    part.offset_ += first;
    part.bytes_ = bytes;
    if (memory_)
      part.memory_ += first;
    return part;
  }

protected:
  friend class StateAccess;
  StateAccess* access_ = nullptr; ///< null: no device's
  Char* memory_ = nullptr;        ///< null: not direct
  int64_t offset_ = 0, bytes_ = 0;
};

/// What can be read.
class ByteSource : public ByteRange<ByteSource, const char> {
public:
  /// Copies the bytes from `first` on.
  using Read = std::function<Status(int64_t first, std::span<char> into)>;

  ByteSource() = default;
  ByteSource(std::span<const char> memory) : ByteRange(memory) {}
  /// Bytes that lie nowhere in one piece: `read` puts them together. forEachPiece() has them put to
  /// `room`, of one piece, unless that is empty.
  static ByteSource made(int64_t bytes, Read read, std::span<char> room = {});

  /// Copies the bytes from `first` on; complete on return. The errors of the device.
  Status read(int64_t first, std::span<char> into) const;
  /// All bytes in order: at once where they are direct, else in pieces of at most
  /// StateAccess::pieceBytes that last until the call returns. Ends with the first error.
  Status forEachPiece(const std::function<Status(std::span<const char>)>& see) const;

private:
  std::shared_ptr<const Read> made_; ///< null: memory, or a device's
  std::span<char> room_;
};

/// What can be written.
class ByteSink : public ByteRange<ByteSink, char> {
public:
  /// Takes the bytes from `first` on.
  using Write = std::function<Status(int64_t first, std::span<const char> from)>;

  ByteSink() = default;
  ByteSink(std::span<char> memory) : ByteRange(memory) {}
  /// Bytes that go to no place of their own: `write` gets them.
  static ByteSink taken(int64_t bytes, Write write);

  /// Complete on return.
  Status write(int64_t first, std::span<const char> from) const;
  /// The same, but a copy to a device goes on behind the call: for what lies in memory of
  /// StateAccess::hostBuffer(). Places that are scalars are not written so.
  Result<Transfer> begin(int64_t first, std::span<const char> from) const;
  /// `make` is called with the pieces in order, and where each begins, and writes every byte of
  /// them; a piece holds anything before. Ends with the first error.
  Status fillPieces(const std::function<Status(int64_t first, std::span<char>)>& make) const;

private:
  std::shared_ptr<const Write> taken_; ///< null: memory, or a device's
};

} // namespace titan
