// Evaluates nodes whose operands are all known: the shape arithmetic that exporters write, so that
// everything static disappears before conversion.
#pragma once

#include "frontend/onnx/HostTensor.h"
#include "frontend/onnx/Shapes.h"

namespace titan::frontend {

/// One entry per input of the node; null for an optional input that is absent.
using HostInputs = std::vector<const HostTensor*>;
using HostOutputs = std::vector<HostTensor>;

/// The node's results, or nothing when the op has no rule or a result would have more than
/// `largest` elements: the compiled program computes it then. Errors: operands that the op does not
/// allow.
Result<std::optional<HostOutputs>> fold(const Node& node, const HostInputs& inputs,
                                        int64_t largest = kLargestFolded);

// The rules, by family; each gives nothing for ops of other families.
Result<std::optional<HostOutputs>> foldElementwise(const Node& node, const HostInputs& inputs,
                                                   int64_t largest);
Result<std::optional<HostOutputs>> foldMovement(const Node& node, const HostInputs& inputs,
                                                int64_t largest);
Result<std::optional<HostOutputs>> foldIndexing(const Node& node, const HostInputs& inputs,
                                                int64_t largest);
Result<std::optional<HostOutputs>> foldConstruct(const Node& node, const HostInputs& inputs,
                                                 int64_t largest);
Result<std::optional<HostOutputs>> foldReduction(const Node& node, const HostInputs& inputs,
                                                 int64_t largest);

/// `value` repeated to `shape`, which it broadcasts to.
HostTensor broadcastHost(const HostTensor& value, const Shape& shape);

} // namespace titan::frontend
