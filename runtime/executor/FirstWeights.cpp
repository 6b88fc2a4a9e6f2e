#include "runtime/executor/FirstWeights.h"

#include "runtime/program/Collective.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

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

/// States whose bytes in the model file go to windows as they are.
class StatesInPlace {
public:
  void add(const State& state, const ByteSink& window) { places_.push_back({&state, window}); }

  /// A thread reads one state at a time, as the digest of its bytes goes from the first to the
  /// last; the largest come first, so that the threads end together.
  Status read(const InitialStateSources& sources, ThreadPool& pool) {
    std::ranges::stable_sort(places_, std::greater(),
                             [](const InPlace& place) { return place.window.bytes(); });
    std::vector<Status> statuses(places_.size());
    std::atomic<size_t> next = 0;
    pool.parallelFor(pool.threads(), 1, [&](int64_t, int64_t) {
      for (size_t i = next++; i < places_.size(); i = next++)
        statuses[i] = writeInitialState(*places_[i].state, sources, pool, places_[i].window);
    });
    for (Status& status : statuses)
      TITAN_TRY(std::move(status));
    return {};
  }

private:
  struct InPlace {
    const State* state;
    ByteSink window;
  };
  std::vector<InPlace> places_;
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
  StatesInPlace inPlace;
  int64_t stored = 0;
  for (const State& state : access.program().states) {
    const ByteSink memory = access.sink(placeOf(state));
    if (!isStored(state)) {
      if (mine.ok())
        mine = drawInitialState(state, access.part(state), sources.seed, pool, memory);
      continue;
    }
    if (peers.isAlone()) {
      if (isStoredInPlace(state) && !memory.direct().empty())
        inPlace.add(state, memory);
      else
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
  TITAN_TRY(inPlace.read(sources, pool));
  return peers.agree(firstWeightsName, std::move(mine));
}

} // namespace titan
