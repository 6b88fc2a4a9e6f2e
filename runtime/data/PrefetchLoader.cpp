#include "runtime/data/Loader.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <thread>
#include <vector>

namespace titan {

/// Batch b lies in slot b % depth. Batches [consumed, produced) are ready; the producer fills slot
/// `produced` and the consumer reads slot `consumed` outside of the lock.
struct PrefetchLoader::Ring {
  Ring(const Dataset& dataset, LoaderOptions options, uint64_t position, int depth)
      : loader(dataset, options), start(position), slots(static_cast<size_t>(std::max(depth, 1))) {
    for (size_t field = 0; field < dataset.fields().size(); ++field)
      fieldBytes.push_back(static_cast<size_t>(options.batch * dataset.sampleBytes(field)));
    for (Slot& slot : slots)
      for (size_t bytes : fieldBytes)
        slot.addresses.push_back(slot.fields.emplace_back(bytes).data());
  }

  void produce() {
    std::unique_lock lock(mutex);
    for (;;) {
      // Woken only when half of the slots are free: with short steps, a wake-up per batch would
      // cost more than the batch.
      if (produced - consumed == slots.size())
        freed.wait(lock, [&] { return stopping || produced - consumed <= slots.size() / 2; });
      if (stopping)
        return;
      const Slot& slot = slots[produced % slots.size()];
      const uint64_t position = start + produced * static_cast<uint64_t>(loader.options().batch);
      lock.unlock();
      Status status = loader.fill(position, slot.addresses);
      lock.lock();
      if (!status.ok())
        error = status.takeError();
      else
        ++produced;
      filled.notify_one();
      if (error)
        return;
    }
  }

  Status next(BatchDestination destination) {
    std::unique_lock lock(mutex);
    filled.wait(lock, [&] { return produced > consumed || error; });
    if (produced == consumed)
      return *error;
    const Slot& slot = slots[consumed % slots.size()];
    lock.unlock();
    for (size_t field = 0; field < fieldBytes.size(); ++field)
      std::memcpy(destination[field], slot.addresses[field], fieldBytes[field]);
    lock.lock();
    ++consumed;
    if (produced - consumed <= slots.size() / 2)
      freed.notify_one();
    return {};
  }

  struct Slot {
    std::vector<std::vector<char>> fields;
    std::vector<char*> addresses; ///< of `fields`
  };

  const BatchLoader loader;
  const uint64_t start;
  std::vector<size_t> fieldBytes; ///< of a batch
  std::vector<Slot> slots;

  std::mutex mutex;
  std::condition_variable filled, freed;
  uint64_t produced = 0, consumed = 0;
  std::optional<Error> error; ///< of batch `produced`
  bool stopping = false;
  std::thread thread;
};

PrefetchLoader::PrefetchLoader(const Dataset& dataset, LoaderOptions options, uint64_t position,
                               int depth)
    : ring_(std::make_unique<Ring>(dataset, options, position, depth)) {
  // Signals belong to the thread that runs the steps; the new thread inherits the mask. SIGBUS
  // belongs to who reads a mapped file.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ring_->thread = std::thread([ring = ring_.get()] { ring->produce(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PrefetchLoader::~PrefetchLoader() {
  {
    const std::lock_guard lock(ring_->mutex);
    ring_->stopping = true;
  }
  ring_->freed.notify_one();
  ring_->thread.join();
}

Status PrefetchLoader::next(BatchDestination destination) { return ring_->next(destination); }

uint64_t PrefetchLoader::position() const {
  const std::lock_guard lock(ring_->mutex);
  return ring_->start + ring_->consumed * static_cast<uint64_t>(ring_->loader.options().batch);
}

} // namespace titan
