#include "runtime/collective/mpi/Operations.h"

#include "runtime/collective/CommDelay.h"
#include "runtime/host/Relax.h"

namespace titan {
namespace {

// As for ranks of one host: see Rendezvous.cpp. A look makes MPI's progress, too.
constexpr int spinsWithOwnCpu = 4000;
constexpr int spinsCrowded = 200;
constexpr int64_t sleepBetweenLooks = 20'000; // nanoseconds
// A lost rank may be seen by MPI before the relay has heard of it, which knows more.
constexpr int64_t timeToHearOfIt = 1'500'000'000;

} // namespace

Operations::Operations(const titan_mpi_shim& shim, std::string library, ControlBlock block,
                       int64_t rank)
    : shim_(&shim), library_(std::move(library)), block_(block), rank_(rank),
      spins_(block.isCrowded() ? spinsCrowded : spinsWithOwnCpu) {}

Result<std::pair<int64_t, int64_t>> Operations::init() {
  if (const int code = shim_->init()) {
    char text[titan_mpi_text_bytes];
    shim_->describe(code, text);
    return Error::environment("{} does not start: {}", library_, text);
  }
  return std::pair<int64_t, int64_t>(shim_->rank(), shim_->size());
}

Status Operations::split(int group, int64_t color, int64_t key) {
  if (group >= titan_mpi_groups)
    return Error::internal("{} groups of the mesh: at most {} are kept", group,
                           int{titan_mpi_groups});
  const int code = shim_->split(group, static_cast<int>(color), static_cast<int>(key));
  return code == 0 ? Status() : Status(mpiFailed(code));
}

Status Operations::finalize() {
  const int code = shim_->finalize();
  return code == 0 ? Status() : Status(mpiFailed(code));
}

Status Operations::enter(const FixedText& name) {
  mine().waitName.store(name);
  mine().waits.fetch_add(1, std::memory_order_relaxed);
  if (block_.hasFailed())
    return failed();
  return {};
}

Status Operations::allToAll(int group, const void* in, void* out, int64_t partBytes) {
  return complete(shim_->all_to_all(group, in, out, static_cast<size_t>(partBytes)));
}

Status Operations::allGather(int group, const void* in, void* out, int64_t partBytes) {
  return complete(shim_->all_gather(group, in, out, static_cast<size_t>(partBytes)));
}

Status Operations::broadcast(int group, int64_t root, void* data, int64_t bytes) {
  return complete(
      shim_->broadcast(group, static_cast<int>(root), data, static_cast<size_t>(bytes)));
}

Result<bool> Operations::isDone() {
  int done = 0;
  if (const int code = shim_->test(&done))
    return mpiFailed(code);
  return done != 0;
}

/// Waits for the operation that was begun with `code`.
Status Operations::complete(int code) {
  if (code != 0)
    return mpiFailed(code);
  // A wait whose bytes arrive is not one that stands still.
  mine().waits.fetch_add(1, std::memory_order_relaxed);
  const int64_t begin = monotonicNow();
  for (int spin = 0; !TITAN_TRY(isDone()); ++spin) {
    if (spin < spins_) {
      relax();
      continue;
    }
    mine().waiting.store(1, std::memory_order_release);
    if (block_.hasFailed())
      return failed();
    sleepUntil(monotonicNow() + sleepBetweenLooks);
  }
  mine().waiting.store(0, std::memory_order_release);
  mine().waited.fetch_add(monotonicNow() - begin, std::memory_order_relaxed);
  return {};
}

Error Operations::failed() const {
  mine().waiting.store(1, std::memory_order_release); // for whoever tells what happened
  return Error::runFailed("{}; rank {} waited at '{}'", block_.failure()->message, rank_,
                          mine().waitName.load());
}

Error Operations::mpiFailed(int code) const {
  const int64_t end = monotonicNow() + timeToHearOfIt;
  while (!block_.hasFailed() && monotonicNow() < end)
    sleepUntil(monotonicNow() + 1'000'000);
  if (block_.hasFailed())
    return failed();
  char text[titan_mpi_text_bytes];
  shim_->describe(code, text);
  return Error::runFailed("{} failed at '{}': {}", library_, mine().waitName.load(), text);
}

} // namespace titan
