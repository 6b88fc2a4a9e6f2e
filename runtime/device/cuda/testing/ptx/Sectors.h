// How many aligned pieces of 32 bytes requests touch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace titan::ptx {

/// Of the requests between two backward branches of a warp: a piece counts once.
class SectorSet {
public:
  /// Pieces `first` to `last`.
  void add(uint64_t first, uint64_t last) {
    if (!ranges_.empty() && ranges_.back().first <= first && first <= ranges_.back().second + 1)
      ranges_.back().second = std::max(ranges_.back().second, last);
    else
      ranges_.emplace_back(first, last);
  }
  bool large() const { return ranges_.size() > 4096; }

  /// The number of distinct pieces since the last call.
  int64_t take() {
    std::sort(ranges_.begin(), ranges_.end());
    int64_t count = 0;
    uint64_t counted = 0; // pieces below it have been counted; 0 is in no memory
    for (auto [first, last] : ranges_) {
      first = std::max(first, counted);
      if (first > last)
        continue;
      count += static_cast<int64_t>(last - first + 1);
      counted = last + 1;
    }
    ranges_.clear();
    return count;
  }

private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

} // namespace titan::ptx
