// Attention as exporters take it apart: two products around a softmax.
#pragma once

#include "frontend/raise/Evaluate.h"

#include <string>

namespace titan::frontend {

/// What became of the attention around a softmax.
struct RaisedAttention {
  ir::AttentionOp attention; ///< null where nothing was raised
  std::string problem;       ///< why not; empty where nobody would call it attention
  std::string whyNotCausal;  ///< why its causal mask stays an operand
  std::string whyAdded;      ///< why what is written over its scores became a sum
};

/// Matches first, then replaces the second product; what is dead then stays for the caller.
RaisedAttention raiseAttention(ir::SoftmaxOp softmax, Evaluator& evaluator);

} // namespace titan::frontend
