#include "compiler/Memory/Packing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

namespace titan::memory {

namespace {

int64_t alignUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// An interval that has a place.
struct Placed {
  int64_t offset, end;  ///< bytes
  uint32_t first, last; ///< commands
};

/// Pairs of intervals that may be looked at to improve a packing: some tens of milliseconds.
constexpr int64_t placementBudget = 40'000'000;

/// Places intervals in the given order.
Packing packInOrder(const std::vector<Interval>& intervals, const std::vector<size_t>& order,
                    int64_t alignment) {
  Packing packing;
  packing.offsets.assign(intervals.size(), 0);
  std::vector<Placed> placed; // by offset
  placed.reserve(order.size());
  for (size_t i : order) {
    const auto [size, first, last] = intervals[i];
    const int64_t bytes = alignUp(size, alignment);
    int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), end = 0;
    for (const Placed& other : placed) {
      if (first > other.last || other.first > last)
        continue;
      const int64_t gap = other.offset - end;
      if (gap >= bytes && gap < bestGap) {
        best = end;
        bestGap = gap;
        if (gap == bytes)
          break; // none fits better
      }
      end = std::max(end, other.end);
    }
    const int64_t offset = best >= 0 ? best : end;
    packing.offsets[i] = offset;
    packing.bytes = std::max(packing.bytes, offset + bytes);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset),
                  {offset, offset + bytes, first, last});
  }
  return packing;
}

} // namespace

int64_t maxLive(const std::vector<Interval>& intervals, int64_t alignment) {
  std::map<uint32_t, int64_t> changes;
  for (const Interval& interval : intervals) {
    const int64_t bytes = alignUp(interval.bytes, alignment);
    changes[interval.first] += bytes;
    changes[interval.last + 1] -= bytes;
  }
  int64_t live = 0, most = 0;
  for (auto [command, change] : changes)
    most = std::max(most, live += change);
  return most;
}

Packing pack(const std::vector<Interval>& intervals, int64_t alignment) {
  auto lifetime = [](const Interval& i) { return static_cast<double>(i.last - i.first + 1); };
  auto size = [](const Interval& i) { return static_cast<double>(i.bytes); };
  const std::function<double(const Interval&)> keys[] = {
      size, lifetime, [&](const Interval& i) { return size(i) * lifetime(i); }};

  const int64_t bound = maxLive(intervals, alignment);
  Packing best;
  best.bytes = std::numeric_limits<int64_t>::max();
  std::vector<size_t> bestOrder;
  auto tryOrder = [&](const std::vector<size_t>& order) {
    Packing packing = packInOrder(intervals, order, alignment);
    const bool isBetter = packing.bytes < best.bytes;
    if (isBetter) {
      best = packing;
      bestOrder = order;
    }
    return packing;
  };
  for (const auto& key : keys) {
    std::vector<size_t> order(intervals.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(key(intervals[a]), b) > std::pair(key(intervals[b]), a);
    });
    tryOrder(order);
    if (best.bytes == bound)
      return best;
  }

  // What ends highest was placed too late: place it earlier, and again, as long as the packing is
  // not tight and the attempts cost little.
  std::vector<size_t> order = bestOrder;
  Packing packing = best;
  const auto count = static_cast<int64_t>(intervals.size());
  const int64_t attempts =
      count == 0 ? 0 : std::min<int64_t>(400, placementBudget / (count * count));
  for (int64_t i = 0; i < attempts && best.bytes > bound + bound / 200; ++i) {
    size_t position = 0;
    for (size_t j = 0; j < order.size(); ++j)
      if (packing.offsets[order[j]] + alignUp(intervals[order[j]].bytes, alignment) ==
          packing.bytes)
        position = j;
    if (position == 0)
      break;
    // Half of the way is enough for most; after a while, all of it.
    const size_t target = i % 8 == 7 ? 0 : position / 2;
    std::rotate(order.begin() + target, order.begin() + position, order.begin() + position + 1);
    packing = tryOrder(order);
  }
  return best;
}

} // namespace titan::memory
