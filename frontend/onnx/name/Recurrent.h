// The order of gates in the recurrent layers of ONNX.
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// Where the gates of PyTorch's order lie in ONNX', in units of the hidden size; empty: the node is
/// no LSTM, GRU or RNN.
std::vector<int64_t> gatesOf(const Node& node);

} // namespace titan::frontend
