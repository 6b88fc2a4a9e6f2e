// This process among the ranks of its job.
//
// All ranks do the same and come to the same verdicts. What one can find out alone, as a file that
// it cannot read, it shares by agree(): then all end with that error, which is told once. An error
// between two such points is told by the rank that has it, and ends the others at their next wait.
//
// In a job of one rank every call returns at once what it was given.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/program/Error.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace titan {

class Peers {
public:
  /// The one rank of its job.
  Peers() = default;
  /// `pool` is the one that `communicator` works on; it may be null.
  Peers(std::unique_ptr<ThreadPool> pool, std::unique_ptr<Communicator> communicator)
      : pool_(std::move(pool)), communicator_(std::move(communicator)) {}

  /// One rank of a mesh whose others are not there (Null.h): it speaks for itself.
  static Peers imagined(std::unique_ptr<ThreadPool> pool,
                        std::unique_ptr<Communicator> communicator) {
    Peers peers(std::move(pool), std::move(communicator));
    peers.areImagined_ = true;
    return peers;
  }

  int64_t rank() const { return communicator_ ? communicator_->rank() : 0; }
  int64_t count() const { return communicator_ ? communicator_->ranks() : 1; }
  bool isAlone() const { return count() == 1; }
  /// Rank 0 owns the run directory and speaks for all.
  bool isFirst() const { return rank() == 0 || areImagined_; }
  bool areImagined() const { return areImagined_; }
  /// Null where there are no peers.
  Communicator* communicator() const { return communicator_.get(); }
  /// Null where none was needed to connect.
  ThreadPool* pool() const { return pool_.get(); }

  /// What each rank brings, by rank. `name` says in messages what it is for. RunFailed: a rank is
  /// lost.
  Result<std::vector<std::string>> exchange(std::string_view name, std::string_view mine);
  /// What rank 0 brings.
  Result<std::string> fromFirst(std::string_view name, std::string_view mine);

  Result<int64_t> fromFirst(std::string_view name, int64_t mine);
  /// Every rank gets the bytes of rank `root`; all bring as many.
  Status broadcast(std::string_view name, int64_t root, std::span<char> bytes);
  /// The broadcasts of that name so far: bytes that this rank brought, and that came from others.
  Traffic traffic(std::string_view name) const;

  /// What each rank brings, by rank, unless one of them could not make it: then as agree().
  Result<std::vector<std::string>> gather(std::string_view name, Result<std::string> mine);
  /// Nobody goes on unless all can: the error of the lowest rank that has one, on every rank. It is
  /// named unless all ranks have the same: "rank 1: cannot open 'x'". What `mine` comes from must
  /// not have met the peers.
  Status agree(std::string_view name, Status mine);
  template <typename T> Result<T> agree(std::string_view name, Result<T> mine) {
    Status verdict = agree(name, mine.ok() ? Status() : Status(mine.error()));
    if (!verdict.ok())
      return verdict.takeError();
    return mine;
  }
  /// What rank 0 does for all: its error, on every rank. The others get an empty T.
  template <typename Act> auto byFirst(std::string_view name, const Act& act) -> decltype(act()) {
    auto mine = isFirst() ? act() : nothing<decltype(act())>();
    Status verdict = verdictOfFirst(name, mine.ok() ? Status() : Status(mine.error()));
    if (!verdict.ok())
      return verdict.takeError();
    return mine;
  }
  /// An error that all ranks come to, from what all know.
  Error together(Error error);
  Status together(Status status);

  /// For messages of other ranks about this one.
  void setStep(int64_t step);

  /// Seconds that each rank has waited for others so far, by rank; without asking them.
  void readWaits(std::span<double> waited) const;
  /// For who tells what ranks did last before a failure: the run directory.
  void setRunDirectory(const std::string& directory);

  /// The end of this rank's part in the job: prints an error that is this rank's to tell, and lets
  /// the others end. Returns the exit code.
  int end(Status status);

private:
  Status verdictOfFirst(std::string_view name, Status mine);
  template <typename R> static R nothing() {
    if constexpr (std::is_same_v<R, Status>)
      return Status();
    else
      return std::remove_cvref_t<decltype(*std::declval<R&>())>();
  }

  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Communicator> communicator_;
  std::map<std::string, Traffic, std::less<>> traffic_; ///< of broadcasts, by name
  bool areImagined_ = false;
  bool together_ = false; ///< all ranks end with one error
};

/// Is there nobody else? Null stands for a process without peers.
inline bool isAlone(const Peers* peers) { return !peers || peers->isAlone(); }

} // namespace titan
