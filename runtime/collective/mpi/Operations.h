// One MPI operation at a time, waited for by looking: a wait ends when the job has failed, too.
#pragma once

#include "runtime/collective/ControlBlock.h"
#include "runtime/collective/mpi/Shim.h"

#include <string>
#include <utility>

namespace titan {

class Operations {
public:
  Operations(const titan_mpi_shim& shim, std::string library, ControlBlock block, int64_t rank);

  /// Starts MPI: this process's rank, and how many there are. Environment where it does not start.
  Result<std::pair<int64_t, int64_t>> init();
  Status split(int group, int64_t color, int64_t key);
  Status finalize();

  /// Begins a wait of that name. RunFailed when a rank has failed meanwhile.
  Status enter(const FixedText& name);
  // Each is a part of the wait that was entered last. RunFailed when a rank fails meanwhile, or
  // MPI does.
  Status allToAll(int group, const void* in, void* out, int64_t partBytes);
  Status allGather(int group, const void* in, void* out, int64_t partBytes);
  Status broadcast(int group, int64_t root, void* data, int64_t bytes);

private:
  RankSlot& mine() const { return block_.slot(rank_); }
  Status complete(int code);
  Result<bool> isDone();
  Error failed() const;
  Error mpiFailed(int code) const;

  const titan_mpi_shim* shim_;
  std::string library_;
  ControlBlock block_;
  int64_t rank_;
  int spins_;
};

} // namespace titan
