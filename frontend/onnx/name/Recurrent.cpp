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

const char* recurrentLeaf(size_t operand, size_t bias) {
  return operand == kInputMatrix       ? "weight_ih"
         : operand == kRecurrentMatrix ? "weight_hh"
         : bias == 0                   ? "bias_ih"
                                       : "bias_hh";
}

bool areFirstStates(const Graph& graph, const std::string& name) {
  size_t uses = 0;
  for (const Node& node : graph.nodes)
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != name)
        continue;
      if (gatesOf(node).empty() || k < 5 || k > 6)
        return false;
      ++uses;
    }
  return uses > 0;
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

/// What the states of an operand of a recurrent node are called: after the module and the layer in
/// it, or, where the node does not tell its module, after a recurrent matrix that has its name.
class StateNames {
public:
  StateNames(const Facts& facts, const Use& use)
      : use_(use), scope_(facts.scopeOf(use)), reads_(facts.recurrentReads),
        layer_(layerOf(facts.graph, facts.scopes(), use.node)) {}

  /// `bias`: which of the two that B holds. Empty: not known.
  std::string of(int64_t direction, bool bothDirections, size_t bias) const {
    if (!scope_.known) {
      std::vector<size_t> place = {use_.operand};
      if (bothDirections)
        place.push_back(static_cast<size_t>(direction));
      place.push_back(bias);
      return reads_.nameOf({use_.node, std::move(place)});
    }
    return fmt::format("{}{}{}_l{}{}", scope_.module, scope_.module.empty() ? "" : ".",
                       recurrentLeaf(use_.operand, bias), layer_, direction == 1 ? "_reverse" : "");
  }

private:
  const Use& use_;
  const Scope& scope_;
  const RecurrentReads& reads_;
  const size_t layer_;
};

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
    if (gates.empty() || use.operand < kInputMatrix || use.operand > kRecurrentBias ||
        scope.place == ScopePlace::Unknown)
      continue;
    const int64_t directions = node.text("direction", "forward") == "bidirectional" ? 2 : 1;
    const int64_t hidden = node.integer("hidden_size", 0);
    const auto count = static_cast<int64_t>(gates.size());
    const bool bias = use.operand == kRecurrentBias;
    if (hidden < 1 || file.shape.size() != (bias ? 2u : 3u) || file.shape[0] != directions ||
        file.shape[1] / hidden != (bias ? 2 * count : count) || file.shape[1] % hidden != 0)
      continue;
    const StateNames names(facts, use);
    std::vector<StatePiece> pieces;
    for (int64_t direction = 0; direction < directions; ++direction)
      for (int64_t part = 0; part < (bias ? 2 : 1); ++part)
        addGates(pieces, names.of(direction, directions == 2, static_cast<size_t>(part)), gates,
                 hidden, direction, part * count * hidden, file.shape);
    if (std::any_of(pieces.begin(), pieces.end(), [&](const StatePiece& piece) {
          return piece.state.empty() || !naming.isFree(piece.state);
        }))
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
