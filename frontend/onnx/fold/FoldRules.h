// The rules behind `fold`, one file a family, and what they share.
#pragma once

#include "frontend/Strides.h"
#include "frontend/onnx/fold/Fold.h"

namespace titan::frontend {

using Folded = Result<std::optional<HostOutputs>>;

/// The rule does not say what the node computes.
inline Folded nothing() { return std::optional<HostOutputs>(); }
inline Folded one(HostTensor tensor) { return std::optional(HostOutputs{std::move(tensor)}); }

// Each gives nothing for ops of other families.
Folded foldElementwise(const Node& node, const HostInputs& inputs, int64_t largest);
Folded foldMovement(const Node& node, const HostInputs& inputs, int64_t largest);
Folded foldIndexing(const Node& node, const HostInputs& inputs, int64_t largest);
Folded foldConstruct(const Node& node, const HostInputs& inputs, int64_t largest);
Folded foldReduction(const Node& node, const HostInputs& inputs, int64_t largest);

/// The tensor of `shape` whose elements are those of `from` at the positions of `forEachPosition`.
HostTensor strided(const HostTensor& from, const Shape& shape, int64_t base,
                   const std::vector<int64_t>& strides);

/// `value` repeated to `shape`, which it broadcasts to.
HostTensor broadcastHost(const HostTensor& value, const Shape& shape);

} // namespace titan::frontend
