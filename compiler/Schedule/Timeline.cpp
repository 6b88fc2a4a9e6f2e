#include "compiler/Schedule/Timeline.h"

#include <algorithm>

using namespace mlir;

namespace titan::schedule {

int64_t Timeline::peak() const {
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

int Timeline::peakStep() const {
  return static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
}

double Timeline::excess(int64_t target) const {
  double sum = 0;
  int64_t most = 0;
  for (auto [step, bytes] : llvm::zip_equal(steps, live)) {
    most = std::max(most, bytes - target);
    if (step.isRecomputed)
      continue;
    sum += most;
    most = 0;
  }
  return sum;
}

namespace {

/// Lists the steps first, with the first and last step of each storage, then what is live at each.
class TimelineBuilder {
public:
  TimelineBuilder(ArrayRef<Node> nodes, ArrayRef<Storage> storages, ArrayRef<Loop> loops,
                  const llvm::BitVector& evicted)
      : nodes(nodes), storages(storages), loops(loops), evicted(evicted),
        count(static_cast<int>(storages.size())), isRecomputed(nodes.size()), spans(loops.size()) {
    timeline.first.assign(2 * count, -1);
    timeline.last.assign(2 * count, -1);
  }

  Timeline build() && {
    for (int number = 0; number < static_cast<int>(nodes.size()); ++number) {
      if (nodes[number].isLate)
        for (int id : nodes[number].reads)
          if (evicted[id])
            recompute(id);
      run(number, /*again=*/false);
    }
    extendOverLoops();
    sumLive();
    return std::move(timeline);
  }

private:
  /// Does a chain that reads the storage compute it too?
  bool isChained(int id) const { return evicted[id] || storages[id].isPassing; }
  /// Where the timeline counts the storage that a step reads: as it was made first, or again.
  int instanceOf(int id, bool readsAgain) const {
    return readsAgain && isChained(id) ? count + id : id;
  }

  void run(int number, bool again) {
    const Node& node = nodes[number];
    const int step = timeline.steps.size();
    timeline.steps.push_back({number, again});
    for (int loop = node.loop; loop >= 0; loop = loops[loop].outer) {
      if (spans[loop].begin < 0)
        spans[loop].begin = step;
      spans[loop].end = step;
    }
    for (int id : node.reads)
      timeline.last[instanceOf(id, node.isLate || again)] = step;
    for (int id : node.writes) {
      // Another result of an op that is computed again is not kept.
      const int written = again ? count + id : id;
      timeline.first[written] = timeline.last[written] = step;
    }
    if (again) {
      timeline.cost += node.cost;
      timeline.flops += node.flops;
    }
  }

  /// The chain that makes the storage again, once.
  void recompute(int id) {
    const int number = storages[id].node;
    if (isRecomputed[number])
      return;
    isRecomputed[number] = true;
    for (int read : nodes[number].reads)
      if (isChained(read))
        recompute(read);
    run(number, /*again=*/true);
  }

  /// What passes from one iteration to the next, or into a loop, is live in all of it.
  void extendOverLoops() {
    for (int id = 0; id < count; ++id) {
      if (storages[id].node < 0) {
        const Span& span = spans[storages[id].loop];
        timeline.first[id] = std::max(span.begin, 0);
        timeline.last[id] = std::max({timeline.last[id], span.end, 0});
        continue;
      }
      // What is made in a loop begins there. Inner loops last: they end within the outer ones.
      for (const Span& span : spans)
        if (span.begin >= 0 && timeline.first[id] < span.begin && timeline.last[id] >= span.begin)
          timeline.last[id] = std::max(timeline.last[id], span.end);
    }
  }

  /// The steps from which on storages count: one that takes the place of an input that dies counts
  /// from the step behind.
  std::vector<int> countedFrom() const {
    std::vector<int> first = timeline.first;
    for (auto [step, ran] : llvm::enumerate(timeline.steps)) {
      const Node& node = nodes[ran.node];
      SmallVector<int, 4> taken;
      for (int id : node.writes)
        for (int read : node.overwritable) {
          const int source = instanceOf(read, node.isLate || ran.isRecomputed);
          if (timeline.last[source] != static_cast<int>(step) ||
              storages[read].bytes != storages[id].bytes || storages[read].node < 0 ||
              llvm::is_contained(taken, source))
            continue;
          taken.push_back(source);
          first[ran.isRecomputed ? count + id : id] = static_cast<int>(step) + 1;
          break;
        }
    }
    return first;
  }

  void sumLive() {
    const std::vector<int> first = countedFrom();
    const size_t end = timeline.steps.size();
    std::vector<int64_t> change(end + 2);
    for (int id = 0; id < 2 * count; ++id)
      if (timeline.first[id] >= 0) {
        change[std::min(first[id], timeline.last[id] + 1)] += storages[id % count].bytes;
        change[timeline.last[id] + 1] -= storages[id % count].bytes;
      }
    int64_t live = 0;
    for (size_t step = 0; step < end; ++step)
      timeline.live.push_back(live += change[step]);
  }

  ArrayRef<Node> nodes;
  ArrayRef<Storage> storages;
  ArrayRef<Loop> loops;
  const llvm::BitVector& evicted;
  const int count;
  std::vector<bool> isRecomputed; ///< nodes
  struct Span {
    int begin = -1, end = -1; ///< steps, both included
  };
  std::vector<Span> spans; ///< of the loops
  Timeline timeline;
};

} // namespace

Timeline makeTimeline(ArrayRef<Node> nodes, ArrayRef<Storage> storages, ArrayRef<Loop> loops,
                      const llvm::BitVector& evicted) {
  return TimelineBuilder(nodes, storages, loops, evicted).build();
}

} // namespace titan::schedule
