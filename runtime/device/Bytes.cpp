#include "runtime/device/Bytes.h"

#include "runtime/device/StateAccess.h"

#include <algorithm>
#include <cstring>

namespace titan {

Status ByteSource::read(int64_t first, std::span<char> into) const {
  if (into.empty())
    return {};
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
  const std::span<char> piece = TITAN_TRY(access_->staging());
  for (int64_t first = 0; first < bytes_; first += StateAccess::pieceBytes) {
    const auto part =
        piece.first(static_cast<size_t>(std::min(StateAccess::pieceBytes, bytes_ - first)));
    TITAN_TRY(access_->download(offset_ + first, part));
    TITAN_TRY(see(part));
  }
  return {};
}

Status ByteSink::write(int64_t first, std::span<const char> from) const {
  if (from.empty())
    return {};
  if (!memory_)
    return access_->upload(offset_ + first, from);
  std::memcpy(memory_ + first, from.data(), from.size());
  return {};
}

Status
ByteSink::fillPieces(const std::function<Status(int64_t first, std::span<char>)>& make) const {
  if (bytes_ == 0)
    return {};
  if (memory_)
    return make(0, direct());
  const std::span<char> piece = TITAN_TRY(access_->staging());
  for (int64_t first = 0; first < bytes_; first += StateAccess::pieceBytes) {
    const auto part =
        piece.first(static_cast<size_t>(std::min(StateAccess::pieceBytes, bytes_ - first)));
    TITAN_TRY(make(first, part));
    TITAN_TRY(access_->upload(offset_ + first, part));
  }
  return {};
}

} // namespace titan
