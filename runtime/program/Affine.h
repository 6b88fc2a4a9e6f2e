// Values that follow the position in a program: sums of repeat counters and of this rank's
// coordinates on the mesh, times strides. Compiler, verifier and every walk of the table use this
// one definition.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace titan {

/// Repeats nest at most so deep.
constexpr uint8_t maxRepeatDepth = 8;

/// base + the sum of stride * variable over `terms`.
struct Affine {
  struct Term {
    /// 0 to 7: counter of the enclosing repeat at that depth, 0 is the outermost; 8 + i: this
    /// rank's coordinate on axis i of the mesh.
    uint8_t variable = 0;
    int64_t stride = 0;
    bool operator==(const Term&) const = default;
  };

  int64_t base = 0;
  std::vector<Term> terms = {}; ///< by rising variable, no stride is 0: equal values have one form

  static Affine counter(uint8_t depth, int64_t stride = 1) { return {0, {{depth, stride}}}; }
  static constexpr uint8_t meshVariable(uint8_t axis) { return maxRepeatDepth + axis; }

  bool isConstant() const { return terms.empty(); }
  bool operator==(const Affine&) const = default;
};

Affine operator+(const Affine& a, const Affine& b);
Affine operator*(const Affine& value, int64_t factor);

/// Values of the enclosing repeats' counters, outermost first.
using RepeatCounters = std::array<int64_t, maxRepeatDepth>;

/// stride * counter, summed over `terms`, which name counters only.
inline int64_t offsetOf(std::span<const Affine::Term> terms, const RepeatCounters& counters) {
  int64_t offset = 0;
  for (const Affine::Term& term : terms)
    offset += term.stride * counters[term.variable];
  return offset;
}

/// `value` on the rank at `coordinates`, one an axis of the mesh: its terms name counters only.
Affine onRank(const Affine& value, std::span<const int64_t> coordinates);

/// The smallest and the largest value, both included.
struct Bounds {
  int64_t low = 0, high = 0;
};

/// Where counter d runs over [0, trips[d]) and the coordinate on axis i over [0, ranks[i]). Nothing
/// when a term names neither, or on overflow.
std::optional<Bounds> boundsOf(const Affine& value, std::span<const int64_t> trips,
                               std::span<const int64_t> ranks);

} // namespace titan
