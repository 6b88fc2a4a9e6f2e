// The pieces of a bucket as one row of lines, so that ranks, rounds and threads share out a bucket
// of any sizes and dtypes by one range of numbers.
#pragma once

#include "runtime/program/DType.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace titan {

/// A line is up to `lineBytes` bytes of one piece; the last line of a piece may be shorter.
class Lines {
public:
  static constexpr int64_t lineBytes = 64;

  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
    /// The i-th of `parts` even parts.
    Range part(int64_t i, int64_t parts) const {
      return {begin + size() * i / parts, begin + size() * (i + 1) / parts};
    }
  };

  /// One more piece, behind the others.
  void add(DType dtype, int64_t elements) {
    pieces_.push_back({count(), elements, lineBytes / byteSize(dtype)});
    ends_.push_back(count() + (elements + pieces_.back().perLine - 1) / pieces_.back().perLine);
  }

  int64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  Range all() const { return {0, count()}; }

  /// visit(piece, begin, end, line): elements [begin, end) of each piece that has lines in `range`,
  /// the first of them on `line`.
  template <typename Visit> void forEach(Range range, Visit&& visit) const {
    auto at = std::upper_bound(ends_.begin(), ends_.end(), range.begin) - ends_.begin();
    for (auto piece = static_cast<size_t>(at); piece < pieces_.size(); ++piece) {
      const Piece& is = pieces_[piece];
      if (is.firstLine >= range.end)
        return;
      const int64_t line = std::max(range.begin, is.firstLine);
      const int64_t end = std::min(is.elements, (range.end - is.firstLine) * is.perLine);
      const int64_t begin = (line - is.firstLine) * is.perLine;
      if (begin < end)
        visit(piece, begin, end, line);
    }
  }

private:
  struct Piece {
    int64_t firstLine, elements, perLine;
  };
  std::vector<Piece> pieces_;
  std::vector<int64_t> ends_; ///< one a piece: the line behind its last
};

} // namespace titan
