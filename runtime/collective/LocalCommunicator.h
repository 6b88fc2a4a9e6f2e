// Ranks that read each other's memory: threads of a process, or processes of a host.
//
// An all_gather copies the others' parts out of their sources, a reduce_scatter adds this rank's
// part out of them. An all_reduce goes by rounds, as large as the windows of the group together:
// each rank adds its part of the round into its window, and copies the others' parts out of theirs.
// So a group of r moves (r - 1) n bytes, twice for all_reduce, and needs no memory that grows with
// the operand.
#pragma once

#include "runtime/collective/BlockCommunicator.h"
#include "runtime/collective/Rendezvous.h"

namespace titan {

class LocalCommunicator : public BlockCommunicator {
public:
  Status exchange(std::string_view name, std::string_view mine,
                  std::vector<std::string>& all) override;
  Status broadcast(std::string_view name, int64_t root, std::span<char> bytes) override;
  void setRunDirectory(std::string_view path) override;

protected:
  /// The block outlives this object.
  LocalCommunicator(ControlBlock block, int64_t rank, ThreadPool* pool, const CommDelay& delay);

  /// `peers[r]`: where this rank reads the staging of rank r; its own is `mine`.
  void setStaging(std::span<char> mine, std::vector<const char*> peers);

private:
  Status carryOut(Prepared& collective, uint64_t ticket, Traffic& traffic) override;
  Status awaitSources(Prepared& collective, uint64_t ticket);
  Status allReduce(const Prepared& collective, Traffic& traffic);

  // The loops over memory. Each returns the bytes that it read from other ranks.
  int64_t gather(const Prepared& collective);
  int64_t reduceScatter(const Prepared& collective);
  int64_t addToWindow(const Prepared& collective, Lines::Range part, char* window);
  int64_t add(const Prepared& collective, size_t piece, int64_t at, int64_t count, char* sum) const;
  const char* sourceOf(const Prepared& collective, size_t place, size_t piece) const;

  Rendezvous meeting_;
  std::vector<int64_t> everyone_;
  std::vector<const char*> peers_;
};

} // namespace titan
