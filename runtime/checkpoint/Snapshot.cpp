#include "runtime/checkpoint/Snapshot.h"

#include "runtime/checkpoint/WriteState.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

/// Tensors that lie so near to each other in a window are copied together, with what is between.
/// Without one the device may have each place by itself.
constexpr int64_t largestGap = 256;

/// What the copy of a tensor takes at most.
int64_t copyBytes(const Place& place) { return place.bytes + largestGap; }

} // namespace

std::optional<Snapshot> Snapshot::of(StateAccess& access) {
  Snapshot snapshot(access);
  const Program& program = access.program();
  for (const SavedState& saved : savedStates(program)) {
    const Place place = placeOf(*saved.state);
    TensorView view = viewOf(saved, program.mesh, access.coordinates());
    if (view.box || view.bytes() != place.bytes)
      return std::nullopt;
    view.isBorrowed = true;
    snapshot.tensors_.push_back(std::move(view));
    snapshot.places_.push_back(place);
  }
  return snapshot;
}

int64_t Snapshot::bytes() const {
  int64_t bytes = 0;
  for (const Place& place : places_)
    bytes += copyBytes(place);
  return bytes;
}

ByteSource Snapshot::borrowed(const Place& place) const {
  if (!reader_)
    return access_->source(place);
  const auto read = [reader = reader_.get(), place](int64_t first, std::span<char> into) -> Status {
    TITAN_TRY(reader->download(place.offset + first, into));
    return reader->wait();
  };
  return ByteSource::made(place.bytes, read, room_);
}

Status Snapshot::reserve(int64_t most) {
  reader_ = TITAN_TRY(access_->reader());
  const std::vector<const TensorView*> order = TITAN_TRY(inSaveOrder(tensors_));
  std::vector<size_t> staged;
  int64_t bytes = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const auto tensor = static_cast<size_t>(order[i] - tensors_.data());
    if (copyBytes(places_[tensor]) > most - bytes)
      break;
    bytes += copyBytes(places_[tensor]);
    staged.push_back(tensor);
  }
  std::ranges::sort(staged, {}, [&](size_t tensor) { return places_[tensor].offset; });
  int64_t end = 0; // of the copy so far
  std::vector<int64_t> offsets;
  for (const size_t tensor : staged) {
    const Place& place = places_[tensor];
    Sweep* last = sweeps_.empty() ? nullptr : &sweeps_.back();
    if (!last || reader_ || place.offset - (last->place.offset + last->place.bytes) > largestGap)
      last = &sweeps_.emplace_back(Place{place.offset, 0}, end);
    last->place.bytes = place.offset + place.bytes - last->place.offset;
    offsets.push_back(last->offset + place.offset - last->place.offset);
    end = offsets.back() + copyBytes(place);
  }
  copy_ = TITAN_TRY(access_->hostBuffer(end));
  if (reader_ && staged.size() < tensors_.size())
    room_ = TITAN_TRY(access_->hostBuffer(StateAccess::pieceBytes));
  for (size_t i = 0; i < tensors_.size(); ++i)
    tensors_[i].source = borrowed(places_[i]);
  for (size_t i = 0; i < staged.size(); ++i) {
    TensorView& tensor = tensors_[staged[i]];
    tensor.source = std::span<const char>(copy_).subspan(static_cast<size_t>(offsets[i]),
                                                         static_cast<size_t>(tensor.bytes()));
    tensor.isBorrowed = false;
  }
  return {};
}

Status Snapshot::take() {
  if (reader_)
    TITAN_TRY(access_->settle());
  for (const Sweep& sweep : sweeps_) {
    const std::span<char> into =
        copy_.subspan(static_cast<size_t>(sweep.offset), static_cast<size_t>(sweep.place.bytes));
    TITAN_TRY(reader_ ? reader_->download(sweep.place.offset, into)
                      : access_->copy(sweep.place, into));
  }
  return {};
}

} // namespace titan::checkpoint
