// Names and kinds from the nodes of torch.export: each has its fx node's text, which lists the
// parameters and the values of other nodes that it reads.
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Rules.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kReshaped = {
    "{}: the exporter computes with it in another shape than the source has it; it is trained in "
    "the parameter's place; export with optimize=False to keep the parameter",
    "{} tensors are in other shapes than in the source, in which the exporter computes with them; "
    "they are trained in the parameters' places; export with optimize=False to keep these: {}"};

static constexpr NoteCause kScaled = {
    "{} was multiplied by a number before the exporter computes with it (torch.add with alpha); it "
    "is trained in the parameter's place; export with optimize=False to keep the parameter",
    "{} tensors were multiplied by a number before the exporter computes with them (torch.add with "
    "alpha); they are trained in the parameters' places; export with optimize=False to keep these: "
    "{}"};

/// Of the tensor of `shape` that an op reads so: dimension i of its parameter is dimension
/// result[i]. Nothing where the parameter's shape is not known.
static std::optional<std::vector<int64_t>> dimsOf(Reading reading, const Shape& shape,
                                                  bool transposed) {
  if (transposed)
    return std::vector<int64_t>{1, 0};
  if (reading == Reading::Scaled)
    return std::nullopt;
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

bool fromMetadata(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Shape& shape = facts.file(tensor).shape;
  std::vector<std::string> changed; // parameters that it is not as it stands
  bool isScaled = false;
  for (const Use& use : facts.usesOf(tensor).uses) {
    const Scope& scope = facts.scopeOf(use);
    if (scope.operands.empty() || facts.isAmong(scope.values, tensor))
      continue;
    FxArgument argument = argumentOf(facts.nodeOf(use), scope, use.operand, shape.size());
    std::vector<const FxOperand*> candidates;
    for (const FxOperand& operand : argument.lifted)
      if (argument.reading == Reading::Scaled || !facts.byMangled(operand.mangled))
        candidates.push_back(&operand);
    bool transposed = use.role == Role::Weight && use.transposed && shape.size() == 2 &&
                      scope.target.starts_with("aten.linear.");
    if (transposed && candidates.empty() && argument.lifted.size() == 1 &&
        readAsTransposed(naming, tensor, *facts.byMangled(argument.lifted.front().mangled)))
      return true;
    if (candidates.size() != 1)
      continue;
    const FxOperand& operand = *candidates.front();
    std::string name = facts.demangled(operand.mangled, scope.module);
    std::optional<std::vector<int64_t>> dims = dimsOf(argument.reading, shape, transposed);
    if (operand.kind == 'p' && !isFloating(facts.file(tensor).dtype))
      continue;
    if (!dims) {
      // Of nothing but a constant only constants are computed.
      if (operand.kind == 'c' && argument.lifted.size() == 1) {
        tensor.kind = TensorKind::Constant;
        tensor.proof = Proof::Source;
        return true;
      }
      // One element may be a number that the op needs.
      if (elementCount(shape) == 1 && !argument.isSole && !argument.isPlaced)
        continue;
      changed.push_back(name);
      isScaled |= argument.reading == Reading::Scaled;
      continue;
    }
    if (!naming.take(tensor, name, false))
      continue;
    if (!std::is_sorted(dims->begin(), dims->end()) || dims->size() != shape.size())
      tensor.turn(shape, *dims);
    const SourceTensor* source = facts.signature().byName(name);
    tensor.kind = operand.kind == 'p'                                      ? TensorKind::Parameter
                  : operand.kind == 'b' && (!source || source->persistent) ? TensorKind::Buffer
                                                                           : TensorKind::Constant;
    if (tensor.kind == TensorKind::Constant)
      tensor.proof = Proof::Source;
    return true;
  }
  const SourceTensor* source =
      changed.empty() ? nullptr : facts.signature().byName(changed.front());
  if (changed.empty() || !facts.isDifferentiable(tensor) || (source && !source->parameter))
    return false;
  naming.namePart(tensor, {changed.front()}, isScaled ? kScaled : kReshaped);
  return true;
}

bool isFolded(const Facts& facts, const NamedTensor& tensor) {
  return std::ranges::any_of(facts.usesOf(tensor).uses, [&](const Use& use) {
    const Scope& scope = facts.scopeOf(use);
    return facts.isAmong(scope.values, tensor) ||
           (scope.readsFx() &&
            argumentOf(facts.nodeOf(use), scope, use.operand, facts.file(tensor).shape.size())
                .lifted.empty());
  });
}

} // namespace titan::frontend
