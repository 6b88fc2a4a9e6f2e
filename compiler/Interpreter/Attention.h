// The attention under titan.attention, titan.attention_grad and kernel.call: block by block of
// query rows, in f64. The formulas are those of the op descriptions
// (dialects/Titan/ops/Attention.td).
#pragma once

#include "compiler/Interpreter/Tensor.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>
#include <limits>

namespace titan::interpreter {

/// A [batch, position, head, width] operand; the elements of a head are contiguous, the other three
/// dimensions have strides in elements, so that a slice of a packed projection is one too.
template <typename T> struct Heads {
  T* data = nullptr;
  int64_t batch = 0, position = 0, head = 0;

  T* at(int64_t b, int64_t p, int64_t h) const {
    return data + b * batch + p * position + h * head;
  }
};

/// The rows of scores that one query has: what the mask adds to them, or what dropout multiplies
/// their probabilities with. Arguments: batch, head, query, and the row over the keys, to change.
using RowFunction =
    llvm::function_ref<void(int64_t, int64_t, int64_t, llvm::MutableArrayRef<double>)>;

/// A mask as a RowFunction: adds a row of it, or writes `fill` where it is false. Strides are in
/// elements, 0 where the mask is broadcast; keys are contiguous.
struct MaskRows {
  const Tensor& mask;
  int64_t batch, head, query;
  double fill = -std::numeric_limits<double>::infinity();
  void operator()(int64_t b, int64_t h, int64_t t, llvm::MutableArrayRef<double> scores) const;
};

/// The adjoints of scores that a fill has replaced, as a RowFunction: 0.
struct FilledRows {
  const MaskRows& mask;
  void operator()(int64_t b, int64_t h, int64_t t, llvm::MutableArrayRef<double> adjoints) const;
};

/// titan.dropout of a tensor [B, H, T, S] as a RowFunction. Element indices are those of a tensor
/// of shape `global`, in which this one begins at element `base`.
struct DropoutRows {
  uint64_t key, step;
  uint32_t threshold;
  double scale; ///< 1 / (1 - p)
  std::array<int64_t, 4> global;
  int64_t base = 0;
  void operator()(int64_t b, int64_t h, int64_t t,
                  llvm::MutableArrayRef<double> probabilities) const;
};

struct AttentionProblem {
  int64_t batch, queries, keys, heads, keyHeads, width, valueWidth;
  double scale;
  bool causal;         ///< query i attends to keys 0..i
  RowFunction mask;    ///< of scaled scores; null: no mask
  RowFunction filled;  ///< of their adjoints; null: no mask writes over scores
  RowFunction dropout; ///< multiplies probabilities by 0 or 1 / (1 - p); null: no dropout
  /// Rounds a masked score; null: not.
  llvm::function_ref<double(double)> roundScore;
  /// Rounds a probability, or its adjoint, before it enters a product; null: not.
  llvm::function_ref<double(double)> round;

  Heads<const double> query, key, value;
  Heads<double> logSumExp; ///< of one element a head
  Heads<double> largest;   ///< likewise, without data where it is part of logSumExp
};

/// Sets `result` and the statistics of `problem`.
void attend(const AttentionProblem& problem, Heads<double> result);

/// Adds to `dquery`, `dkey` and `dvalue`, which the caller sets to zero; the statistics of
/// `problem` are read.
void attendBackward(const AttentionProblem& problem, Heads<const double> result,
                    Heads<const double> dresult, Heads<double> dquery, Heads<double> dkey,
                    Heads<double> dvalue);

} // namespace titan::interpreter
