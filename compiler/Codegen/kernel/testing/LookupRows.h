// Which rows a look-up reads: of cases that have rows, entries, outer and inner, as
// #kernel.embedding has.
#pragma once

#include <algorithm>
#include <cstdint>

namespace titan::codegen::testing {

template <typename Case> int64_t allRows(const Case& c) { return c.outer * c.rows * c.inner; }
template <typename Case> int64_t tableRows(const Case& c) { return c.outer * c.entries * c.inner; }

/// The row of the table that `index`, number `i` of the indices, names.
template <typename Case> int64_t rowOf(const Case& c, double index, int64_t i) {
  const int64_t entry = std::clamp<int64_t>(static_cast<int64_t>(index), 0, c.entries - 1);
  return (i / (c.rows * c.inner) * c.entries + entry) * c.inner + i % c.inner;
}

} // namespace titan::codegen::testing
