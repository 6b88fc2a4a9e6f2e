// Which argument of its fx node an operand of an ONNX node is: torch.export writes several ONNX
// nodes for one fx node, and each has the fx node's text.
#pragma once

#include "frontend/onnx/name/Uses.h"

namespace titan::frontend {

/// What an fx op does to a parameter before the nodes that it becomes read it.
enum class Reading {
  AsIs,   ///< nothing; a linear layer's weight may be transposed
  Vector, ///< a vector: dimensions of 1 may be around it
  Scaled, ///< it is multiplied by a number
  Other,  ///< it may have another shape, or be computed of several
};

struct FxArgument {
  Reading reading = Reading::Other;
  bool isPlaced = false; ///< the op has one place for what the operand is
  bool isNone = false;   ///< and None stands there: the exporter wrote the operand
  /// The node is the fx op itself: the operand is one argument of it, a number where there are
  /// neither of those below.
  bool isSole = false;
  std::vector<FxOperand> lifted; ///< those that the operand may be
  std::vector<FxOperand> values; ///< the same of values of other nodes
};

/// Operand `k` of `node`, a tensor of `rank`, whose scope is `scope`.
FxArgument argumentOf(const Node& node, const Scope& scope, size_t k, size_t rank);

/// Is `node` a detach(), of which torch.export makes an Identity?
bool isDetach(const Node& node);
/// Is `name` that of an fx value, numbered or not, whose op makes numbers of none: "arange_1"?
bool namesNumbers(std::string_view name);
/// Is `op`, of an fx value, a layer: an op that has a parameter among its arguments?
bool isLayer(std::string_view op);
/// "add" of "add_12": fx calls values after their ops, and numbers them.
std::string_view opOfValue(std::string_view name);

} // namespace titan::frontend
