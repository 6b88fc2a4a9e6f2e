// Ranks that read each other's memory: threads of a process, or processes of a host.
//
// An all_gather copies the others' parts out of their sources, a reduce_scatter adds this rank's
// part out of them. An all_reduce goes by rounds, as large as the windows of the group together:
// each rank adds its part of the round into its window, and copies the others' parts out of theirs.
// So a group of r moves (r - 1) n bytes, twice for all_reduce, and needs no memory that grows with
// the operand.
#pragma once

#include "runtime/collective/CommDelay.h"
#include "runtime/collective/Communicator.h"
#include "runtime/collective/Lines.h"
#include "runtime/collective/Rendezvous.h"
#include "runtime/host/ThreadPool.h"

#include <array>
#include <atomic>

namespace titan {

class LocalCommunicator : public Communicator {
public:
  Status setCollectives(std::span<const Collective> collectives,
                        std::span<const MeshAxis> mesh) override;
  Status start(uint32_t collective, std::span<char* const> ins, std::span<char* const> outs,
               Ticket& ticket) override;
  Status wait(Ticket ticket) override;
  Status exchange(std::string_view name, std::string_view mine,
                  std::vector<std::string>& all) override;
  Status broadcast(std::string_view name, int64_t root, std::span<char> bytes) override;
  std::span<const Traffic> traffic() const override { return traffic_; }
  double waitedSeconds(int64_t rank) const override;
  void setStep(int64_t step) override;
  void setRunDirectory(std::string_view path) override;
  void fail(const Error& error) override;
  bool peerFailed() const override;
  Status finish() override;

protected:
  /// The block outlives this object.
  LocalCommunicator(ControlBlock block, int64_t rank, ThreadPool* pool, const CommDelay& delay);

  /// `peers[r]`: where this rank reads the staging of rank r; its own is `mine`.
  void setStaging(std::span<char> mine, std::vector<const char*> peers);
  const ControlBlock& block() const { return meeting_.block(); }

private:
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
  };

  Result<Prepared> prepare(const Collective& collective, std::span<const MeshAxis> mesh) const;
  Status checkSources(const Prepared& collective, std::span<char* const> ins) const;
  FlightRecord& record(uint64_t ticket) const;
  void recordStart(uint32_t collective);
  Status awaitSources(Prepared& collective, uint64_t ticket);
  Status allReduce(const Prepared& collective, Traffic& traffic);

  // The loops over memory. Each returns the bytes that it read from other ranks.
  int64_t gather(const Prepared& collective);
  int64_t reduceScatter(const Prepared& collective);
  int64_t addToWindow(const Prepared& collective, Lines::Range part, char* window);
  int64_t copyFromWindow(const Prepared& collective, Lines::Range part, const char* window);
  int64_t add(const Prepared& collective, size_t piece, int64_t at, int64_t count, char* sum) const;
  /// The sum of body(range) over ranges that cut `range` for the pool's threads.
  template <typename Body> int64_t forLines(Lines::Range range, Body&& body);
  const char* sourceOf(const Prepared& collective, size_t place, size_t piece) const;

  Rendezvous meeting_;
  ThreadPool* pool_;
  CommDelay delay_;
  std::vector<int64_t> everyone_;
  std::span<char> staging_;
  std::vector<const char*> peers_;
  std::vector<Prepared> collectives_;
  std::vector<Traffic> traffic_;
  uint64_t started_ = 0;
  std::array<uint32_t, maxTickets> underWay_{}; ///< by ticket: 1 + the collective, or 0
  std::atomic<bool> failedItself_{false};       ///< it was this rank that failed first
};

} // namespace titan
