#include "runtime/device/cuda/testing/FakeQueue.h"

#include <algorithm>

namespace titan::cuda::testing {

FakeQueue& FakeQueues::add() { return *queues_.emplace_back(std::make_unique<FakeQueue>(*this)); }

void FakeQueues::remove(FakeQueue& queue) {
  // Another stream may wait for a position of this one: that is done now, and no longer asked for.
  finishAll();
  std::erase_if(queues_, [&](const auto& held) { return held.get() == &queue; });
}

void FakeQueues::finishAll() {
  for (const auto& queue : queues_)
    queue->finish();
}

void FakeQueues::wander() {
  if (seed_ == 0 || wanders_)
    return;
  wanders_ = true;
  while (draw(4) == 0)
    queues_[draw(queues_.size())]->advance();
  wanders_ = false;
}

void FakeQueue::add(std::function<void()> operation) {
  operations_.push_back(std::move(operation));
  ++added_;
  all_->wander();
}

void FakeQueue::addWait(Position position) {
  add([=] { position.queue->finish(position.number); });
}

void FakeQueue::advance() {
  if (operations_.empty() || busy_)
    return;
  busy_ = true;
  const std::function<void()> operation = std::move(operations_.front());
  operations_.pop_front();
  operation();
  ++done_;
  busy_ = false;
}

void FakeQueue::finish(uint64_t number) {
  while (done_ < number) {
    all_->wander();
    if (done_ < number)
      advance();
  }
}

} // namespace titan::cuda::testing
