// What communicators have in common that keep their state in a control block: the collectives and
// the tickets of those under way, what they count, what ranks remember and say of themselves, the
// failure. How bytes come from one rank to another is a subclass's.
#pragma once

#include "runtime/collective/CommDelay.h"
#include "runtime/collective/Communicator.h"
#include "runtime/collective/ControlBlock.h"
#include "runtime/collective/Lines.h"
#include "runtime/host/ThreadPool.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace titan {

class BlockCommunicator : public Communicator {
public:
  Status setCollectives(std::span<const Collective> collectives,
                        std::span<const MeshAxis> mesh) override;
  Status start(uint32_t collective, std::span<char* const> ins, std::span<char* const> outs,
               Ticket& ticket) override;
  Status wait(Ticket ticket) override;
  std::span<const Traffic> traffic() const override { return traffic_; }
  double waitedSeconds(int64_t rank) const override;
  void setStep(int64_t step) override;
  void setRunDirectory(std::string_view path) override;
  void fail(const Error& error) override;
  bool peerFailed() const override;
  int failureCode() const override;
  Status finish() override;

protected:
  /// A collective, and what of it does not change from one execution to the next.
  struct Prepared {
    struct Piece {
      DType dtype;
      int64_t elementBytes;
      int64_t row;    ///< elements of a row of a part, next to each other
      int64_t stride; ///< elements from one row to the next in the whole
    };
    CollectiveKind kind;
    SumOrder order;
    std::vector<int64_t> group; ///< in its order
    int64_t place;              ///< of this rank in it
    std::vector<Piece> pieces;
    std::vector<int64_t> sourceBytes;
    int64_t payload;
    int64_t delay; ///< nanoseconds
    Lines lines;   ///< of the whole for AllReduce, else of one part
    FixedText name;
    // While it is under way:
    bool isStarted = false;
    int64_t lastStart = 0; ///< of the group; known when all have started
    std::vector<char*> ins, outs;

    int64_t size() const { return static_cast<int64_t>(group.size()); }
  };

  /// The block outlives this object.
  BlockCommunicator(ControlBlock block, int64_t rank, ThreadPool* pool, const CommDelay& delay);

  /// Brings the results of a collective that was started, and counts the bytes that came from
  /// others. Returns when no other rank reads this one's sources any more.
  virtual Status carryOut(Prepared& collective, uint64_t ticket, Traffic& traffic) = 0;

  const ControlBlock& block() const { return block_; }
  RankSlot& mine() const { return block_.slot(rank()); }
  FlightRecord& record(uint64_t ticket) const {
    return mine().recorder[ticket % RankSlot::records];
  }
  std::span<char> staging() const { return staging_; }
  void setStaging(std::span<char> staging) { staging_ = staging; }

  /// visit(part, whole, count): elements [begin, end) of one rank's part, row by row: where each
  /// run lies in the part and in the whole, and how long it is.
  template <typename Visit>
  static void forRuns(const Prepared::Piece& piece, int64_t place, int64_t begin, int64_t end,
                      Visit&& visit) {
    while (begin < end) {
      const int64_t row = begin / piece.row, column = begin % piece.row;
      const int64_t count = std::min(piece.row - column, end - begin);
      visit(begin, row * piece.stride + place * piece.row + column, count);
      begin += count;
    }
  }

  /// The sum of body(range) over ranges that cut `range` for the pool's threads.
  template <typename Body> int64_t forLines(Lines::Range range, Body&& body) {
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

  /// Lines `part` of an all_reduce's results, from where they lie packed. Returns their bytes.
  int64_t copyFromWindow(const Prepared& collective, Lines::Range part, const char* window);

private:
  /// A second thread does not pay below as many lines for each.
  static constexpr int64_t linesPerThread = (int64_t{1} << 18) / Lines::lineBytes;

  Result<Prepared> prepare(const Collective& collective, std::span<const MeshAxis> mesh) const;
  Status checkSources(const Prepared& collective, std::span<char* const> ins) const;
  void recordStart(uint32_t collective);

  ControlBlock block_;
  ThreadPool* pool_;
  CommDelay delay_;
  std::span<char> staging_;
  std::vector<Prepared> collectives_;
  std::vector<Traffic> traffic_;
  uint64_t started_ = 0;
  std::array<uint32_t, maxTickets> underWay_{}; ///< by ticket: 1 + the collective, or 0
  std::atomic<bool> failedItself_{false};       ///< it was this rank that failed first
};

} // namespace titan
