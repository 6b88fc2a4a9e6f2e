// The extents of a recurrent layer, and what its cell is made of.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace titan::ir {

enum class RecurrentCell : uint32_t;

/// Gates of a cell, in the order in which `titan.recurrence` lists them.
namespace gate {
inline constexpr unsigned input = 0, forget = 1, candidate = 2, output = 3; ///< of lstm
inline constexpr unsigned reset = 0, update = 1;                            ///< of gru; n is next
} // namespace gate

/// Row blocks of the weights: 4, 3 or 1.
int64_t gatesOf(RecurrentCell cell);
/// h, and c of an lstm.
unsigned statesOf(RecurrentCell cell);
bool isGru(RecurrentCell cell);

struct RecurrenceShape {
  RecurrentCell cell;
  int64_t steps, batch, width;
  llvm::ArrayRef<int64_t> order; ///< the row block of each gate
  bool reverse;

  int64_t rows() const { return gatesOf(cell) * width; } ///< of the weights
  /// Of the products of states with weights, in either direction.
  int64_t flops() const { return 2 * steps * batch * rows() * width; }
};

} // namespace titan::ir
