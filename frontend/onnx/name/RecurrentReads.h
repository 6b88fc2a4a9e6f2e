// Where the parameters of nn.LSTM, nn.GRU and nn.RNN are read in graphs that compute the operands
// W, R and B of the ONNX op: torch.export cuts each parameter into its gates, joins them in ONNX'
// order, and joins those of all directions, and for B the two biases. However often a parameter is
// cut, it is one.
#pragma once

#include "frontend/onnx/name/Dataflow.h"

namespace titan::frontend {

/// The part of a recurrent node's operand that a read of a tensor ends in.
struct RecurrentPart {
  size_t node = 0;
  /// The operand, then of each concatenation in it the position, from the node to the tensor. The
  /// concatenation of the tensor's own gates is not among them.
  std::vector<size_t> place;
  bool operator==(const RecurrentPart&) const = default;
};

class RecurrentReads {
public:
  /// Both outlive it.
  RecurrentReads(const Graph& graph, const Dataflow& dataflow)
      : graph_(graph), dataflow_(dataflow) {}

  /// Nothing: it is no part of W, R or B.
  std::optional<RecurrentPart> partOf(Read read) const;
  /// The initializer of the recurrent matrix beside the part, of the same direction: what tells
  /// layers apart. Empty: there is none.
  std::string matrixBeside(const RecurrentPart& part) const;
  /// What PyTorch calls the part, after that matrix. Empty: it has not PyTorch's name.
  std::string nameOf(const RecurrentPart& part) const;

private:
  const Graph& graph_;
  const Dataflow& dataflow_;
};

} // namespace titan::frontend
