// A part of a tensor in row-major memory: what a rank holds of a state, a box in a file, the whole
// in a model file. Bytes go from one part of a tensor to another by the runs that both have.
#pragma once

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

#include <algorithm>

namespace titan {

/// Memory of shape `local`, row-major. Its element x, for x in [0, box.extent), is element
/// box.at + x of the tensor; the rest is padding. No extent of the box is larger than the memory's.
struct Part {
  Box box;
  Shape local;

  static Part whole(const Shape& shape) { return {{Shape(shape.size(), 0), shape}, shape}; }
  /// The box alone, without padding.
  static Part dense(const Box& box) { return {box, box.extent}; }

  int64_t elements() const { return elementCount(box.extent); }
  bool isPadded() const { return box.extent != local; }
  bool isWholeOf(const Shape& shape) const { return box.extent == shape; }
  bool operator==(const Part&) const = default;
};

/// What the rank at `coordinates` holds of the tensor; an empty box where that is padding alone.
/// `placement` is one that localShape() takes.
Part partOf(const Shape& shape, const Placement& placement, std::span<const MeshAxis> mesh,
            std::span<const int64_t> coordinates);
Part partOf(const State& state, std::span<const MeshAxis> mesh,
            std::span<const int64_t> coordinates);
/// The same part, whose elements are bytes: element i is bytes [i * n, i * n + n).
Part inBytes(Part part, int64_t elementBytes);

/// The elements that two parts of one tensor have both, as runs that lie in one piece in each.
class Overlap {
public:
  Overlap(const Part& from, const Part& to);

  bool isEmpty() const { return empty_; }
  /// The elements of `from`, by their place in its memory, that all runs lie in: [begin, end).
  int64_t begin() const { return from_; }
  int64_t end() const;
  int64_t count() const { return isEmpty() ? 0 : elementCount(rows_) * run_; }

  /// see(from, to, count): elements [from, from + count) of the one memory are
  /// [to, to + count) of the other. Runs come in order, and cut to [first, last) of `from`.
  template <typename See> void forEachRun(int64_t first, int64_t last, const See& see) const {
    if (isEmpty())
      return;
    Shape index = rowAt(first);
    do {
      int64_t from = from_, to = to_;
      for (size_t d = 0; d < index.size(); ++d)
        from += index[d] * fromStrides_[d], to += index[d] * toStrides_[d];
      if (from >= last)
        return;
      const int64_t begin = std::max(from, first), end = std::min(from + run_, last);
      if (begin < end)
        see(begin, to + (begin - from), end - begin);
    } while (advance(index));
  }

private:
  /// The row of runs that holds element `first` of `from`, or one before it with none in between.
  Shape rowAt(int64_t first) const;
  bool advance(Shape& index) const;

  bool empty_ = false;
  int64_t from_ = 0, to_ = 0, run_ = 1;
  Shape rows_, fromStrides_, toStrides_; ///< of the dimensions outside of a run
};

/// The elements of the tensor in `memory`, which is laid out as `part` says, without its padding.
/// Read at multiples of an element.
ByteSource withoutPadding(const ByteSource& memory, const Part& part, int64_t elementBytes);

/// Copies what `overlap` has of elements [first, ...) of its first part, whose bytes these are,
/// into the memory of its second.
Status copyInto(const Overlap& overlap, int64_t elementBytes, int64_t first,
                std::span<const char> bytes, const ByteSink& memory);

} // namespace titan
