// The graphs in the attributes of a node: the branches of an If, the body of a Loop.
#pragma once

#include "frontend/onnx/read/Graph.h"

#include <set>

namespace titan::frontend {

/// What one graph computes, in the file's order. Constant nodes are not taken apart.
struct Subgraph {
  std::vector<Node> nodes;
  std::vector<std::string> inputs, outputs;
};

bool isIf(const Node& node);
bool isLoop(const Node& node);

/// What comes before the values that a Loop carries on: the number of iterations, and whether it
/// goes on.
inline constexpr size_t kLoopControls = 2;

/// The values that the graphs of `node` read and do not produce.
std::set<std::string> readBySubgraphs(const Node& node);

/// How many inputs the body of `node`, a Loop, has. Nothing: it has no body.
std::optional<size_t> bodyInputs(const Node& node);

/// The branch that `node`, an If, takes. Errors: there is none, it has weights of its own, or other
/// outputs than the node.
Result<Subgraph> branchOf(const Node& node, bool condition);

/// The body of `node`, a Loop. Errors: there is none, it has weights of its own, or other inputs
/// and outputs than the node.
Result<Subgraph> bodyOf(const Node& node);

} // namespace titan::frontend
