#include "runtime/collective/LocalCommunicator.h"

#include "runtime/collective/HostMessages.h"
#include "runtime/collective/Sum.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace titan {
namespace {

constexpr int64_t windowLines = ControlBlock::windowBytes / Lines::lineBytes;

} // namespace

LocalCommunicator::LocalCommunicator(ControlBlock block, int64_t rank, ThreadPool* pool,
                                     const CommDelay& delay)
    : BlockCommunicator(block, rank, pool, delay), meeting_(block, rank),
      everyone_(static_cast<size_t>(block.ranks())) {
  std::iota(everyone_.begin(), everyone_.end(), int64_t{0});
}

void LocalCommunicator::setStaging(std::span<char> mine, std::vector<const char*> peers) {
  BlockCommunicator::setStaging(mine);
  peers_ = std::move(peers);
}

Status LocalCommunicator::carryOut(Prepared& collective, uint64_t ticket, Traffic& traffic) {
  TITAN_TRY(meeting_.enter(collective.name));
  TITAN_TRY(awaitSources(collective, ticket));
  switch (collective.kind) {
  case CollectiveKind::AllGather:
    traffic.moved += gather(collective);
    return meeting_.meet(collective.group);
  case CollectiveKind::ReduceScatter:
    traffic.moved += reduceScatter(collective);
    return meeting_.meet(collective.group);
  case CollectiveKind::AllReduce:
    return allReduce(collective, traffic);
  }
  return {};
}

/// Until all of the group have started the same collective, on buffers at the same places.
Status LocalCommunicator::awaitSources(Prepared& collective, uint64_t ticket) {
  const FlightRecord& mine = record(ticket);
  collective.lastStart = 0;
  for (int64_t member : collective.group) {
    TITAN_TRY(meeting_.awaitStarted(member, static_cast<uint32_t>(ticket + 1)));
    const FlightRecord& theirs = block().slot(member).recorder[ticket % RankSlot::records];
    if (theirs.collective.load(std::memory_order_relaxed) !=
            mine.collective.load(std::memory_order_relaxed) ||
        theirs.check.load(std::memory_order_relaxed) != mine.check.load(std::memory_order_relaxed))
      return Error::internal("rank {} started collective {} where rank {} started {}, or has its "
                             "sources elsewhere",
                             member, theirs.collective.load(), rank(), mine.collective.load());
    collective.lastStart =
        std::max(collective.lastStart, theirs.started.load(std::memory_order_relaxed));
  }
  return {};
}

Status LocalCommunicator::allReduce(const Prepared& collective, Traffic& traffic) {
  const auto size = static_cast<int64_t>(collective.group.size());
  const Lines::Range all = collective.lines.all();
  TITAN_TRY(meeting_.claimWindow());
  int half = 0;
  for (int64_t begin = 0; begin < all.end; begin += size * windowLines, half ^= 1) {
    const Lines::Range round = {begin, std::min(all.end, begin + size * windowLines)};
    traffic.moved +=
        addToWindow(collective, round.part(collective.place, size), meeting_.window(rank(), half));
    const uint32_t phase = meeting_.advance();
    for (int64_t i = 1; i < size; ++i) {
      const int64_t place = (collective.place + i) % size;
      const int64_t member = collective.group[static_cast<size_t>(place)];
      TITAN_TRY(meeting_.awaitPhase(member, phase));
      traffic.moved +=
          copyFromWindow(collective, round.part(place, size), meeting_.window(member, half));
    }
  }
  meeting_.releaseWindows(collective.group);
  return {};
}

// The loops over memory. Bytes of other ranks are counted where they are read.

const char* LocalCommunicator::sourceOf(const Prepared& collective, size_t place,
                                        size_t piece) const {
  const auto member = static_cast<size_t>(collective.group[place]);
  return peers_[member] + (collective.ins[piece] - staging().data());
}

int64_t LocalCommunicator::gather(const Prepared& collective) {
  return forLines(collective.lines.all(), [&](Lines::Range lines) {
    int64_t moved = 0;
    collective.lines.forEach(lines, [&](size_t i, int64_t begin, int64_t end, int64_t) {
      const Prepared::Piece& piece = collective.pieces[i];
      for (size_t place = 0; place < collective.group.size(); ++place) {
        const char* source = sourceOf(collective, place, i);
        const bool isOther = collective.group[place] != rank();
        forRuns(piece, static_cast<int64_t>(place), begin, end,
                [&](int64_t part, int64_t whole, int64_t count) {
                  const int64_t bytes = count * piece.elementBytes;
                  std::memcpy(collective.outs[i] + whole * piece.elementBytes,
                              source + part * piece.elementBytes, static_cast<size_t>(bytes));
                  moved += isOther ? bytes : 0;
                });
      }
    });
    return moved;
  });
}

/// sum[0 ...] = the group's terms from byte `at` of piece `i` on. Returns the bytes of other ranks.
int64_t LocalCommunicator::add(const Prepared& collective, size_t i, int64_t at, int64_t count,
                               char* sum) const {
  const Prepared::Piece& piece = collective.pieces[i];
  const char* terms[ControlBlock::maxRanks];
  int64_t moved = 0;
  for (size_t place = 0; place < collective.group.size(); ++place) {
    terms[place] = sourceOf(collective, place, i) + at;
    moved += collective.group[place] != rank() ? count * piece.elementBytes : 0;
  }
  addTerms(piece.dtype, collective.order, {terms, collective.group.size()}, sum, count);
  return moved;
}

int64_t LocalCommunicator::reduceScatter(const Prepared& collective) {
  return forLines(collective.lines.all(), [&](Lines::Range lines) {
    int64_t moved = 0;
    collective.lines.forEach(lines, [&](size_t i, int64_t begin, int64_t end, int64_t) {
      const Prepared::Piece& piece = collective.pieces[i];
      forRuns(piece, collective.place, begin, end, [&](int64_t part, int64_t whole, int64_t count) {
        moved += add(collective, i, whole * piece.elementBytes, count,
                     collective.outs[i] + part * piece.elementBytes);
      });
    });
    return moved;
  });
}

int64_t LocalCommunicator::addToWindow(const Prepared& collective, Lines::Range part,
                                       char* window) {
  return forLines(part, [&](Lines::Range lines) {
    int64_t moved = 0;
    collective.lines.forEach(lines, [&](size_t i, int64_t begin, int64_t end, int64_t line) {
      const Prepared::Piece& piece = collective.pieces[i];
      const int64_t at = begin * piece.elementBytes;
      char* sum = window + (line - part.begin) * Lines::lineBytes;
      moved += add(collective, i, at, end - begin, sum);
      std::memcpy(collective.outs[i] + at, sum,
                  static_cast<size_t>((end - begin) * piece.elementBytes));
    });
    return moved;
  });
}

/// One says it in the block of all.
void LocalCommunicator::setRunDirectory(std::string_view path) {
  if (rank() == 0)
    BlockCommunicator::setRunDirectory(path);
}

// The host side.

Status LocalCommunicator::exchange(std::string_view name, std::string_view mine,
                                   std::vector<std::string>& all) {
  return exchangeMessages(meeting_, everyone_, name, mine, all);
}

Status LocalCommunicator::broadcast(std::string_view name, int64_t root, std::span<char> bytes) {
  return broadcastBytes(meeting_, everyone_, name, root, bytes);
}

} // namespace titan
