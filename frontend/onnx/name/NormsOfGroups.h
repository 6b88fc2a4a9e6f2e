// PyTorch's exporters write torch.nn.GroupNorm as a norm of instances over a view [N, groups, -1]:
//
//   Reshape, InstanceNormalization of ones and zeros, Reshape back, Mul, Add
//
// The ones and zeros are the exporter's. The module's parameters scale and shift behind the norm.
#pragma once

#include "frontend/onnx/read/Graph.h"

#include <optional>

namespace titan::frontend {

/// Nodes of such a norm, by index.
struct NormOfGroups {
  size_t norm = 0; ///< InstanceNormalization
  std::optional<size_t> scale, shift;
  size_t scaleOperand = 0, shiftOperand = 0; ///< what the module has there
};

/// Those of `graph`, in its order. Each has a scale; where no metadata says what it is, a shift,
/// too.
std::vector<NormOfGroups> normsOfGroups(const Graph& graph);

} // namespace titan::frontend
