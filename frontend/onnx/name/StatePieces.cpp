// The states of a model, put together from the pieces of its tensors.
#include "frontend/onnx/name/Names.h"

#include <algorithm>

namespace titan::frontend {

namespace {

/// The pieces lie in the tensor and cover it once.
Status checkTensor(const NamedTensor& tensor, const Shape& shape) {
  std::vector<Box> boxes;
  for (const StatePiece& piece : tensor.pieces) {
    // As large as the piece needs it: the state is checked when all of it is known.
    Shape state = piece.piece.at;
    for (size_t d = 0; d < std::min(state.size(), piece.piece.extent.size()); ++d)
      if (__builtin_add_overflow(state[d], piece.piece.extent[d], &state[d]))
        state[d] = 0;
    Status status = checkInState(piece.piece, state);
    if (status.ok())
      status = checkInInitializer(piece.piece, shape);
    if (!status.ok())
      return Error::badInput("'{}': the piece of '{}' {}", printable(tensor.initializer),
                             printable(piece.state), status.error().message());
    boxes.push_back(boxInInitializer(piece.piece));
  }
  if (const Status status = checkCover(boxes, shape); !status.ok())
    return Error::badInput("'{}': its pieces {}", printable(tensor.initializer),
                           status.error().message());
  return {};
}

/// Grows `state` to hold the box.
void include(Shape& state, const Box& box) {
  for (size_t d = 0; d < std::min(state.size(), box.at.size()); ++d)
    state[d] = std::max(state[d], box.at[d] + box.extent[d]);
}

Status checkState(const NamedState& state, const Graph& graph, const NameTable& names) {
  const std::vector<std::string> initializers = initializersOf(state.sources);
  // Two that begin where the state does are two tensors of one name, not parts of one.
  std::string beginsIt;
  for (const auto& [initializer, piece] : state.sources) {
    if (std::any_of(piece.at.begin(), piece.at.end(), [](int64_t at) { return at != 0; }))
      continue;
    if (!beginsIt.empty() && initializer != beginsIt)
      return Error::badInput("'{}' and '{}' would both be called '{}': rename one with --names",
                             printable(beginsIt), printable(initializer), printable(state.name));
    beginsIt = initializer;
  }
  const NamedTensor& first = names.tensors[state.tensor];
  for (const std::string& initializer : initializers) {
    const Tensor &one = graph.initializers.at(first.initializer),
                 &other = graph.initializers.at(initializer);
    if (one.dtype != other.dtype || first.kind != names.find(initializer)->kind)
      return Error::badInput("'{}' would be made of '{}', a {} of {}, and '{}', a {} of {}",
                             printable(state.name), printable(first.initializer), name(first.kind),
                             titan::name(one.dtype), printable(initializer),
                             name(names.find(initializer)->kind), titan::name(other.dtype));
  }
  if (const Status status = checkSources(state.sources, state.shape, {}); !status.ok())
    return Error::badInput("the pieces of '{}' {}", printable(state.name),
                           printable(status.error().message()));
  return {};
}

} // namespace

Status formStates(const Graph& graph, NameTable& names) {
  names.states.clear();
  std::map<std::string, size_t> byName;
  auto add = [&](size_t tensor, const std::string& name, const Piece& piece) {
    auto [it, isNew] = byName.try_emplace(name, names.states.size());
    if (isNew)
      names.states.push_back({name, Shape(piece.extent.size(), 0), tensor, {}});
    NamedState& state = names.states[it->second];
    state.sources.push_back({names.tensors[tensor].initializer, piece});
    include(state.shape, boxInState(piece));
  };
  for (size_t i = 0; i < names.tensors.size(); ++i) {
    const NamedTensor& tensor = names.tensors[i];
    if (tensor.kind == TensorKind::Constant)
      continue;
    const Shape& shape = graph.initializers.at(tensor.initializer).shape;
    if (!tensor.pieces.empty())
      TITAN_TRY(checkTensor(tensor, shape));
    if (tensor.isCopy)
      continue;
    if (tensor.pieces.empty())
      add(i, tensor.name, writtenOut({}, shape));
    for (const StatePiece& piece : tensor.pieces)
      add(i, piece.state, piece.piece);
  }
  for (const NamedState& state : names.states)
    TITAN_TRY(checkState(state, graph, names));
  for (const NamedTensor& tensor : names.tensors)
    for (const StatePiece& piece : tensor.pieces) {
      if (!tensor.isCopy || tensor.kind == TensorKind::Constant)
        continue;
      auto state = byName.find(piece.state);
      if (state == byName.end() ||
          !checkInState(piece.piece, names.states[state->second].shape).ok())
        return Error::badInput(
            "'{}' is a copy of '{}', which no tensor fills any more: say in --names "
            "what it is",
            printable(tensor.initializer), printable(piece.state));
    }
  return {};
}

} // namespace titan::frontend
