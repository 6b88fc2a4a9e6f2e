#include "runtime/collective/Rendezvous.h"

#include "runtime/collective/CommDelay.h"

namespace titan {
namespace {

// Bridges the difference between two ranks that run side by side. With more ranks than CPUs, who
// waits occupies the CPU of the one it waits for.
constexpr int spinsWithOwnCpu = 4000;
constexpr int spinsCrowded = 200;
constexpr int lookForFailureEvery = 100; // milliseconds

} // namespace

Rendezvous::Rendezvous(ControlBlock block, int64_t rank)
    : block_(block), rank_(rank), spins_(block.isCrowded() ? spinsCrowded : spinsWithOwnCpu) {
  readers_.reserve(static_cast<size_t>(block.ranks()));
}

Error Rendezvous::failed() {
  mine().waiting.store(1, std::memory_order_release); // for whoever tells what happened
  return Error::runFailed("{}; rank {} waited at '{}'", block_.failure()->message, rank_,
                          name_.view());
}

Status Rendezvous::enter(const FixedText& name) {
  name_ = name;
  mine().waitName.store(name);
  mine().waits.fetch_add(1, std::memory_order_relaxed);
  if (block_.hasFailed())
    return failed();
  return {};
}

Status Rendezvous::await(Word& word, uint32_t value) {
  if (word.reached(value))
    return {};
  const int64_t begin = monotonicNow();
  Status status = word.spinUntil(value, spins_) ? Status() : sleep(word, value);
  mine().waited.fetch_add(monotonicNow() - begin, std::memory_order_relaxed);
  return status;
}

Status Rendezvous::sleep(Word& word, uint32_t value) {
  mine().waiting.store(1, std::memory_order_release);
  while (!word.sleepUntil(value, lookForFailureEvery))
    if (block_.hasFailed())
      return failed();
  mine().waiting.store(0, std::memory_order_release);
  return {};
}

Status Rendezvous::awaitStarted(int64_t peer, uint32_t count) {
  return await(block_.slot(peer).started, count);
}

uint32_t Rendezvous::advance() {
  mine().phase.raiseTo(++phase_);
  return phase_;
}

Status Rendezvous::awaitPhase(int64_t peer, uint32_t phase) {
  return await(block_.slot(peer).phase, phase);
}

Status Rendezvous::meet(std::span<const int64_t> group) {
  const uint32_t phase = advance();
  for (int64_t member : group)
    TITAN_TRY(awaitPhase(member, phase));
  return {};
}

Status Rendezvous::claimWindow() {
  for (int64_t reader : readers_)
    TITAN_TRY(awaitPhase(reader, freeAt_));
  readers_.clear();
  return {};
}

void Rendezvous::releaseWindows(std::span<const int64_t> group) {
  freeAt_ = advance();
  readers_.assign(group.begin(), group.end());
}

} // namespace titan
