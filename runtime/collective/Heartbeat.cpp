#include "runtime/collective/Heartbeat.h"

#include "runtime/collective/Blame.h"
#include "runtime/program/Process.h"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan {
namespace {

constexpr double longestBeat = 1; // seconds; a longer one was not all ours

} // namespace

Heartbeat::Peer::~Peer() {
  if (process >= 0)
    close(process);
}

Heartbeat::Heartbeat(ControlBlock block, int64_t rank, const WaitLimits& limits, Watch watch)
    : block_(block), rank_(rank), limits_(limits), watch_(watch),
      peers_(static_cast<size_t>(block.ranks())) {}

Result<std::unique_ptr<Heartbeat>> Heartbeat::start(ControlBlock block, int64_t rank,
                                                    const WaitLimits& limits, Watch watch) {
  std::unique_ptr<Heartbeat> heartbeat(new Heartbeat(block, rank, limits, watch));
  heartbeat->thread_ =
      TITAN_TRY(KernelThread::start([heartbeat = heartbeat.get()] { heartbeat->run(); }));
  return heartbeat;
}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard lock(mutex_);
    isStopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Heartbeat::run() {
  std::unique_lock lock(mutex_);
  while (!isStopping_) {
    block_.slot(rank_).beats.fetch_add(1, std::memory_order_relaxed);
    block_.slot(rank_).progress.store(progressSoFar(), std::memory_order_relaxed);
    for (int64_t rank = 0; rank < block_.ranks() && !block_.hasFailed(); ++rank)
      if (rank != rank_ && (watch_ == Watch::All || rank == 0))
        look(rank, peers_[static_cast<size_t>(rank)]);
    if (watch_ == Watch::All) {
      lookForDeadlock();
      lookForStuckRank();
    }
    wake_.wait_for(lock, std::chrono::milliseconds(millisecondsPerBeat),
                   [this] { return isStopping_; });
  }
}

void Heartbeat::look(int64_t rank, Peer& peer) {
  const RankSlot& slot = block_.slot(rank);
  if (!slot.attached || slot.finished)
    return;
  if (hasEnded(slot, peer)) {
    // It may have finished between the two looks.
    if (++peer.ended >= beatsToBeReported && !slot.finished)
      blame(rank, "ended");
    return;
  }
  const uint64_t beats = slot.beats.load(std::memory_order_relaxed);
  peer.still = beats == peer.beats ? peer.still + 1 : 0;
  peer.beats = beats;
  if (peer.still >= beatsToStandStill)
    blame(rank, fmt::format("gave no sign of life for {} s",
                            beatsToStandStill * millisecondsPerBeat / 1000));
}

void Heartbeat::lookForDeadlock() {
  uint64_t waits = 0;
  bool allSleep = true;
  for (int64_t rank = 0; rank < block_.ranks(); ++rank) {
    allSleep &= block_.slot(rank).waiting.load(std::memory_order_acquire) != 0;
    waits += block_.slot(rank).waits.load(std::memory_order_relaxed);
  }
  asleep_ = allSleep && waits == waits_ ? asleep_ + 1 : 0;
  waits_ = waits;
  if (asleep_ >= beatsToDeadlock)
    block_.fail({.code = static_cast<int>(ErrorCode::Internal),
                 .rank = nobody,
                 .told = false,
                 .message = "the ranks wait for each other"});
}

void Heartbeat::lookForStuckRank() {
  // A machine or a process that stood still has not waited.
  const auto now = Clock::now();
  const double seconds =
      std::min(std::chrono::duration<double>(now - lastBeat_).count(), longestBeat);
  lastBeat_ = now;
  double longestWait = 0, longestIdle = 0;
  int64_t stuck = nobody;
  for (int64_t rank = 0; rank < block_.ranks(); ++rank) {
    const RankSlot& slot = block_.slot(rank);
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const uint64_t done = slot.done();
    const bool isWaiting = slot.waiting.load(std::memory_order_acquire) != 0;
    const bool hasChanged = done != peer.done || isWaiting != peer.isWaiting;
    peer.idle = hasChanged ? 0 : peer.idle + seconds;
    peer.done = done;
    peer.isWaiting = isWaiting;
    if (isWaiting) {
      longestWait = std::max(longestWait, peer.idle);
    } else if (!slot.finished && peer.idle > longestIdle) {
      longestIdle = peer.idle;
      stuck = rank;
    }
  }
  const double limit = std::min(longestWait, longestIdle);
  if (block_.hasFailed())
    return;
  if (limits_.killAfter > 0 && limit >= static_cast<double>(limits_.killAfter))
    blame(stuck, idleText(stuck, limits_.killAfter) + " (mesh.kill_after)");
  else if (limits_.warnAfter > 0 && limit >= static_cast<double>(limits_.warnAfter))
    warnOf(stuck);
}

/// Once, whoever of the ranks sees it first.
void Heartbeat::warnOf(int64_t rank) {
  RankSlot& slot = block_.slot(rank);
  const uint64_t at = slot.done() + 1;
  if (slot.warned.exchange(at) == at)
    return;
  // The progress line of a terminal stays as it is.
  tell("{}note: {} {}{}; {}\n", isatty(STDERR_FILENO) ? "\n" : "", whoIs(block_, rank),
       idleText(rank, limits_.warnAfter), inStep(block_, rank), whoWaits(block_, rank));
}

std::string Heartbeat::idleText(int64_t rank, int64_t limit) const {
  const RankSlot& slot = block_.slot(rank);
  if (!slot.attached)
    return fmt::format("has not joined the others, which wait for {} s", limit);
  const std::string last = slot.waitName.load();
  return fmt::format("lets the others wait for {} s{}", limit,
                     last.empty() ? "" : fmt::format(", since it left '{}'", last));
}

bool Heartbeat::hasEnded(const RankSlot& slot, Peer& peer) {
  if (!slot.host.load().empty()) // its number says nothing here
    return false;
  if (peer.process < 0)
    peer.process = static_cast<int>(syscall(SYS_pidfd_open, slot.pid.load(), 0));
  if (peer.process < 0)
    return errno == ESRCH; // where there are no pidfds, the beats tell it
  pollfd ended = {.fd = peer.process, .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) > 0;
}

void Heartbeat::blame(int64_t rank, std::string what) {
  block_.fail({.code = static_cast<int>(ErrorCode::RunFailed),
               .rank = rank,
               .told = false,
               .message = whoIs(block_, rank) + " " + what + inStep(block_, rank)});
}

} // namespace titan
