#include "runtime/collective/mpi/MpiCommunicator.h"

#include "runtime/collective/BlockCommunicator.h"
#include "runtime/collective/Heartbeat.h"
#include "runtime/collective/Sum.h"
#include "runtime/collective/mpi/Hosts.h"
#include "runtime/collective/mpi/Operations.h"
#include "runtime/collective/mpi/Relay.h"
#include "runtime/collective/mpi/Slots.h"

#include <cstring>
#include <map>
#include <vector>

namespace titan {
namespace {

constexpr int64_t broadcastBytes = int64_t{4} << 20; // of one operation

/// What an exchange begins with.
struct MessageHead {
  static constexpr uint64_t isHead = 0x4d45535341474532;
  uint64_t kind = isHead;
  uint64_t length = 0;
  FixedText name;
};

/// A head and the begin of a message, most of which are short.
struct FirstMessage {
  MessageHead head;
  char bytes[1024 - sizeof(MessageHead)];
};
static_assert(sizeof(FirstMessage) == 1024);

class MpiCommunicator final : public BlockCommunicator {
public:
  MpiCommunicator(Mapping memory, ControlBlock block, const MpiOptions& options,
                  const ConnectOptions& connect, Operations operations)
      : BlockCommunicator(block, options.rank, connect.pool, {}), memory_(std::move(memory)),
        operations_(operations), out_(options.ranks), in_(options.ranks),
        first_(static_cast<size_t>(options.ranks)) {}

  /// From here on the others watch whether this process lives, and it watches them.
  Status watch(std::vector<Relay::Link> links, const Relay::Options& options,
               const WaitLimits& limits);

  Status setCollectives(std::span<const Collective> collectives,
                        std::span<const MeshAxis> mesh) override;
  /// Nobody else reads it: sources are packed and sent.
  Status shareStaging(std::span<char> region) override {
    setStaging(region);
    return {};
  }
  Status exchange(std::string_view name, std::string_view mine,
                  std::vector<std::string>& all) override;
  Status broadcast(std::string_view name, int64_t root, std::span<char> bytes) override;
  Status finish() override;

private:
  Status carryOut(Prepared& collective, uint64_t ticket, Traffic& traffic) override;
  Status gather(const Prepared& collective, int group, uint64_t ticket, Traffic& traffic);
  Status reduceScatter(const Prepared& collective, int group, uint64_t ticket, Traffic& traffic);
  Status allReduce(const Prepared& collective, int group, uint64_t ticket, Traffic& traffic);

  Status allToAll(const Prepared& collective, int group, uint64_t ticket, int64_t lines);
  Status allGather(const Prepared& collective, int group, uint64_t ticket, int64_t lines);
  Slots::Head headOf(uint64_t ticket) const;
  Status checkHeads(const Prepared& collective, const Slots::Head& mine, int64_t lines) const;

  void pack(const Prepared& collective, int64_t place, Lines::Range range, char* slot);
  /// Each returns the bytes that came from other ranks.
  int64_t unpack(const Prepared& collective, int64_t place, Lines::Range range, const char* slot);
  int64_t add(const Prepared& collective, Lines::Range range, int64_t lines, char* packed);

  Mapping memory_; ///< of the block
  Operations operations_;
  Slots out_, in_;
  std::vector<FirstMessage> first_;
  std::map<std::vector<int64_t>, int> groups_; ///< of the mesh that this rank is in
  std::vector<int> groupOf_;                   ///< by collective
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<Heartbeat> heartbeat_; ///< of what the relay mirrors, so it ends first
};

Status MpiCommunicator::watch(std::vector<Relay::Link> links, const Relay::Options& options,
                              const WaitLimits& limits) {
  relay_ = TITAN_TRY(Relay::start(block(), rank(), std::move(links), options));
  heartbeat_ = TITAN_TRY(Heartbeat::start(
      block(), rank(), limits, rank() == 0 ? Heartbeat::Watch::All : Heartbeat::Watch::First));
  return {};
}

Status MpiCommunicator::setCollectives(std::span<const Collective> collectives,
                                       std::span<const MeshAxis> mesh) {
  TITAN_TRY(BlockCommunicator::setCollectives(collectives, mesh));
  groupOf_.clear();
  std::map<std::vector<uint8_t>, int> byAxes;
  for (const Collective& collective : collectives) {
    auto [at, isNew] = byAxes.try_emplace(collective.axes, static_cast<int>(byAxes.size()) + 1);
    if (isNew) {
      TITAN_TRY(operations_.enter(FixedText("the groups of the mesh")));
      const std::vector<int64_t> group = titan::groupOf(rank(), collective.axes, mesh);
      TITAN_TRY(operations_.split(at->second, group.front(), rank()));
    }
    groupOf_.push_back(at->second);
  }
  return {};
}

// Collectives.

Status MpiCommunicator::carryOut(Prepared& collective, uint64_t ticket, Traffic& traffic) {
  TITAN_TRY(operations_.enter(collective.name));
  const int group = groupOf_[record(ticket).collective.load(std::memory_order_relaxed)];
  switch (collective.kind) {
  case CollectiveKind::AllGather:
    return gather(collective, group, ticket, traffic);
  case CollectiveKind::ReduceScatter:
    return reduceScatter(collective, group, ticket, traffic);
  case CollectiveKind::AllReduce:
    return allReduce(collective, group, ticket, traffic);
  }
  return {};
}

Status MpiCommunicator::gather(const Prepared& collective, int group, uint64_t ticket,
                               Traffic& traffic) {
  const int64_t most = Slots::lines(collective.size());
  const Lines::Range all = collective.lines.all();
  for (int64_t begin = 0; begin < all.end; begin += most) {
    const Lines::Range round = {begin, std::min(all.end, begin + most)};
    pack(collective, 0, round, out_.linesOf(0, round.size()));
    TITAN_TRY(allGather(collective, group, ticket, round.size()));
    for (int64_t place = 0; place < collective.size(); ++place)
      traffic.moved += unpack(collective, place, round, in_.linesOf(place, round.size()));
  }
  return {};
}

Status MpiCommunicator::reduceScatter(const Prepared& collective, int group, uint64_t ticket,
                                      Traffic& traffic) {
  const int64_t most = Slots::lines(collective.size());
  const Lines::Range all = collective.lines.all();
  for (int64_t begin = 0; begin < all.end; begin += most) {
    const Lines::Range round = {begin, std::min(all.end, begin + most)};
    for (int64_t place = 0; place < collective.size(); ++place)
      pack(collective, place, round, out_.linesOf(place, round.size()));
    TITAN_TRY(allToAll(collective, group, ticket, round.size()));
    traffic.moved += add(collective, round, round.size(), nullptr);
  }
  return {};
}

/// A round is shared out by lines; the parts differ by one line at most.
Status MpiCommunicator::allReduce(const Prepared& collective, int group, uint64_t ticket,
                                  Traffic& traffic) {
  const int64_t size = collective.size(), most = size * Slots::lines(size);
  const Lines::Range all = collective.lines.all();
  for (int64_t begin = 0; begin < all.end; begin += most) {
    const Lines::Range round = {begin, std::min(all.end, begin + most)};
    const int64_t lines = (round.size() + size - 1) / size;
    for (int64_t place = 0; place < size; ++place)
      pack(collective, 0, round.part(place, size), out_.linesOf(place, lines));
    TITAN_TRY(allToAll(collective, group, ticket, lines));
    traffic.moved +=
        add(collective, round.part(collective.place, size), lines, out_.linesOf(0, lines));
    TITAN_TRY(allGather(collective, group, ticket, lines));
    for (int64_t place = 0; place < size; ++place)
      if (place != collective.place)
        traffic.moved +=
            copyFromWindow(collective, round.part(place, size), in_.linesOf(place, lines));
  }
  return {};
}

Status MpiCommunicator::allToAll(const Prepared& collective, int group, uint64_t ticket,
                                 int64_t lines) {
  const Slots::Head head = headOf(ticket);
  for (int64_t place = 0; place < collective.size(); ++place)
    out_.head(place, lines) = head;
  TITAN_TRY(operations_.allToAll(group, out_.data(), in_.data(), Slots::bytesOf(lines)));
  return checkHeads(collective, head, lines);
}

Status MpiCommunicator::allGather(const Prepared& collective, int group, uint64_t ticket,
                                  int64_t lines) {
  const Slots::Head head = headOf(ticket);
  out_.head(0, lines) = head;
  TITAN_TRY(operations_.allGather(group, out_.data(), in_.data(), Slots::bytesOf(lines)));
  return checkHeads(collective, head, lines);
}

Slots::Head MpiCommunicator::headOf(uint64_t ticket) const {
  return {ticket, record(ticket).collective, mine().waited};
}

/// The others are at the same collective. What they have waited is newer than what the relay knows.
Status MpiCommunicator::checkHeads(const Prepared& collective, const Slots::Head& mine,
                                   int64_t lines) const {
  for (int64_t place = 0; place < collective.size(); ++place) {
    const Slots::Head& theirs = in_.head(place, lines);
    const int64_t member = collective.group[static_cast<size_t>(place)];
    if (theirs.ticket != mine.ticket || theirs.collective != mine.collective)
      return Error::internal("rank {} is at collective {}, number {}, where rank {} is at {}, "
                             "number {}",
                             member, theirs.collective, theirs.ticket, rank(), mine.collective,
                             mine.ticket);
    block().slot(member).raiseWaited(theirs.waited);
  }
  return {};
}

// The loops over memory.

/// Lines `range` of the part that is for `place`; the sources of an all_gather are parts.
void MpiCommunicator::pack(const Prepared& collective, int64_t place, Lines::Range range,
                           char* slot) {
  const bool isPart = collective.kind == CollectiveKind::AllGather;
  forLines(range, [&](Lines::Range lines) {
    collective.lines.forEach(lines, [&](size_t i, int64_t begin, int64_t end, int64_t line) {
      const Prepared::Piece& piece = collective.pieces[i];
      char* to = slot + (line - range.begin) * Lines::lineBytes;
      forRuns(piece, place, begin, end, [&](int64_t part, int64_t whole, int64_t count) {
        std::memcpy(to + (part - begin) * piece.elementBytes,
                    collective.ins[i] + (isPart ? part : whole) * piece.elementBytes,
                    static_cast<size_t>(count * piece.elementBytes));
      });
    });
    return int64_t{0};
  });
}

int64_t MpiCommunicator::unpack(const Prepared& collective, int64_t place, Lines::Range range,
                                const char* slot) {
  const bool isOther = place != collective.place;
  return forLines(range, [&](Lines::Range lines) {
    int64_t moved = 0;
    collective.lines.forEach(lines, [&](size_t i, int64_t begin, int64_t end, int64_t line) {
      const Prepared::Piece& piece = collective.pieces[i];
      const char* from = slot + (line - range.begin) * Lines::lineBytes;
      forRuns(piece, place, begin, end, [&](int64_t part, int64_t whole, int64_t count) {
        const int64_t bytes = count * piece.elementBytes;
        std::memcpy(collective.outs[i] + whole * piece.elementBytes,
                    from + (part - begin) * piece.elementBytes, static_cast<size_t>(bytes));
        moved += isOther ? bytes : 0;
      });
    });
    return moved;
  });
}

/// The sums of lines `range` of this rank's part: into its result and, unless it is null, into
/// `packed`.
int64_t MpiCommunicator::add(const Prepared& collective, Lines::Range range, int64_t lines,
                             char* packed) {
  return forLines(range, [&](Lines::Range mine) {
    int64_t moved = 0;
    collective.lines.forEach(mine, [&](size_t i, int64_t begin, int64_t end, int64_t line) {
      const Prepared::Piece& piece = collective.pieces[i];
      const int64_t at = (line - range.begin) * Lines::lineBytes;
      const int64_t bytes = (end - begin) * piece.elementBytes;
      const char* terms[ControlBlock::maxRanks];
      for (int64_t place = 0; place < collective.size(); ++place)
        terms[place] = in_.linesOf(place, lines) + at;
      char* sum = collective.outs[i] + begin * piece.elementBytes;
      addTerms(piece.dtype, collective.order, {terms, collective.group.size()}, sum, end - begin);
      if (packed)
        std::memcpy(packed + at, sum, static_cast<size_t>(bytes));
      moved += bytes * (collective.size() - 1);
    });
    return moved;
  });
}

// The host side.

/// Who is where it should be, with how many bytes.
Status checkHead(const MessageHead& head, int64_t theirs, int64_t mine, std::string_view name) {
  if (head.kind != MessageHead::isHead || head.name.view() != FixedText(name).view())
    return Error::internal("rank {} is at '{}', rank {} at '{}'", theirs, head.name.view(), mine,
                           name);
  return {};
}

Status MpiCommunicator::exchange(std::string_view name, std::string_view mine,
                                 std::vector<std::string>& all) {
  TITAN_TRY(operations_.enter(FixedText(name)));
  FirstMessage first{};
  first.head.length = mine.size();
  first.head.name = name;
  mine.copy(first.bytes, sizeof first.bytes);
  TITAN_TRY(operations_.allGather(0, &first, first_.data(), sizeof first));
  all.assign(first_.size(), {});
  size_t longest = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const MessageHead& head = first_[rank].head;
    TITAN_TRY(checkHead(head, static_cast<int64_t>(rank), this->rank(), name));
    all[rank].resize(head.length);
    std::memcpy(all[rank].data(), first_[rank].bytes, std::min(head.length, sizeof first.bytes));
    longest = std::max<size_t>(longest, head.length);
  }
  const size_t most = in_.size() / all.size();
  for (size_t begin = sizeof first.bytes; begin < longest; begin += most) {
    const size_t part = std::min(most, longest - begin);
    const auto here = [&](size_t length) {
      return std::min(std::max(begin, length), begin + part) - begin;
    };
    if (const size_t bytes = here(mine.size()))
      std::memcpy(out_.data(), mine.data() + begin, bytes);
    TITAN_TRY(operations_.allGather(0, out_.data(), in_.data(), static_cast<int64_t>(part)));
    for (size_t rank = 0; rank < all.size(); ++rank)
      if (const size_t bytes = here(all[rank].size()))
        std::memcpy(all[rank].data() + begin, in_.data() + rank * part, bytes);
  }
  return {};
}

Status MpiCommunicator::broadcast(std::string_view name, int64_t root, std::span<char> bytes) {
  TITAN_TRY(operations_.enter(FixedText(name)));
  MessageHead head;
  head.length = bytes.size();
  head.name = name;
  TITAN_TRY(operations_.broadcast(0, root, &head, sizeof head));
  TITAN_TRY(checkHead(head, root, rank(), name));
  if (head.length != bytes.size())
    return Error::internal("rank {} sends {} bytes at '{}', rank {} expects {}", root, head.length,
                           name, rank(), bytes.size());
  for (size_t begin = 0; begin < bytes.size(); begin += broadcastBytes)
    TITAN_TRY(operations_.broadcast(
        0, root, bytes.data() + begin,
        std::min(broadcastBytes, static_cast<int64_t>(bytes.size() - begin))));
  return {};
}

Status MpiCommunicator::finish() {
  std::vector<std::string> all;
  TITAN_TRY(exchange("the end of the job", {}, all));
  TITAN_TRY(operations_.finalize());
  mine().finished.store(1, std::memory_order_release);
  return {};
}

// Joining.

/// What every rank finds alone is told by rank 0: the others end after it, since the launcher ends
/// all with the first that does.
void leaveItToFirst(const MpiOptions& options, ErrorCode code) {
  if (options.rank == 0 || !options.end)
    return;
  sleepUntil(monotonicNow() + 500'000'000);
  options.end(static_cast<int>(code));
}

Error sizeDiffers(const MpiOptions& options, int64_t size) {
  return Error::environment(
      "{} started {} ranks, and {} sees {}: start the job with the mpirun of {}, or set TITAN_MPI "
      "to the MPI whose mpirun it is",
      options.launcher, options.ranks, options.library, size, options.library);
}

} // namespace

Result<std::unique_ptr<Communicator>> connectMpi(const MpiOptions& options,
                                                 const ConnectOptions& connect) {
  if (!connect.delay.isNone())
    return Error::usage("TITAN_COMM_DELAY is for ranks of titan-run: unset it under mpirun");
  const int64_t rank = options.rank, ranks = options.ranks;
  Mapping memory = TITAN_TRY(Mapping::anonymous(ControlBlock::bytesFor(ranks)));
  const ControlBlock block = ControlBlock::initialize(memory.data(), ranks, options.isCrowded);
  Operations operations(*options.shim, options.library, block, rank);
  const auto [rankHere, size] = TITAN_TRY(operations.init());
  if (size != ranks) {
    leaveItToFirst(options, ErrorCode::Environment);
    return sizeDiffers(options, size);
  }
  if (rankHere != rank)
    return Error::environment("{} calls this process rank {}, {} rank {}", options.launcher, rank,
                              options.library, rankHere);
  const Hosts hosts = TITAN_TRY(Hosts::gather(operations, rank, ranks));
  for (int64_t peer = 0; peer < ranks; ++peer) {
    block.slot(peer).pid = hosts.pid(peer);
    block.slot(peer).host.store(FixedText(hosts.name(peer)));
    block.slot(peer).attached = 1;
  }
  std::vector<Relay::Link> links = TITAN_TRY(connectStar(operations, hosts, rank, ranks));
  auto communicator =
      std::make_unique<MpiCommunicator>(std::move(memory), block, options, connect, operations);
  const bool tells = rank == 0 || hosts.lowestBesidesFirst(rank) == rank;
  TITAN_TRY(communicator->watch(std::move(links),
                                {.tells = tells, .record = options.record, .end = options.end},
                                connect.limits));
  return std::unique_ptr<Communicator>(std::move(communicator));
}

} // namespace titan
