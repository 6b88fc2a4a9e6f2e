#include "runtime/device/StateAccess.h"

#include <algorithm>
#include <deque>

namespace titan {
namespace {

Status checkRange(const Place& place, int64_t first, size_t bytes) {
  if (first < 0 || first > place.bytes || static_cast<int64_t>(bytes) > place.bytes - first)
    return Error::internal("bytes [{}, {}) leave a place of {} bytes", first,
                           first + static_cast<int64_t>(bytes), place.bytes);
  return {};
}

} // namespace

Place placeOf(const State& state) { return {state.offset, state.bytes, state.dtype, state.local}; }

Place placeOf(const Binding& binding) {
  return {binding.offset, binding.bytes, binding.dtype, binding.local};
}

StateAccess::StateAccess(const Program& program, Device& device, int64_t rank)
    : program_(&program), device_(&device), coordinates_(coordinatesOf(rank, program.mesh)),
      scalars_(device) {}

std::optional<Place> StateAccess::state(StateKind kind, std::string_view profile,
                                        std::string_view name) const {
  for (const State& state : program_->states)
    if (state.kind == kind && state.profile == profile && state.name == name)
      return placeOf(state);
  return std::nullopt;
}

std::optional<Place> StateAccess::binding(std::string_view functionName,
                                          std::string_view name) const {
  if (const Function* function = program_->findFunction(functionName))
    for (const Binding& binding : function->bindings)
      if (binding.name == name)
        return placeOf(binding);
  return std::nullopt;
}

Status StateAccess::read(const Place& place, int64_t first, std::span<char> into) {
  TITAN_TRY(checkRange(place, first, into.size()));
  return source(place).read(first, into);
}

Status StateAccess::copy(const Place& place, std::span<char> into) {
  TITAN_TRY(checkRange(place, 0, into.size()));
  return download(place.offset, into);
}

Status StateAccess::write(const Place& place, int64_t first, std::span<const char> from) {
  TITAN_TRY(checkRange(place, first, from.size()));
  return sink(place).write(first, from);
}

Status StateAccess::fill(const Place& place, char value) {
  passGate(place);
  TITAN_TRY(device_->fill(place.offset, place.bytes, value));
  TITAN_TRY(settle());
  return scalars_.refresh(place.offset, place.bytes);
}

ByteSource StateAccess::source(const Place& place) {
  const std::span<char> window = device_->window(place.offset, place.bytes);
  ByteSource source{std::span<const char>(window)};
  source.access_ = this;
  source.offset_ = place.offset;
  source.bytes_ = place.bytes;
  return source;
}

void StateAccess::passGate(const Place& place) {
  const auto overlaps = [&](const State& state) {
    return state.offset < place.offset + place.bytes && place.offset < state.offset + state.bytes;
  };
  if (device_->hasGate() && std::ranges::any_of(program_->states, overlaps))
    device_->passGate();
}

ByteSink StateAccess::sink(const Place& place) {
  passGate(place);
  ByteSink sink(device_->window(place.offset, place.bytes));
  sink.access_ = this;
  sink.offset_ = place.offset;
  sink.bytes_ = place.bytes;
  return sink;
}

ByteSource StateAccess::valid(const State& state) {
  return withoutPadding(source(placeOf(state)), part(state), byteSize(state.dtype));
}

Result<Scalar> StateAccess::scalar(const Place& place) {
  if (place.bytes != byteSize(place.dtype))
    return Error::internal("a place of {} bytes is no scalar of {}", place.bytes,
                           name(place.dtype));
  return scalars_.add(place.offset, place.dtype);
}

Status StateAccess::run(uint32_t function, CommandObserver* observer) {
  TITAN_TRY(begin(function, observer));
  while (finished_ < begun_)
    TITAN_TRY(finish());
  return {};
}

Status StateAccess::begin(uint32_t function, CommandObserver* observer) {
  if (begun_ - finished_ == ScalarPage::mostRuns)
    return Error::internal("{} runs are begun and none of them is finished", ScalarPage::mostRuns);
  TITAN_TRY(scalars_.send(begun_));
  TITAN_TRY(device_->run(function, observer));
  TITAN_TRY(scalars_.fetch(begun_));
  ends_[begun_ % ScalarPage::mostRuns] = device_->record();
  ++begun_;
  return {};
}

Status StateAccess::finish() {
  if (finished_ == begun_)
    return Error::internal("no run is begun");
  TITAN_TRY(device_->wait(ends_[finished_ % ScalarPage::mostRuns]));
  scalars_.take(finished_);
  ++finished_;
  return {};
}

Status StateAccess::download(int64_t offset, std::span<char> into) {
  TITAN_TRY(device_->download(offset, into));
  return settle();
}

Status StateAccess::upload(int64_t offset, std::span<const char> from) {
  TITAN_TRY(device_->upload(offset, from));
  TITAN_TRY(settle());
  return scalars_.refresh(offset, static_cast<int64_t>(from.size()));
}

Result<Transfer> StateAccess::begin(int64_t offset, std::span<const char> from) {
  TITAN_TRY(device_->upload(offset, from));
  return Transfer(*this, device_->record().number);
}

int64_t StateAccess::ringBytesOf(const Program& program) {
  const int64_t states = (program.stateBytes + pieceBytes - 1) / pieceBytes * pieceBytes;
  return std::clamp(states, pieceBytes, ringBytes);
}

Status StateAccess::makeRing() {
  if (ring_.empty())
    ring_ = TITAN_TRY(device_->hostBuffer(ringBytesOf(*program_)));
  return {};
}

std::span<char> StateAccess::staged(int64_t piece, int64_t bytes) const {
  const auto slot = piece % static_cast<int64_t>(ringPieces());
  return ring_.subspan(static_cast<size_t>(slot * pieceBytes),
                       static_cast<size_t>(std::min(pieceBytes, bytes - piece * pieceBytes)));
}

Status StateAccess::forEachPiece(int64_t offset, int64_t bytes,
                                 const std::function<Status(std::span<const char>)>& see) {
  TITAN_TRY(makeRing());
  const int64_t pieces = (bytes + pieceBytes - 1) / pieceBytes;
  std::deque<Device::Event> coming;
  int64_t asked = 0;
  Status status;
  for (int64_t piece = 0; status.ok() && piece < pieces; ++piece) {
    for (; asked < std::min(pieces, piece + static_cast<int64_t>(ringPieces())); ++asked) {
      TITAN_TRY(device_->download(offset + asked * pieceBytes, staged(asked, bytes)));
      coming.push_back(device_->record());
    }
    TITAN_TRY(device_->wait(coming.front()));
    coming.pop_front();
    status = see(staged(piece, bytes));
  }
  // Nothing comes to the ring any more.
  if (!coming.empty())
    TITAN_TRY(device_->wait(coming.back()));
  return status;
}

Status StateAccess::fillPieces(int64_t offset, int64_t bytes,
                               const std::function<Status(int64_t first, std::span<char>)>& make) {
  TITAN_TRY(makeRing());
  std::deque<Device::Event> going;
  Status status;
  for (int64_t first = 0; status.ok() && first < bytes; first += pieceBytes) {
    if (going.size() == ringPieces()) {
      TITAN_TRY(device_->wait(going.front()));
      going.pop_front();
    }
    const std::span<char> piece = staged(first / pieceBytes, bytes);
    status = make(first, piece);
    if (status.ok()) {
      TITAN_TRY(device_->upload(offset + first, piece));
      going.push_back(device_->record());
    }
  }
  if (!going.empty())
    TITAN_TRY(device_->wait(going.back()));
  TITAN_TRY(std::move(status));
  return scalars_.refresh(offset, bytes);
}

} // namespace titan
