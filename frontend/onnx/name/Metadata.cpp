// Names and kinds from the nodes of torch.export: each has its fx node's text, which lists the
// parameters and the values of other nodes that it reads.
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Namer.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kReshaped = {
    "{}: the exporter computes with it in another shape than the source has it; it is trained in "
    "the parameter's place; export with optimize=False to keep the parameter",
    "{} tensors are in other shapes than in the source, in which the exporter computes with them; "
    "they are trained in the parameters' places; export with optimize=False to keep these: {}"};

/// The parameter that a node's fx node reads where the node reads `tensor`, if no initializer
/// carries it.
bool Namer::fromMetadata(NamedTensor& tensor) {
  const Shape& shape = fileTensor(tensor).shape;
  std::vector<std::string> reshaped;
  for (const Use& use : usesOf(tensor).uses) {
    const Scope& scope = scopes_[use.node];
    if (scope.operands.empty() || isRead(scope.values, tensor.initializer))
      continue;
    FxArgument argument = argumentOf(graph_.nodes[use.node], scope, use.operand, shape.size());
    std::vector<const FxOperand*> candidates;
    for (const FxOperand& operand : argument.lifted)
      if (!byMangled_.contains(operand.mangled))
        candidates.push_back(&operand);
    bool transposed = use.role == Role::Weight && use.transposed && shape.size() == 2 &&
                      scope.target.starts_with("aten.linear.");
    if (transposed && candidates.empty() && argument.lifted.size() == 1 &&
        isCopy(tensor, byMangled_.at(argument.lifted.front().mangled), transposed))
      return true;
    if (candidates.size() != 1)
      continue;
    const FxOperand& operand = *candidates.front();
    std::string name = demangled(operand.mangled, scope.module);
    std::optional<std::vector<int64_t>> dims = dimsOf(argument.reading, shape, transposed);
    if (operand.kind == 'p' && !isFloating(fileTensor(tensor).dtype))
      continue;
    if (!dims) {
      reshaped.push_back(name);
      continue;
    }
    if (!take(tensor, name, false))
      continue;
    if (!std::is_sorted(dims->begin(), dims->end()) || dims->size() != shape.size())
      tensor.turn(shape, *dims);
    const SourceTensor* source = signature().byName(name);
    tensor.kind = operand.kind == 'p'                                      ? TensorKind::Parameter
                  : operand.kind == 'b' && (!source || source->persistent) ? TensorKind::Buffer
                                                                           : TensorKind::Constant;
    if (tensor.kind == TensorKind::Constant)
      tensor.proof = Proof::Source;
    return true;
  }
  const SourceTensor* source = reshaped.empty() ? nullptr : signature().byName(reshaped.front());
  if (reshaped.empty() || !isFloating(fileTensor(tensor).dtype) || !usesOf(tensor).differentiable ||
      (source && !source->parameter))
    return false;
  namePart(tensor, {reshaped.front()}, kReshaped);
  return true;
}

/// Of the tensor of `shape` that an op reads so: dimension i of its parameter is dimension
/// result[i]. Nothing where the parameter's shape is not known.
std::optional<std::vector<int64_t>> Namer::dimsOf(Reading reading, const Shape& shape,
                                                  bool transposed) {
  if (transposed)
    return std::vector<int64_t>{1, 0};
  std::vector<int64_t> dims;
  for (size_t d = 0; d < shape.size(); ++d)
    if (reading == Reading::AsIs || shape[d] != 1)
      dims.push_back(static_cast<int64_t>(d));
  if (reading == Reading::AsIs)
    return dims;
  if (reading == Reading::Vector && dims.empty() && !shape.empty())
    dims.push_back(0);
  return reading == Reading::Vector && dims.size() == 1 ? std::optional(dims) : std::nullopt;
}

/// Do fx nodes say that it is no parameter: the value of another node, or a number?
bool Namer::isFolded(const NamedTensor& tensor) const {
  return std::ranges::any_of(usesOf(tensor).uses, [&](const Use& use) {
    const Scope& scope = scopes_[use.node];
    return isRead(scope.values, tensor.initializer) ||
           (scope.readsFx() &&
            argumentOf(graph_.nodes[use.node], scope, use.operand, fileTensor(tensor).shape.size())
                .lifted.empty());
  });
}

bool Namer::isPresent(const std::string& value) const {
  return producer_.contains(value) || graph_.initializers.contains(value) ||
         std::ranges::any_of(graph_.inputs, [&](const Port& input) { return input.name == value; });
}

/// Is the initializer `name`, or the one that it was merged into, among the values?
bool Namer::isRead(const std::vector<FxOperand>& values, const std::string& name) const {
  const std::string& original = graph_.initializers.at(name).copyOf;
  return std::ranges::any_of(values, [&](const FxOperand& value) {
    return value.mangled == name || value.mangled == original;
  });
}

/// "enc_0_weight" to "enc.0.weight": the longest module path that it starts with, then the
/// attribute.
std::string Namer::demangled(const std::string& text, const std::string& module) const {
  if (const SourceTensor* source = signature().byMangled(text))
    return source->name;
  std::string best;
  auto consider = [&](const std::string& candidate) {
    if (candidate.size() > best.size() && text.starts_with(mangled(candidate) + "_"))
      best = candidate;
  };
  consider(module);
  for (const std::string& candidate : modules_)
    consider(candidate);
  return best.empty() ? text : best + "." + text.substr(best.size() + 1);
}

} // namespace titan::frontend
