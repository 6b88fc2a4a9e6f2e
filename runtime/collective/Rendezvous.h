// How a rank meets the others of its host: by words in the control block, each of which one rank
// raises.
//
// `started` counts the collectives that a rank has started. `phase` counts the steps of its waits.
// A wait has as many steps on every rank that takes the same path through the program, whatever
// group it is in: so each knows by counting its own steps which phase of another it waits for.
//
// A rank's window is free to be written again when all that read it have said so by a phase; it is
// looked up before the next use, not waited for after the last one.
#pragma once

#include "runtime/collective/ControlBlock.h"

#include <span>
#include <vector>

namespace titan {

class Rendezvous {
public:
  Rendezvous(ControlBlock block, int64_t rank);

  int64_t rank() const { return rank_; }
  const ControlBlock& block() const { return block_; }
  RankSlot& mine() const { return block_.slot(rank_); }

  /// Begins a wait of that name. RunFailed when a rank has failed meanwhile.
  Status enter(const FixedText& name);
  /// Until `peer` has started `count` collectives.
  Status awaitStarted(int64_t peer, uint32_t count);
  /// My next step: what I wrote before is there for who awaits it. Returns its phase.
  uint32_t advance();
  Status awaitPhase(int64_t peer, uint32_t phase);
  /// The next step of all of `group`, which may contain this rank.
  Status meet(std::span<const int64_t> group);

  char* window(int64_t rank, int half) const { return block_.window(rank, half); }
  /// Until nobody reads what this rank's window held last.
  Status claimWindow();
  /// My next step, with which I am through with the windows of `group`; mine is free when the group
  /// is as far.
  void releaseWindows(std::span<const int64_t> group);

private:
  Status await(Word& word, uint32_t value);
  Status sleep(Word& word, uint32_t value);
  Error failed();

  ControlBlock block_;
  int64_t rank_;
  int spins_;
  FixedText name_; ///< of the wait this rank is in
  uint32_t phase_ = 0;
  std::vector<int64_t> readers_; ///< of my window; it is free when they are in phase freeAt_
  uint32_t freeAt_ = 0;
};

} // namespace titan
