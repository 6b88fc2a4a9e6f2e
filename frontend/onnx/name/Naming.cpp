#include "frontend/onnx/name/Naming.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kNameless = {
    "{} has no name that could be recovered; --names can give it one",
    "{} tensors have no names that could be recovered; --names can give them some: {}"};

/// Names that the file has come first: a recovered name must not take one of them.
Naming::Naming(const Facts& facts) : facts(facts) {
  for (const std::string& name : facts.graph.initializerOrder)
    if (!facts.isMadeUp(name))
      taken_.insert(name);
}

bool Naming::isFree(const std::string& name) const {
  return !taken_.contains(name) && (!facts.signature().known() || facts.signature().byName(name));
}

bool Naming::take(NamedTensor& tensor, const std::string& name, bool transposed) {
  if (!reserve(name))
    return false;
  tensor.name = name;
  if (transposed)
    tensor.turn(facts.file(tensor).shape, {1, 0});
  return true;
}

void Naming::nameStructurally(NamedTensor& tensor) {
  const Use& use = *std::find_if(facts.usesOf(tensor).uses.begin(), facts.usesOf(tensor).uses.end(),
                                 [&](const Use& u) { return u.role == tensor.role; });
  const Node& node = facts.nodeOf(use);
  const std::vector<Node>& nodes = facts.graph.nodes;
  std::string type = mangled(node.opType);
  auto ordinal = std::count_if(nodes.begin(), nodes.begin() + static_cast<long>(use.node),
                               [&](const Node& other) { return other.opType == node.opType; });
  const char* leaf = tensor.role == Role::Bias || tensor.role == Role::NormBias ? "bias"
                     : tensor.role == Role::Statistic && use.operand == 3       ? "running_mean"
                     : tensor.role == Role::Statistic                           ? "running_var"
                                                                                : "weight";
  const std::string& module = facts.scopeOf(use).module;
  std::string name =
      fmt::format("{}{}{}_{}.{}", module, module.empty() ? "" : ".", type, ordinal, leaf);
  for (int other = 2; facts.signature().byName(name) || !taken_.insert(name).second; ++other)
    name = fmt::format("{}{}{}_{}.{}_{}", module, module.empty() ? "" : ".", type, ordinal, leaf,
                       other);
  tensor.name = name;
  tensor.structural = true;
  tensor.setDoubt(kNameless,
                  fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(name)));
}

void Naming::namePart(NamedTensor& tensor, std::vector<std::string> of, const NoteCause& cause) {
  tensor.kind = TensorKind::Parameter;
  nameStructurally(tensor);
  tensor.isPart = true;
  std::string shown =
      fmt::format("{} {}", inQuotes(tensor.name), toString(facts.file(tensor).shape));
  for (size_t i = 0; i < of.size(); ++i)
    shown += (i == 0 ? " (of " : ", ") + inQuotes(of[i]);
  tensor.setDoubt(cause, shown + (of.empty() ? "" : ")"));
  accounted_.insert(of.begin(), of.end());
  tensor.partOf = std::move(of);
}

bool Naming::isWhole(const NamedTensor& tensor) const {
  if (tensor.kind != TensorKind::Parameter || tensor.isCopy || tensor.structural)
    return false;
  const Shape& shape = facts.file(tensor).shape;
  return tensor.pieces.empty() ||
         (tensor.pieces.size() == 1 && !projections.contains(tensor.initializer) &&
          tensor.pieces.front().piece.dims.size() == shape.size());
}

std::vector<const SourceTensor*> Naming::lostParameters() const {
  std::vector<const SourceTensor*> lost;
  for (const SourceTensor& source : facts.signature().tensors())
    if (source.parameter && !taken_.contains(source.name) && !accounted_.contains(source.name))
      lost.push_back(&source);
  return lost;
}

} // namespace titan::frontend
