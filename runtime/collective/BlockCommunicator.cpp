#include "runtime/collective/BlockCommunicator.h"

#include <cstring>

namespace titan {

BlockCommunicator::BlockCommunicator(ControlBlock block, int64_t rank, ThreadPool* pool,
                                     const CommDelay& delay)
    : Communicator(rank, block.ranks()), block_(block), pool_(pool), delay_(delay) {}

// Preparation.

Status BlockCommunicator::setCollectives(std::span<const Collective> collectives,
                                         std::span<const MeshAxis> mesh) {
  if (rankCount(mesh) != ranks())
    return Error::internal("the mesh has {} ranks, the communicator {}", rankCount(mesh), ranks());
  collectives_.clear();
  for (const Collective& collective : collectives)
    collectives_.push_back(TITAN_TRY(prepare(collective, mesh)));
  traffic_.assign(collectives.size(), {});
  return {};
}

Result<BlockCommunicator::Prepared>
BlockCommunicator::prepare(const Collective& collective, std::span<const MeshAxis> mesh) const {
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

Status BlockCommunicator::checkSources(const Prepared& collective,
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

Status BlockCommunicator::start(uint32_t collective, std::span<char* const> ins,
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
  mine().started.raiseTo(static_cast<uint32_t>(++started_));
  return {};
}

void BlockCommunicator::recordStart(uint32_t collective) {
  const Prepared& prepared = collectives_[collective];
  uint32_t check = collective;
  for (char* in : prepared.ins)
    check = (check ^ static_cast<uint32_t>(in - staging_.data())) * 16777619u;
  RankSlot& slot = mine();
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

Status BlockCommunicator::wait(Ticket ticket) {
  uint32_t& underWay = underWay_[ticket.number % maxTickets];
  if (ticket.number >= started_ || underWay == 0)
    return Error::internal("a wait for collective number {} of {} that were started", ticket.number,
                           started_);
  Prepared& collective = collectives_[underWay - 1];
  Traffic& traffic = traffic_[underWay - 1];
  record(ticket.number).waited.store(monotonicNow(), std::memory_order_relaxed);
  TITAN_TRY(carryOut(collective, ticket.number, traffic));
  if (collective.delay > 0)
    sleepUntil(collective.lastStart + collective.delay);
  ++traffic.executions;
  record(ticket.number).done.store(monotonicNow(), std::memory_order_relaxed);
  collective.isStarted = false;
  underWay = 0;
  return {};
}

int64_t BlockCommunicator::copyFromWindow(const Prepared& collective, Lines::Range part,
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

// The end.

double BlockCommunicator::waitedSeconds(int64_t rank) const {
  return static_cast<double>(block().slot(rank).waited.load(std::memory_order_relaxed)) / 1e9;
}

void BlockCommunicator::setStep(int64_t step) {
  mine().step.store(step, std::memory_order_relaxed);
}

void BlockCommunicator::setRunDirectory(std::string_view path) { block().setRunDirectory(path); }

void BlockCommunicator::fail(const Error& error) {
  if (block().fail({.code = error.exitCode(),
                    .rank = rank(),
                    .told = true,
                    .message = fmt::format("rank {}: {}", rank(), error.message())}))
    failedItself_ = true;
}

int BlockCommunicator::failureCode() const {
  const std::optional<Failure> failure = block().failure();
  return failure ? failure->code : 0;
}

bool BlockCommunicator::peerFailed() const { return block().hasFailed() && !failedItself_; }

Status BlockCommunicator::finish() {
  std::vector<std::string> all;
  TITAN_TRY(exchange("the end of the job", {}, all));
  mine().finished.store(1, std::memory_order_release);
  return {};
}

} // namespace titan
