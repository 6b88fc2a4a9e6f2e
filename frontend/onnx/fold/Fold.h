// Evaluates nodes whose operands are all known: the shape arithmetic that exporters write, so that
// everything static disappears before conversion.
#pragma once

#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/fold/Shapes.h"

namespace titan::frontend {

/// One entry per input of the node; null for an optional input that is absent.
using HostInputs = std::vector<const HostTensor*>;
using HostOutputs = std::vector<HostTensor>;

/// The node's results, or nothing when the op has no rule or a result would have more than
/// `largest` elements: the compiled program computes it then. Errors: operands that the op does not
/// allow.
Result<std::optional<HostOutputs>> fold(const Node& node, const HostInputs& inputs,
                                        int64_t largest = kLargestFolded);

/// Is this an op of shapes and indices that has a rule above and no converter? Where an operand is
/// not known it says nothing about the node.
bool isOnlyFolded(const Node& node);

} // namespace titan::frontend
