#include "runtime/collective/LocalCommunicator.h"

#include "runtime/collective/HostMessages.h"
#include "runtime/collective/Sum.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace titan {
namespace {

/// A second thread does not pay below as many lines for each.
constexpr int64_t linesPerThread = (int64_t{1} << 18) / Lines::lineBytes;
constexpr int64_t windowLines = ControlBlock::windowBytes / Lines::lineBytes;

/// visit(part, whole, count): elements [begin, end) of one rank's part, row by row: where each run
/// lies in the part and in the whole, and how long it is.
template <typename Piece, typename Visit>
void forRuns(const Piece& piece, int64_t place, int64_t begin, int64_t end, Visit&& visit) {
  while (begin < end) {
    const int64_t row = begin / piece.row, column = begin % piece.row;
    const int64_t count = std::min(piece.row - column, end - begin);
    visit(begin, row * piece.stride + place * piece.row + column, count);
    begin += count;
  }
}

} // namespace

LocalCommunicator::LocalCommunicator(ControlBlock block, int64_t rank, ThreadPool* pool,
                                     const CommDelay& delay)
    : Communicator(rank, block.ranks()), meeting_(block, rank), pool_(pool), delay_(delay),
      everyone_(static_cast<size_t>(block.ranks())) {
  std::iota(everyone_.begin(), everyone_.end(), int64_t{0});
}

void LocalCommunicator::setStaging(std::span<char> mine, std::vector<const char*> peers) {
  staging_ = mine;
  peers_ = std::move(peers);
}

// Preparation.

Status LocalCommunicator::setCollectives(std::span<const Collective> collectives,
                                         std::span<const MeshAxis> mesh) {
  if (rankCount(mesh) != ranks())
    return Error::internal("the mesh has {} ranks, the communicator {}", rankCount(mesh), ranks());
  collectives_.clear();
  for (const Collective& collective : collectives)
    collectives_.push_back(TITAN_TRY(prepare(collective, mesh)));
  traffic_.assign(collectives.size(), {});
  return {};
}

Result<LocalCommunicator::Prepared>
LocalCommunicator::prepare(const Collective& collective, std::span<const MeshAxis> mesh) const {
  const bool adds = collective.kind != CollectiveKind::AllGather;
  Prepared prepared;
  prepared.kind = collective.kind;
  prepared.order = collective.order;
  prepared.group = groupOf(rank(), collective.axes, mesh);
  prepared.place = std::ranges::find(prepared.group, rank()) - prepared.group.begin();
  prepared.name = FixedText(fmt::format("{} of {}", toString(collective.kind), collective.label));
  const auto size = static_cast<int64_t>(prepared.group.size());
  if (adds && collective.order == SumOrder::Tree && (size & (size - 1)) != 0)
    return Error::internal("{}: tree order needs a power of two, not {} ranks",
                           prepared.name.view(), size);
  const bool cuts = collective.kind != CollectiveKind::AllReduce;
  for (const CollectivePiece& piece : collective.pieces) {
    if (adds && !canSum(piece.dtype))
      return Error::internal("{}: {} cannot be added", prepared.name.view(), name(piece.dtype));
    if (cuts && piece.inner % size != 0)
      return Error::internal("{}: {} elements are cut for {} ranks", prepared.name.view(),
                             piece.inner, size);
    const int64_t row = cuts ? piece.inner / size : piece.inner;
    prepared.pieces.push_back({piece.dtype, byteSize(piece.dtype), row, piece.inner});
    prepared.sourceBytes.push_back(sourceBytes(collective.kind, piece, size));
    prepared.lines.add(piece.dtype, piece.outer * row);
  }
  prepared.payload = payloadBytes(collective, size);
  prepared.delay = delay_.isNone() ? 0 : delay_.nanoseconds(wireBytes(collective, size));
  prepared.ins.resize(collective.pieces.size());
  prepared.outs.resize(collective.pieces.size());
  return prepared;
}

// Start and wait.

Status LocalCommunicator::checkSources(const Prepared& collective,
                                       std::span<char* const> ins) const {
  for (size_t i = 0; i < ins.size(); ++i) {
    const int64_t bytes = collective.sourceBytes[i];
    if (bytes > 0 &&
        (ins[i] < staging_.data() || ins[i] + bytes > staging_.data() + staging_.size()))
      return Error::internal("{}: source {} lies outside of the staging region",
                             collective.name.view(), i);
  }
  return {};
}

Status LocalCommunicator::start(uint32_t collective, std::span<char* const> ins,
                                std::span<char* const> outs, Ticket& ticket) {
  if (collective >= collectives_.size())
    return Error::internal("collective {} of {}", collective, collectives_.size());
  Prepared& prepared = collectives_[collective];
  if (ins.size() != prepared.ins.size() || outs.size() != prepared.outs.size())
    return Error::internal("{}: {} sources and {} results for {} pieces", prepared.name.view(),
                           ins.size(), outs.size(), prepared.ins.size());
  uint32_t& underWay = underWay_[started_ % maxTickets];
  if (prepared.isStarted || underWay != 0)
    return Error::internal("{}: started again before its wait, or more than {} at once",
                           prepared.name.view(), maxTickets);
  TITAN_TRY(checkSources(prepared, ins));
  std::ranges::copy(ins, prepared.ins.begin());
  std::ranges::copy(outs, prepared.outs.begin());
  prepared.isStarted = true;
  underWay = collective + 1;
  ticket.number = started_;

  recordStart(collective);
  traffic_[collective].payload += prepared.payload;
  meeting_.mine().started.raiseTo(static_cast<uint32_t>(++started_));
  return {};
}

FlightRecord& LocalCommunicator::record(uint64_t ticket) const {
  return meeting_.mine().recorder[ticket % RankSlot::records];
}

void LocalCommunicator::recordStart(uint32_t collective) {
  const Prepared& prepared = collectives_[collective];
  uint32_t check = collective;
  for (char* in : prepared.ins)
    check = (check ^ static_cast<uint32_t>(in - staging_.data())) * 16777619u;
  RankSlot& slot = meeting_.mine();
  FlightRecord& to = record(started_);
  to.collective.store(collective, std::memory_order_relaxed);
  to.check.store(check, std::memory_order_relaxed);
  to.step.store(slot.step.load(std::memory_order_relaxed), std::memory_order_relaxed);
  to.name.store(prepared.name);
  to.started.store(monotonicNow(), std::memory_order_relaxed);
  to.waited.store(0, std::memory_order_relaxed);
  to.done.store(0, std::memory_order_relaxed);
  slot.recorded.store(started_ + 1, std::memory_order_release);
}

Status LocalCommunicator::wait(Ticket ticket) {
  uint32_t& underWay = underWay_[ticket.number % maxTickets];
  if (ticket.number >= started_ || underWay == 0)
    return Error::internal("a wait for collective number {} of {} that were started", ticket.number,
                           started_);
  Prepared& collective = collectives_[underWay - 1];
  Traffic& traffic = traffic_[underWay - 1];
  record(ticket.number).waited.store(monotonicNow(), std::memory_order_relaxed);
  TITAN_TRY(meeting_.enter(collective.name));
  TITAN_TRY(awaitSources(collective, ticket.number));
  switch (collective.kind) {
  case CollectiveKind::AllGather:
    traffic.moved += gather(collective);
    TITAN_TRY(meeting_.meet(collective.group));
    break;
  case CollectiveKind::ReduceScatter:
    traffic.moved += reduceScatter(collective);
    TITAN_TRY(meeting_.meet(collective.group));
    break;
  case CollectiveKind::AllReduce:
    TITAN_TRY(allReduce(collective, traffic));
    break;
  }
  if (collective.delay > 0)
    sleepUntil(collective.lastStart + collective.delay);
  ++traffic.executions;
  record(ticket.number).done.store(monotonicNow(), std::memory_order_relaxed);
  collective.isStarted = false;
  underWay = 0;
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

template <typename Body> int64_t LocalCommunicator::forLines(Lines::Range range, Body&& body) {
  std::atomic<int64_t> moved{0};
  auto part = [&](int64_t begin, int64_t end) {
    moved.fetch_add(body(Lines::Range{range.begin + begin, range.begin + end}),
                    std::memory_order_relaxed);
  };
  if (pool_)
    pool_->parallelFor(range.size(), linesPerThread, part);
  else
    part(0, range.size());
  return moved;
}

const char* LocalCommunicator::sourceOf(const Prepared& collective, size_t place,
                                        size_t piece) const {
  const auto member = static_cast<size_t>(collective.group[place]);
  return peers_[member] + (collective.ins[piece] - staging_.data());
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

int64_t LocalCommunicator::copyFromWindow(const Prepared& collective, Lines::Range part,
                                          const char* window) {
  return forLines(part, [&](Lines::Range lines) {
    int64_t moved = 0;
    collective.lines.forEach(lines, [&](size_t i, int64_t begin, int64_t end, int64_t line) {
      const Prepared::Piece& piece = collective.pieces[i];
      const int64_t bytes = (end - begin) * piece.elementBytes;
      std::memcpy(collective.outs[i] + begin * piece.elementBytes,
                  window + (line - part.begin) * Lines::lineBytes, static_cast<size_t>(bytes));
      moved += bytes;
    });
    return moved;
  });
}

// The host side, and the end.

Status LocalCommunicator::exchange(std::string_view name, std::string_view mine,
                                   std::vector<std::string>& all) {
  return exchangeMessages(meeting_, everyone_, name, mine, all);
}

Status LocalCommunicator::broadcast(std::string_view name, int64_t root, std::span<char> bytes) {
  return broadcastBytes(meeting_, everyone_, name, root, bytes);
}

double LocalCommunicator::waitedSeconds(int64_t rank) const {
  return static_cast<double>(block().slot(rank).waited.load(std::memory_order_relaxed)) / 1e9;
}

void LocalCommunicator::setStep(int64_t step) {
  meeting_.mine().step.store(step, std::memory_order_relaxed);
}

void LocalCommunicator::setRunDirectory(std::string_view path) { block().setRunDirectory(path); }

void LocalCommunicator::fail(const Error& error) {
  if (block().fail({.code = error.exitCode(),
                    .rank = rank(),
                    .told = true,
                    .message = fmt::format("rank {}: {}", rank(), error.message())}))
    failedItself_ = true;
}

bool LocalCommunicator::peerFailed() const { return block().hasFailed() && !failedItself_; }

Status LocalCommunicator::finish() {
  std::vector<std::string> all;
  TITAN_TRY(exchange("the end of the job", {}, all));
  meeting_.mine().finished.store(1, std::memory_order_release);
  return {};
}

} // namespace titan
