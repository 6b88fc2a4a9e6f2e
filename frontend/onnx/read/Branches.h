// The branches of an If, which are graphs in its attributes.
#pragma once

#include "frontend/onnx/read/Graph.h"

#include <set>

namespace titan::frontend {

/// What one branch computes, in the file's order. Constant nodes are not taken apart.
struct Branch {
  std::vector<Node> nodes;
  std::vector<std::string> outputs; ///< as many as the If has
};

bool isIf(const Node& node);

/// The values that the branches of `node`, an If, read and do not produce.
std::set<std::string> readByBranches(const Node& node);

/// The branch that `node`, an If, takes. Errors: there is none, it has weights of its own, or other
/// outputs than the node.
Result<Branch> branchOf(const Node& node, bool condition);

} // namespace titan::frontend
