#include "runtime/checkpoint/Snapshot.h"

#include <algorithm>

namespace titan::checkpoint {

std::optional<Snapshot> Snapshot::of(StateAccess& access) {
  Snapshot snapshot(access);
  const Program& program = access.program();
  int64_t end = 0;
  for (const State& state : program.states) {
    if (state.kind == StateKind::Counter)
      continue;
    const Place place = placeOf(state);
    TensorView view = viewOf(state, program.mesh, access.coordinates());
    if (view.box || view.bytes() != place.bytes)
      return std::nullopt;
    Place& region = snapshot.region_;
    region.offset =
        snapshot.tensors_.empty() ? place.offset : std::min(region.offset, place.offset);
    end = std::max(end, place.offset + place.bytes);
    snapshot.tensors_.push_back(std::move(view));
    snapshot.offsets_.push_back(place.offset);
  }
  snapshot.region_.bytes = std::max<int64_t>(0, end - snapshot.region_.offset);
  for (int64_t& offset : snapshot.offsets_)
    offset -= snapshot.region_.offset;
  return snapshot;
}

Status Snapshot::reserve() {
  copy_ = TITAN_TRY(access_->hostBuffer(bytes()));
  for (size_t i = 0; i < tensors_.size(); ++i)
    tensors_[i].source = std::span<const char>(copy_).subspan(
        static_cast<size_t>(offsets_[i]), static_cast<size_t>(tensors_[i].bytes()));
  return {};
}

} // namespace titan::checkpoint
