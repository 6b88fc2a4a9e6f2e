#include "runtime/device/Bytes.h"

#include "runtime/device/StateAccess.h"

#include <algorithm>
#include <cstring>

namespace titan {
namespace {

/// Room for what goes through at once, of `bytes` in all.
std::span<char> pieceOf(std::string& own, int64_t bytes) {
  own.resize(static_cast<size_t>(std::min(StateAccess::pieceBytes, bytes)));
  return own;
}

} // namespace

Status Transfer::wait() const { return access_ ? access_->wait(*this) : Status(); }

ByteSource ByteSource::made(int64_t bytes, Read read, std::span<char> room) {
  ByteSource source;
  source.made_ = std::make_shared<const Read>(std::move(read));
  source.bytes_ = bytes;
  source.room_ = room;
  return source;
}

Status ByteSource::read(int64_t first, std::span<char> into) const {
  if (into.empty())
    return {};
  if (made_)
    return (*made_)(offset_ + first, into);
  if (!memory_)
    return access_->download(offset_ + first, into);
  std::memcpy(into.data(), memory_ + first, into.size());
  return {};
}

Status ByteSource::forEachPiece(const std::function<Status(std::span<const char>)>& see) const {
  if (bytes_ == 0)
    return {};
  if (memory_)
    return see(direct());
  if (!made_)
    return access_->forEachPiece(offset_, bytes_, see);
  std::string own;
  const std::span<char> piece = room_.empty() ? pieceOf(own, bytes_) : room_;
  for (int64_t first = 0; first < bytes_; first += StateAccess::pieceBytes) {
    const auto part =
        piece.first(static_cast<size_t>(std::min(StateAccess::pieceBytes, bytes_ - first)));
    TITAN_TRY(read(first, part));
    TITAN_TRY(see(part));
  }
  return {};
}

ByteSink ByteSink::taken(int64_t bytes, Write write) {
  ByteSink sink;
  sink.taken_ = std::make_shared<const Write>(std::move(write));
  sink.bytes_ = bytes;
  return sink;
}

Status ByteSink::write(int64_t first, std::span<const char> from) const {
  if (from.empty())
    return {};
  if (taken_)
    return (*taken_)(offset_ + first, from);
  if (!memory_)
    return access_->upload(offset_ + first, from);
  std::memcpy(memory_ + first, from.data(), from.size());
  return {};
}

Result<Transfer> ByteSink::begin(int64_t first, std::span<const char> from) const {
  if (!taken_ && !memory_ && !from.empty())
    return access_->begin(offset_ + first, from);
  TITAN_TRY(write(first, from));
  return Transfer();
}

Status
ByteSink::fillPieces(const std::function<Status(int64_t first, std::span<char>)>& make) const {
  if (bytes_ == 0)
    return {};
  if (memory_)
    return make(0, direct());
  if (!taken_)
    return access_->fillPieces(offset_, bytes_, make);
  std::string own;
  const std::span<char> piece = pieceOf(own, bytes_);
  for (int64_t first = 0; first < bytes_; first += StateAccess::pieceBytes) {
    const auto part =
        piece.first(static_cast<size_t>(std::min(StateAccess::pieceBytes, bytes_ - first)));
    TITAN_TRY(make(first, part));
    TITAN_TRY(write(first, part));
  }
  return {};
}

} // namespace titan
