#include "compiler/Schedule/ChooseRecomputation.h"

#include <limits>
#include <queue>

using namespace mlir;

namespace titan::schedule {

namespace {

struct Entry {
  double score;
  int storage;
  /// The highest score first, then program order.
  bool operator<(const Entry& other) const {
    return score != other.score ? score < other.score : storage > other.storage;
  }
};

class Chooser {
public:
  Chooser(const MemoryModel& model, int64_t target) : model(model), target(target) {
    evicted.resize(model.storages().size());
    accept(model.run(evicted));
  }

  void add() {
    // What is a thousandth of the excess is not worth a kernel.
    const int64_t least = std::max<int64_t>(1, (timeline.peak() - target) / 1000);
    for (auto [id, storage] : llvm::enumerate(model.storages()))
      if (storage.isRecomputable && storage.bytes >= least)
        queue.push({std::numeric_limits<double>::infinity(), static_cast<int>(id)});
    bool changed = false;
    while (excess > 0) {
      if (queue.empty()) {
        // What did not help may help now.
        if (!changed)
          return;
        changed = false;
        for (int id : parked)
          queue.push({std::numeric_limits<double>::infinity(), id});
        parked.clear();
        continue;
      }
      Entry best = queue.top();
      queue.pop();
      evicted.set(best.storage);
      Timeline with = model.run(evicted);
      const double gain = excess - with.excess(target);
      const double score =
          gain / static_cast<double>(std::max<int64_t>(1, with.cost - timeline.cost));
      // Scores only age: one that is still the best when looked at again is the best.
      const bool isBest = queue.empty() || score >= queue.top().score;
      if (gain > 0 && isBest) {
        accept(std::move(with));
        changed = true;
        continue;
      }
      evicted.reset(best.storage);
      if (gain > 0)
        queue.push({score, best.storage});
      else
        parked.push_back(best.storage);
    }
  }

  void removeNeedless() {
    SmallVector<std::pair<int64_t, int>> byCost;
    for (int id : evicted.set_bits()) {
      llvm::BitVector without = evicted;
      without.reset(id);
      byCost.push_back({model.run(without).cost - timeline.cost, id});
    }
    llvm::sort(byCost); // the largest saving first
    for (auto [saving, id] : byCost) {
      evicted.reset(id);
      Timeline without = model.run(evicted);
      if (without.excess(target) <= excess && without.peak() <= timeline.peak())
        accept(std::move(without));
      else
        evicted.set(id);
    }
  }

  Recomputation take() && { return {evicted, std::move(timeline), excess == 0}; }

private:
  const MemoryModel& model;
  const int64_t target;
  llvm::BitVector evicted;
  Timeline timeline;
  double excess = 0;
  std::priority_queue<Entry> queue;
  SmallVector<int> parked;

  void accept(Timeline next) {
    timeline = std::move(next);
    excess = timeline.excess(target);
  }
};

} // namespace

Recomputation chooseRecomputation(const MemoryModel& model, int64_t target) {
  Chooser chooser(model, target);
  chooser.add();
  chooser.removeNeedless();
  return std::move(chooser).take();
}

} // namespace titan::schedule
