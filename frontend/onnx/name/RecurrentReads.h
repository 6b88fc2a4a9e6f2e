// Where the parameters of nn.LSTM, nn.GRU and nn.RNN are read in graphs that compute the operands
// W, R and B of the ONNX op: torch.export cuts each parameter into its gates, joins them in ONNX'
// order, and joins those of all directions, and for B the two biases. However often a parameter is
// cut, it is one.
#pragma once

#include "frontend/onnx/read/Graph.h"

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
  explicit RecurrentReads(const Graph& graph);

  /// Of operand `operand` of a node; nothing: it is no part of W, R or B.
  std::optional<RecurrentPart> partOf(size_t node, size_t operand) const;
  /// The initializer of the recurrent matrix beside the part, of the same direction: what tells
  /// layers apart. Empty: there is none.
  std::string matrixBeside(const RecurrentPart& part) const;
  /// What PyTorch calls the part, after that matrix. Empty: it has not PyTorch's name.
  std::string nameOf(const RecurrentPart& part) const;

private:
  struct Read {
    size_t node, operand;
  };

  const Graph& graph_;
  std::map<std::string, size_t> producer_;
  std::map<std::string, Read> firstRead_;
};

} // namespace titan::frontend
