#include "runtime/collective/Heartbeat.h"

#include "runtime/collective/Blame.h"

#include <cerrno>
#include <chrono>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan {

Heartbeat::Peer::~Peer() {
  if (process >= 0)
    close(process);
}

Heartbeat::Heartbeat(ControlBlock block, int64_t rank)
    : block_(block), rank_(rank), peers_(static_cast<size_t>(block.ranks())) {}

Result<std::unique_ptr<Heartbeat>> Heartbeat::start(ControlBlock block, int64_t rank) {
  std::unique_ptr<Heartbeat> heartbeat(new Heartbeat(block, rank));
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
    for (int64_t rank = 0; rank < block_.ranks() && !block_.hasFailed(); ++rank)
      if (rank != rank_)
        look(rank, peers_[static_cast<size_t>(rank)]);
    lookForDeadlock();
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

bool Heartbeat::hasEnded(const RankSlot& slot, Peer& peer) {
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
