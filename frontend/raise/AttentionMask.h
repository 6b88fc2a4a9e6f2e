// What is added to attention scores, or written over them, before the softmax.
#pragma once

#include "frontend/raise/Evaluate.h"
#include "frontend/raise/View.h"

namespace titan::frontend {

/// Roles of the dimensions of scores, queries, keys and values. kCopy: the query heads that read
/// one key head, where a model keeps them in a dimension of their own.
enum AttentionRole : int64_t { kBatch, kQuery, kHead, kKey, kWidth, kCopy };

/// One step from the product of queries and keys to the softmax's operand.
struct MaskTerm {
  enum class Kind {
    Add, ///< scores + factor * view
    Fill ///< scores where view is `keeps`, `fill` elsewhere
  };
  Kind kind;
  View view;
  double factor = 1;
  bool keeps = true;
  double fill = 0;
};

struct AttentionMask {
  bool causal = false;
  mlir::Value operand;        ///< what titan.attention takes, or null
  std::optional<double> fill; ///< its fill, beside a boolean operand
  std::string whyNotCausal;   ///< where a causal part had to stay in the operand
  std::string whyAdded;       ///< where what is written over scores became a sum
};

/// The mask that `terms`, in the order of the computation, amount to. A constant part that forbids
/// exactly the keys after each query becomes `causal`, where that is the same for every value of
/// the other parts; boolean parts that write -inf become one boolean operand, and so do parts that
/// all write one other number, its fill; all else is added, in `type`. `evaluator` may know
/// buffers.
/// With `causal`, keys after each query are forbidden from the start.
AttentionMask buildMask(const ir::TensorBuilder& b, llvm::ArrayRef<MaskTerm> terms, int64_t queries,
                        int64_t keys, bool causal, mlir::Type type, Evaluator& evaluator);

} // namespace titan::frontend
