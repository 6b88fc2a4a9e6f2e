// Shows the other ranks of the host that this process lives, and sees which of them do not.
#pragma once

#include "runtime/collective/ConnectOptions.h"
#include "runtime/collective/ControlBlock.h"
#include "runtime/host/KernelThread.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace titan {

/// A thread that beats ten times a second. With each beat it looks at the others: one whose beats
/// stand still over 50 of ours (a stopped process), or that ended before finish() without anybody
/// having said so over 10 of ours, is the job's failure. So it is when all ranks sleep in waits
/// over 60 beats, for each other. A rank that lives, waits for nobody and gets nothing done is told
/// of when others wait longer than the limits.
class Heartbeat {
public:
  static constexpr int millisecondsPerBeat = 100;
  static constexpr int beatsToStandStill = 50;
  static constexpr int beatsToDeadlock = 60;   ///< later than a peer that is stopped in a wait
  static constexpr int beatsToBeReported = 10; ///< who started the ranks knows why one ended

  /// What is looked for: all of it, or whether rank 0 beats, where the block has no other's slot.
  enum class Watch { All, First };

  /// Environment when the thread cannot be started.
  static Result<std::unique_ptr<Heartbeat>>
  start(ControlBlock block, int64_t rank, const WaitLimits& limits, Watch watch = Watch::All);
  ~Heartbeat();

private:
  /// What this rank has seen of another.
  struct Peer {
    Peer() = default;
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer();

    int process = -1; ///< a pidfd
    uint64_t beats = 0;
    int still = 0; ///< of our beats, without one of its own
    int ended = 0; ///< of our beats, since it has ended
    uint64_t done = 0;
    bool isWaiting = false;
    double idle = 0; ///< seconds of our life, since one of the two changed
  };
  using Clock = std::chrono::steady_clock;

  Heartbeat(ControlBlock block, int64_t rank, const WaitLimits& limits, Watch watch);
  void run();
  void look(int64_t rank, Peer& peer);
  void lookForDeadlock();
  void lookForStuckRank();
  void warnOf(int64_t rank);
  std::string idleText(int64_t rank, int64_t limit) const;
  bool hasEnded(const RankSlot& slot, Peer& peer);
  void blame(int64_t rank, std::string what);

  ControlBlock block_;
  int64_t rank_;
  WaitLimits limits_;
  Watch watch_;
  std::vector<Peer> peers_; ///< by rank, this one too
  Clock::time_point lastBeat_ = Clock::now();
  uint64_t waits_ = 0; ///< that all ranks together have entered
  int asleep_ = 0;     ///< for so many beats all ranks sleep in the same waits
  std::mutex mutex_;
  std::condition_variable wake_;
  bool isStopping_ = false;
  KernelThread thread_;
};

} // namespace titan
