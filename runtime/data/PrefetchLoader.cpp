#include "runtime/data/Loader.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <thread>
#include <vector>

namespace titan {

/// Batch b lies in slot b % depth. Batches [freed, taken) are on their way, [taken, produced) are
/// ready; the producer fills slot `produced` and the consumer reads slot `taken` outside of the
/// lock.
struct PrefetchLoader::Ring {
  Ring(const Dataset& dataset, LoaderOptions options, uint64_t position, std::span<char> memory)
      : loader(dataset, options), start(position) {
    const auto bytes = static_cast<size_t>(BatchSlot::bytesFor(dataset, options.rows()));
    for (size_t at = 0; at + bytes <= memory.size(); at += bytes)
      slots.emplace_back(dataset, options.rows(), memory.subspan(at, bytes));
  }

  /// Of the n-th batch.
  uint64_t positionOf(uint64_t n) const {
    return start + n * static_cast<uint64_t>(loader.options().advance());
  }

  void produce() {
    std::unique_lock lock(mutex);
    for (;;) {
      // Woken only when half of the slots are free: with short steps, a wake-up per batch would
      // cost more than the batch.
      if (produced - freed == slots.size())
        roomMade.wait(lock, [&] { return stopping || isToProduce(); });
      if (stopping)
        return;
      const BatchSlot& slot = slots[produced % slots.size()];
      const uint64_t position = positionOf(produced);
      lock.unlock();
      Status status = loader.fill(position, slot.destination());
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

  /// Of the slots that hold nothing on its way, half are free. Under the lock.
  bool isToProduce() const { return produced - taken <= (slots.size() - (taken - freed)) / 2; }

  Status next(std::span<const ByteSink> sinks) {
    std::unique_lock lock(mutex);
    filled.wait(lock, [&] { return produced > taken || error; });
    if (produced == taken)
      return *error;
    const BatchSlot& slot = slots[taken % slots.size()];
    lock.unlock();
    const size_t most = std::min<size_t>(mostOnTheWay, slots.size() - 1);
    onTheWay.push_back(TITAN_TRY(slot.beginCopyTo(sinks)));
    size_t arrived = 0;
    for (; !onTheWay.empty() && (onTheWay.front().isDone() || onTheWay.size() > most); ++arrived) {
      TITAN_TRY(onTheWay.front().wait());
      onTheWay.pop_front();
    }
    lock.lock();
    ++taken;
    freed += arrived;
    if (isToProduce())
      roomMade.notify_one();
    return {};
  }

  const BatchLoader loader;
  const uint64_t start;
  std::vector<BatchSlot> slots;

  std::mutex mutex;
  std::condition_variable filled, roomMade;
  uint64_t produced = 0, taken = 0, freed = 0;
  std::deque<Transfer> onTheWay; ///< batches [freed, taken); of the consumer alone
  std::optional<Error> error;    ///< of batch `produced`
  bool stopping = false;
  std::thread thread;
};

int64_t PrefetchLoader::depthFor(int64_t bytes) {
  return std::clamp<int64_t>((int64_t{4} << 20) / std::max<int64_t>(bytes, 1), 4, 16);
}

PrefetchLoader::PrefetchLoader(const Dataset& dataset, LoaderOptions options, uint64_t position,
                               std::span<char> memory)
    : ring_(std::make_unique<Ring>(dataset, options, position, memory)) {
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
  ring_->roomMade.notify_one();
  ring_->thread.join();
}

Status PrefetchLoader::next(std::span<const ByteSink> sinks) { return ring_->next(sinks); }

uint64_t PrefetchLoader::position() const {
  const std::lock_guard lock(ring_->mutex);
  return ring_->positionOf(ring_->taken);
}

} // namespace titan
