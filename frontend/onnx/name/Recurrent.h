// The recurrent layers of ONNX: the order of their gates, their parameters and first states.
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// Operands of LSTM, GRU and RNN: W, R and B.
inline constexpr size_t kInputMatrix = 1, kRecurrentMatrix = 2, kRecurrentBias = 3;

/// Where the gates of PyTorch's order lie in ONNX', in units of the hidden size; empty: the node is
/// no LSTM, GRU or RNN.
std::vector<int64_t> gatesOf(const Node& node);

/// What PyTorch calls an operand, before "_l0"; `bias`: which of the two that B holds.
const char* recurrentLeaf(size_t operand, size_t bias);

/// Is every use of `name` the first state of a recurrent layer, [directions, batch, hidden]?
bool areFirstStates(const Graph& graph, const std::string& name);

} // namespace titan::frontend
