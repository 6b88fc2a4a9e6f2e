#include "runtime/executor/FirstWeights.h"

#include "runtime/program/Collective.h"

#include <cstring>

namespace titan {
namespace {

/// A tensor on its way from its owner to all ranks: in pieces of StateAccess::pieceBytes, each with
/// a byte behind it that is not 0 where the owner has failed and nothing more comes.
class Round {
public:
  Round(const State& state, StateAccess& access, Peers& peers, int64_t owner)
      : overlap_(Part::whole(state.shape), access.part(state)),
        memory_(access.sink(placeOf(state))), elementBytes_(byteSize(state.dtype)),
        bytes_(elementCount(state.shape) * elementBytes_), peers_(peers), owner_(owner) {}

  /// The owner's part. `failure` is what it met before, or meets here. False: the others know it.
  Result<bool> send(const State& state, const InitialStateSources& sources, ThreadPool& pool,
                    Status& failure) {
    const ByteSink whole =
        ByteSink::taken(bytes_, [&](int64_t first, std::span<const char> piece) -> Status {
          std::memcpy(room(piece.size()).data(), piece.data(), piece.size());
          lost_ = pass(first, /*failed=*/false);
          return lost_;
        });
    if (failure.ok())
      failure = writeInitialState(state, sources, pool, whole);
    TITAN_TRY(lost_);
    if (failure.ok() || passed_ == bytes_)
      return true;
    room(nextBytes());
    TITAN_TRY(pass(passed_, /*failed=*/true));
    return false;
  }

  /// Of all other ranks. False: the owner has failed.
  Result<bool> receive() {
    while (passed_ < bytes_) {
      room(nextBytes());
      TITAN_TRY(pass(passed_, /*failed=*/false));
      if (buffer_.back() != 0)
        return false;
    }
    return true;
  }

private:
  size_t nextBytes() const {
    return static_cast<size_t>(std::min(StateAccess::pieceBytes, bytes_ - passed_));
  }
  std::span<char> room(size_t bytes) {
    buffer_.assign(bytes + 1, '\0');
    return std::span<char>(buffer_).first(bytes);
  }

  Status pass(int64_t first, bool failed) {
    buffer_.back() = static_cast<char>(failed);
    TITAN_TRY(peers_.broadcast(firstWeightsName, owner_, buffer_));
    if (buffer_.back() != 0)
      return {};
    const auto piece = std::span<const char>(buffer_).first(buffer_.size() - 1);
    passed_ = first + static_cast<int64_t>(piece.size());
    return copyInto(overlap_, elementBytes_, first / elementBytes_, piece, memory_);
  }

  Overlap overlap_;
  ByteSink memory_;
  int64_t elementBytes_, bytes_;
  Peers& peers_;
  int64_t owner_;
  int64_t passed_ = 0;
  std::string buffer_;
  Status lost_; ///< what ended the exchange itself
};

} // namespace

Traffic firstWeightsTraffic(const Program& program, int64_t rank) {
  Traffic traffic;
  const int64_t ranks = rankCount(program.mesh);
  int64_t stored = 0;
  for (const State& state : program.states) {
    if (!isStored(state) || ranks == 1)
      continue;
    const int64_t bytes = elementCount(state.shape) * byteSize(state.dtype);
    const int64_t pieces = (bytes + StateAccess::pieceBytes - 1) / StateAccess::pieceBytes;
    traffic.executions += pieces;
    (stored++ % ranks == rank ? traffic.payload : traffic.moved) += bytes + pieces; // with flags
  }
  return traffic;
}

Status writeFirstWeights(StateAccess& access, const InitialStateSources& sources, ThreadPool& pool,
                         Peers& peers) {
  Status mine; // what this rank alone has met: it goes on until the others know
  int64_t stored = 0;
  for (const State& state : access.program().states) {
    const ByteSink memory = access.sink(placeOf(state));
    if (!isStored(state)) {
      if (mine.ok())
        mine = drawInitialState(state, access.part(state), sources.seed, pool, memory);
      continue;
    }
    if (peers.isAlone()) {
      TITAN_TRY(writeInitialState(state, sources, pool, memory));
      continue;
    }
    const int64_t owner = stored++ % peers.count();
    Round round(state, access, peers, owner);
    const bool goesOn = owner == peers.rank() ? TITAN_TRY(round.send(state, sources, pool, mine))
                                              : TITAN_TRY(round.receive());
    if (!goesOn)
      break;
  }
  return peers.agree(firstWeightsName, std::move(mine));
}

} // namespace titan
