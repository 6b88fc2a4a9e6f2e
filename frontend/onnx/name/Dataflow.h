// Which node computes each value of a graph, and which nodes read it.
#pragma once

#include "frontend/onnx/read/Graph.h"

#include <map>
#include <optional>

namespace titan::frontend {

/// Operand `operand` of node `node`.
struct Read {
  size_t node = 0, operand = 0;
};

/// Of the graph as it is when this is made: what nodes read may change afterwards.
class Dataflow {
public:
  explicit Dataflow(const Graph& graph);

  /// The position of a node. Nothing: no node computes `value`.
  std::optional<size_t> producerOf(const std::string& value) const;
  /// In graph order.
  const std::vector<Read>& readsOf(const std::string& value) const;

private:
  std::map<std::string, size_t> producers_;
  std::map<std::string, std::vector<Read>> reads_;
};

} // namespace titan::frontend
