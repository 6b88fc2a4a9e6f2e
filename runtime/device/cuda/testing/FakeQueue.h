// Streams of the fake driver, as late as the API allows: nothing is done before something waits for
// it. With a seed some work is done earlier, and streams that do not wait for each other run in an
// order of the seed's.
#pragma once

#include "runtime/device/cuda/DriverApi.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace titan::cuda::testing {

class FakeQueue;

/// What was put into a stream up to a moment.
struct Position {
  FakeQueue* queue = nullptr;
  uint64_t number = 0;
};

/// The streams of one context.
class FakeQueues {
public:
  explicit FakeQueues(uint64_t seed) : seed_(seed), random_(seed) {}

  FakeQueue& add();
  /// After its work is done.
  void remove(FakeQueue& queue);
  void finishAll();

private:
  friend class FakeQueue;
  /// With a seed: a few operations of any stream.
  void wander();
  uint64_t draw(uint64_t below) { return random_() % below; }

  uint64_t seed_;
  std::mt19937_64 random_;
  bool wanders_ = false;
  std::vector<std::unique_ptr<FakeQueue>> queues_;
};

/// A stream: its operations are done in order.
class FakeQueue {
public:
  explicit FakeQueue(FakeQueues& all) : all_(&all) {}

  void add(std::function<void()> operation);
  /// What comes behind waits for that position of any stream.
  void addWait(Position position);
  Position last() { return {this, added_}; }
  bool isDone(uint64_t number) const { return done_ >= number; }
  /// Does the operations up to that number.
  void finish(uint64_t number);
  void finish() { finish(added_); }
  /// One operation, if there is any left.
  void advance();

private:
  FakeQueues* all_;
  std::deque<std::function<void()>> operations_;
  uint64_t added_ = 0, done_ = 0;
  bool busy_ = false; ///< inside of an operation, which may be a wait for another stream
};

} // namespace titan::cuda::testing
