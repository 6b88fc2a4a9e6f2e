// One tensor under several names: the module paths that read it, and copies of it that an exporter
// made.
#include "frontend/onnx/name/Namer.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace titan::frontend {

static constexpr NoteCause kLikelyAlias = {
    "{} is taken for another name of a tied parameter: the scope that uses it shows this module, "
    "but not the containers around it",
    "{} are taken for other names of tied parameters: the scopes that use them show these modules, "
    "but not the containers around them: {}"};

/// Does the op of `use` have a place for what it reads, as layers have for their weights? What a
/// module computes with may be another module's.
bool Namer::isOfLayer(const Use& use) const {
  const Scope& scope = scopes_[use.node];
  return scope.moduleClass.starts_with("torch.nn.modules.") ||
         (signature().known() &&
          argumentOf(graph_.nodes[use.node], scope, use.operand, 2).isPlaced);
}

/// Finds the other names of a tied tensor. Canonical is the first in module order, which the
/// TorchScript exporter keeps, and elsewhere, where no signature tells it, that of the first use.
void Namer::tie(NamedTensor& tensor) {
  // A part of a parameter, or several of them: the names that are known are all.
  if (tensor.pieces.size() > 1 || projections_.contains(tensor.initializer))
    return;
  struct Name {
    std::string name;
    size_t firstUse;
    size_t order;
    bool likely = false; ///< nothing but a legacy scope shows it
  };
  std::vector<Name> names{{tensor.name, SIZE_MAX, 0}};
  std::string module(moduleOf(tensor.name)), leaf(leafOf(tensor.name));
  auto add = [&](const std::string& name, size_t node, bool likely = false) {
    if (signature().known() && !signature().byName(name))
      return;
    for (Name& known : names)
      if (known.name == name) {
        known.firstUse = std::min(known.firstUse, node);
        return;
      }
    if (taken_.insert(name).second)
      names.push_back({name, node, names.size(), likely});
  };
  // Without classes only the usual attributes of a layer tell a tied module from a function call.
  bool legacyTie = graph_.fromPyTorch() && (leaf == "weight" || leaf == "bias") && !module.empty();
  for (const Use& use : usesOf(tensor).uses) {
    const Scope& scope = scopes_[use.node];
    if (tensor.structural || !scope.known)
      continue;
    if (encloses(scope.module, module))
      add(tensor.name, use.node); // the module itself, or a function of one around it
    else if (scope.target.empty() ? legacyTie && (scope.place == ScopePlace::Told ||
                                                  scope.place == ScopePlace::Likely)
                                  : isOfLayer(use))
      add(scope.module + "." + leaf, use.node, scope.place == ScopePlace::Likely);
  }
  for (const std::string& name : usesOf(tensor).identityNames)
    if (!isAnonymous(name) && name.find('.') != std::string::npos)
      add(name, SIZE_MAX);
  bool keepsName = isLegacy() && !isMadeUp(tensor.initializer);
  auto key = [&](const Name& name) {
    return std::tuple(keepsName && name.order > 0, signature().position(name.name), name.firstUse,
                      name.order);
  };
  std::sort(names.begin(), names.end(),
            [&](const Name& a, const Name& b) { return key(a) < key(b); });
  tensor.rename(names.front().name);
  for (size_t i = 1; i < names.size(); ++i) {
    tensor.aliases.push_back(names[i].name);
    if (names[i].likely)
      table_.notes.add(kLikelyAlias,
                       fmt::format("{} (of {})", inQuotes(names[i].name), inQuotes(tensor.name)));
  }
}

/// Makes `tensor` a second reading of what the initializer `of` fills.
void Namer::readAs(NamedTensor& tensor, const std::string& of, bool transposed) {
  const Shape& shape = fileTensor(tensor).shape;
  std::vector<int64_t> dims(shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (transposed)
    std::reverse(dims.begin(), dims.end());
  tensor.turn(shape, dims);
  tensor.isCopy = true;
  copies_[tensor.initializer] = of;
}

/// Names are settled: so are those of what copies read.
void Namer::settleCopies() {
  for (NamedTensor& copy : table_.tensors)
    if (copy.isCopy)
      copy.rename(table_.find(copies_.at(copy.initializer))->name);
}

/// The metadata says that `tensor` is the parameter that the file holds as `of`, or its
/// transposition: the exporter folded the transposition of a tied weight.
bool Namer::isCopy(NamedTensor& tensor, const std::string& of, bool transposed) {
  Shape shape = graph_.initializers.at(of).shape;
  if (transposed && shape.size() == 2)
    std::swap(shape[0], shape[1]);
  if (fileTensor(tensor).shape != shape)
    return false;
  tensor.kind = TensorKind::Parameter;
  readAs(tensor, of, transposed);
  return true;
}

} // namespace titan::frontend
