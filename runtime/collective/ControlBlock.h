// What the ranks of one host, and who started them, tell each other: a block of shared memory with
// a fixed layout.
//
//   pages 0, 1       magic, version, ranks, bytes; the failure; the run directory
//   then             one RankSlot a rank
//   then             one window a rank: two halves of `windowBytes`
//
// A window is what its rank lets the others read besides the program's staging: host-side messages,
// and parts of sums. The staging of all ranks lies behind the block, in the same file.
#pragma once

#include "runtime/collective/Mapping.h"
#include "runtime/collective/SharedText.h"
#include "runtime/collective/Word.h"
#include "runtime/program/Error.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace titan {

/// Of the flight recorder: a collective that a rank started (FlightRecorder.h reads it). `check` is
/// a digest of the offsets of its sources. Times are nanoseconds of the monotonic clock, 0: not
/// yet.
struct FlightRecord {
  std::atomic<uint32_t> collective{0}, check{0};
  std::atomic<int64_t> step{-1}, started{0}, waited{0}, done{0};
  SharedText name;
};

struct RankSlot {
  static constexpr size_t records = 64;

  Word started; ///< collectives that the rank has started: their sources are ready
  Word phase;   ///< steps of its waits: see Rendezvous

  alignas(64) std::atomic<int32_t> pid{0}; ///< 0: not there yet, or a thread
  SharedText host;                         ///< where the block is one of several; else empty
  std::atomic<uint32_t> attached{0};
  std::atomic<uint32_t> finished{0}; ///< it may end now
  std::atomic<uint64_t> beats{0};    ///< raised ten times a second while the process lives
  std::atomic<uint64_t> progress{0}; ///< what it has got done without waits: progressSoFar()
  std::atomic<uint64_t> warned{0};   ///< others were told that it stands still, at so much done
  std::atomic<int64_t> step{-1};     ///< -1: none yet

  alignas(64) std::atomic<uint64_t> waits{0}; ///< that it has entered, the last as waitName
  std::atomic<uint32_t> waiting{0};           ///< it sleeps there
  SharedText waitName;
  std::atomic<int64_t> waited{0}; ///< nanoseconds in all

  /// Grows with every wait and all that is done in between.
  uint64_t done() const {
    return waits.load(std::memory_order_relaxed) + progress.load(std::memory_order_relaxed);
  }

  /// By who mirrors the slot, from news of any age.
  void raiseWaited(int64_t nanoseconds) {
    int64_t seen = waited.load(std::memory_order_relaxed);
    while (seen < nanoseconds && !waited.compare_exchange_weak(seen, nanoseconds))
      ;
  }

  std::atomic<uint64_t> recorded{0};          ///< collectives in the recorder, and before
  std::array<FlightRecord, records> recorder; ///< the n-th collective is at n % records
};

constexpr int64_t nobody = -1;

/// The first failure of a job.
struct Failure {
  int code = 0;      ///< the job's exit code
  int64_t rank = 0;  ///< at fault, or nobody
  bool told = false; ///< the rank at fault says itself what happened
  std::string message;
};

class ControlBlock {
public:
  static constexpr uint32_t version = 3;
  static constexpr int64_t maxRanks = 1024;
  static constexpr int64_t windowBytes = int64_t{1} << 19; ///< of one half

  /// Whole pages.
  static int64_t bytesFor(int64_t ranks);
  /// Makes a block of `memory`, which is zero: bytesFor(ranks). `crowded`: there are more ranks
  /// than CPUs, so who waits sleeps soon.
  static ControlBlock initialize(char* memory, int64_t ranks, bool crowded);
  /// The block at the begin of a file. Environment where there is none, of another version, or for
  /// another number of ranks.
  static Result<Mapping> map(int file, int64_t ranks);
  /// The block in what map() gave.
  explicit ControlBlock(const Mapping& mapping) : memory_(mapping.data()) {}

  int64_t ranks() const;
  bool isCrowded() const;
  RankSlot& slot(int64_t rank) const;
  char* window(int64_t rank, int half) const;

  /// Has anything failed? One load.
  bool hasFailed() const;
  std::optional<Failure> failure() const;
  /// Records a failure, if it is the first, and wakes all ranks.
  bool fail(const Failure& failure) const;
  /// As fail(), and where a rank that was about to record a failure died over it, in its place.
  void failAnyway(const Failure& failure) const;

  /// The absolute path of a directory where what ranks did last may be written after a failure.
  /// One rank says it, once; a path that is too long is nowhere.
  void setRunDirectory(std::string_view path) const;
  /// Empty: there is none.
  std::string runDirectory() const;

private:
  struct Header;
  explicit ControlBlock(char* memory) : memory_(memory) {}
  Header& header() const;
  void write(const Failure& failure) const;

  char* memory_;
};

} // namespace titan
