// How the ranks of a job exchange bytes. One thread of a rank makes the calls, the one that walks
// the command table; all ranks make them in the same order.
//
//   Ticket ticket;
//   TITAN_TRY(communicator.start(index, ins, outs, ticket));  // my sources are ready
//   ...                                                       // what touches neither ins nor outs
//   TITAN_TRY(communicator.wait(ticket));                     // outs are there, ins are free
//
// Every wait on another rank has a name, and ends with an error when a rank is lost: RunFailed,
// with the culprit's number and what was waited for. After an error the communicator is of no use.
//
// How a rank ends: after finish() with any exit code, or after fail() with that error's. A process
// that ends otherwise, by exit(0) too, is a lost rank.
#pragma once

#include "runtime/program/Collective.h"
#include "runtime/program/Error.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

/// What a rank has sent and got so far, by collective of the program.
struct Traffic {
  int64_t executions = 0;
  int64_t payload = 0; ///< bytes of its sources, added up when they are started
  int64_t moved = 0;   ///< bytes that were copied, or added, out of other ranks' memory
  bool operator==(const Traffic&) const = default;
};

class Communicator {
public:
  /// A collective that was started.
  struct Ticket {
    uint64_t number = 0;
  };
  static constexpr uint64_t maxTickets = 64;

  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }

  /// The collectives that start() names by their index; `mesh` has as many ranks as there are.
  /// Once, before the first start().
  virtual Status setCollectives(std::span<const Collective> collectives,
                                std::span<const MeshAxis> mesh) = 0;
  /// From now on the bytes of `region`, whole pages of the arena, are memory that other ranks can
  /// read; they are zeros. All sources lie in it, at the same offsets on all ranks. Every rank
  /// calls it once; with an empty region where there are no sources. Environment when there is not
  /// so much memory.
  virtual Status shareStaging(std::span<char> region) = 0;

  /// One buffer a piece, of sourceBytes() and resultBytes(), aligned to its elements. Returns at
  /// once. Until wait() nobody writes to `ins`, and nobody touches `outs`; the communicator never
  /// writes to `ins`. At most `maxTickets` collectives are under way.
  virtual Status start(uint32_t collective, std::span<char* const> ins, std::span<char* const> outs,
                       Ticket& ticket) = 0;
  /// Returns when the collective is done here, and no other rank reads this one's sources any more.
  virtual Status wait(Ticket ticket) = 0;

  /// Host side, any length: `all` gets what each rank brings. `name` says in messages what for:
  /// "agreement", "barrier of save 200". An exchange of nothing is a barrier.
  virtual Status exchange(std::string_view name, std::string_view mine,
                          std::vector<std::string>& all) = 0;
  /// Every rank gets the bytes of `root`; all bring as many.
  virtual Status broadcast(std::string_view name, int64_t root, std::span<char> bytes) = 0;

  /// One a collective, in their order.
  virtual std::span<const Traffic> traffic() const = 0;

  /// Seconds that a rank has waited for others so far, as it has published them: asks nobody. Any
  /// thread may call it.
  virtual double waitedSeconds(int64_t rank) const = 0;

  /// For messages: the step that this rank is in. One store.
  virtual void setStep(int64_t step) = 0;
  /// For who tells what ranks did last before a failure: the absolute path of a directory to write
  /// it to. Every rank calls it, once.
  virtual void setRunDirectory(std::string_view path) = 0;
  /// This rank cannot go on, and has said why: the next wait of every other rank ends with the
  /// message. The first failure of a job counts, later ones change nothing. Any thread may call it.
  virtual void fail(const Error& error) = 0;
  /// Has another rank failed? What happened is said by that rank, or by who started the ranks: this
  /// one need not say it again, saves nothing and ends with failureCode(). Any thread may call it.
  virtual bool peerFailed() const = 0;
  /// The exit code of the failure that ended the job; 0: there is none.
  virtual int failureCode() const = 0;
  /// Waits until all ranks have come here; from then on a rank may end. The last call.
  virtual Status finish() = 0;

protected:
  Communicator(int64_t rank, int64_t ranks) : rank_(rank), ranks_(ranks) {}

private:
  int64_t rank_, ranks_;
};

} // namespace titan
