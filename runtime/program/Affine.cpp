#include "runtime/program/Affine.h"

namespace titan {

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum{a.base + b.base, {}};
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    Affine::Term term;
    if (right == b.terms.end() || (left != a.terms.end() && left->variable < right->variable)) {
      term = *left++;
    } else if (left == a.terms.end() || right->variable < left->variable) {
      term = *right++;
    } else {
      term = {left->variable, left->stride + right->stride};
      ++left, ++right;
    }
    if (term.stride != 0)
      sum.terms.push_back(term);
  }
  return sum;
}

Affine operator*(const Affine& value, int64_t factor) {
  if (factor == 0)
    return {};
  Affine product = value;
  product.base *= factor;
  for (Affine::Term& term : product.terms)
    term.stride *= factor;
  return product;
}

Affine onRank(const Affine& value, std::span<const int64_t> coordinates) {
  Affine local{value.base, {}};
  for (const Affine::Term& term : value.terms)
    if (term.variable < maxRepeatDepth)
      local.terms.push_back(term);
    else
      local.base += term.stride * coordinates[term.variable - maxRepeatDepth];
  return local;
}

std::optional<Bounds> boundsOf(const Affine& value, std::span<const int64_t> trips,
                               std::span<const int64_t> ranks) {
  Bounds bounds{value.base, value.base};
  for (const Affine::Term& term : value.terms) {
    const bool isCounter = term.variable < maxRepeatDepth;
    const std::span<const int64_t> extents = isCounter ? trips : ranks;
    const size_t index = isCounter ? term.variable : term.variable - maxRepeatDepth;
    if (index >= extents.size())
      return std::nullopt;
    int64_t span;
    if (__builtin_mul_overflow(term.stride, extents[index] - 1, &span))
      return std::nullopt;
    int64_t& end = span < 0 ? bounds.low : bounds.high;
    if (__builtin_add_overflow(end, span, &end))
      return std::nullopt;
  }
  return bounds;
}

} // namespace titan
