// The attention routine compiled for a card, on the interpreter.
#pragma once

#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/AttentionProblem.h"

namespace titan::codegen::cuda::testing {

using codegen::testing::AttentionSpec;
using codegen::testing::AttentionTensors;

/// `spec` with the blocks that the routine has on cards.
AttentionSpec withBlocksOfCards(AttentionSpec spec);

class CudaAttention : public codegen::testing::AttentionProblem {
public:
  /// Blocks are the card's, whatever `spec` says.
  explicit CudaAttention(AttentionSpec spec);

  AttentionTensors forward(ptx::Order order = ptx::Order::Ascending) const;
  /// On what forward gives.
  AttentionTensors backward(ptx::Order order = ptx::Order::Ascending) const;
  /// Values against the definition, |error| <= tolerance * the largest value; equal bits in three
  /// orders of blocks and warps; no spills on any card.
  void check(double tolerance = 4e-6) const;
  const CudaRunner& runner() const { return *runner_; }
  /// Of the launches of the newest run.
  const std::vector<ptx::Counters>& counters() const { return counters_; }

private:
  AttentionTensors backwardOf(AttentionTensors forward, ptx::Order order) const;
  std::vector<std::string> run(bool isBackward, const AttentionTensors& tensors,
                               ptx::Order order) const;

  std::unique_ptr<CudaRunner> runner_;
  mutable std::vector<ptx::Counters> counters_;
};

} // namespace titan::codegen::cuda::testing
