// The operands W, R and B of LSTM, GRU and RNN. Each holds a parameter of nn.LSTM, nn.GRU or nn.RNN
// for each direction, B two of them, and the gates lie in another order than in PyTorch. Exports
// that fold constants have only these operands.
#include "frontend/onnx/name/Recurrent.h"

#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

std::vector<int64_t> gatesOf(const Node& node) {
  if (!node.domain.empty())
    return {};
  if (node.opType == "LSTM") // PyTorch i f g o, ONNX i o f c
    return {0, 2, 3, 1};
  if (node.opType == "GRU") // PyTorch r z n, ONNX z r h
    return {1, 0, 2};
  if (node.opType == "RNN")
    return {0};
  return {};
}

namespace {

/// The layers of a module are one node each, in order; a node that reads the same weights is
/// another call.
size_t layerOf(const Graph& graph, const std::vector<Scope>& scopes, size_t node) {
  std::vector<std::string> before;
  for (size_t i = 0; i < node; ++i) {
    const Node& other = graph.nodes[i];
    if (other.opType == graph.nodes[node].opType && scopes[i].module == scopes[node].module &&
        other.hasInput(1) && other.inputs[1] != graph.nodes[node].inputs[1] &&
        std::find(before.begin(), before.end(), other.inputs[1]) == before.end())
      before.push_back(other.inputs[1]);
  }
  return before.size();
}

/// The state [gates * hidden, ...] of one direction, whose rows lie from `row` on.
void addGates(std::vector<StatePiece>& pieces, const std::string& state,
              const std::vector<int64_t>& gates, int64_t hidden, int64_t direction, int64_t row,
              const Shape& file) {
  for (size_t k = 0; k < gates.size(); ++k) {
    StatePiece part{state, {}};
    part.piece.at = {static_cast<int64_t>(k) * hidden};
    part.piece.from = {direction, row + gates[k] * hidden};
    part.piece.extent = {hidden};
    part.piece.dims = {1};
    if (file.size() == 3) {
      part.piece.at.push_back(0);
      part.piece.from.push_back(0);
      part.piece.extent.push_back(file[2]);
      part.piece.dims.push_back(2);
    }
    pieces.push_back(std::move(part));
  }
}

} // namespace

bool fromRecurrence(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  if (!facts.graph.fromPyTorch() || !isFloating(file.dtype))
    return false;
  for (const Use& use : facts.usesOf(tensor).uses) {
    const Node& node = facts.nodeOf(use);
    const Scope& scope = facts.scopeOf(use);
    const std::vector<int64_t> gates = gatesOf(node);
    if (gates.empty() || use.operand < 1 || use.operand > 3 || !scope.known ||
        scope.place == ScopePlace::Unknown)
      continue;
    const int64_t directions = node.text("direction", "forward") == "bidirectional" ? 2 : 1;
    const int64_t hidden = node.integer("hidden_size", 0);
    const auto count = static_cast<int64_t>(gates.size());
    const bool bias = use.operand == 3;
    if (hidden < 1 || file.shape.size() != (bias ? 2u : 3u) || file.shape[0] != directions ||
        file.shape[1] / hidden != (bias ? 2 * count : count) || file.shape[1] % hidden != 0)
      continue;
    const std::string before = scope.module + (scope.module.empty() ? "" : ".");
    const size_t layer = layerOf(facts.graph, facts.scopes(), use.node);
    std::vector<StatePiece> pieces;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string after = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
      const char* first = use.operand == 2 ? "weight_hh" : bias ? "bias_ih" : "weight_ih";
      addGates(pieces, before + first + after, gates, hidden, direction, 0, file.shape);
      if (bias)
        addGates(pieces, before + "bias_hh" + after, gates, hidden, direction, count * hidden,
                 file.shape);
    }
    if (std::any_of(pieces.begin(), pieces.end(),
                    [&](const StatePiece& piece) { return !naming.isFree(piece.state); }))
      continue;
    for (const StatePiece& piece : pieces)
      naming.reserve(piece.state);
    tensor.name = pieces.front().state;
    tensor.pieces = std::move(pieces);
    tensor.kind = TensorKind::Parameter;
    tensor.role = bias ? Role::Bias : Role::Weight;
    tensor.fanIn = bias ? 0 : hidden; // nn.LSTM draws all of its weights by the hidden size
    tensor.guessed = !facts.signature().known() && scope.place != ScopePlace::Told;
    return true;
  }
  return false;
}

} // namespace titan::frontend
