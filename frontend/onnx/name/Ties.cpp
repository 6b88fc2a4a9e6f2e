// One tensor under several names: the module paths that read it.
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Rules.h"

#include <algorithm>
#include <tuple>

namespace titan::frontend {

static constexpr NoteCause kLikelyAlias = {
    "{} is taken for another name of a tied parameter: the scope that uses it shows this module, "
    "but not the containers around it",
    "{} are taken for other names of tied parameters: the scopes that use them show these modules, "
    "but not the containers around them: {}"};

/// Does the op of `use` have a place for what it reads, as layers have for their weights? What a
/// module computes with may be another module's.
static bool isOfLayer(const Facts& facts, const Use& use) {
  const Scope& scope = facts.scopeOf(use);
  return scope.moduleClass.starts_with("torch.nn.modules.") ||
         (facts.signature().known() &&
          argumentOf(facts.nodeOf(use), scope, use.operand, 2).isPlaced);
}

void tie(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  // A part of a parameter, or several of them: the names that are known are all.
  if (tensor.pieces.size() > 1 || naming.projections.contains(tensor.initializer))
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
    if (facts.signature().known() && !facts.signature().byName(name))
      return;
    for (Name& known : names)
      if (known.name == name) {
        known.firstUse = std::min(known.firstUse, node);
        return;
      }
    if (naming.reserve(name))
      names.push_back({name, node, names.size(), likely});
  };
  // Without classes only the usual attributes of a layer tell a tied module from a function call.
  bool legacyTie =
      facts.graph.fromPyTorch() && (leaf == "weight" || leaf == "bias") && !module.empty();
  for (const Use& use : facts.usesOf(tensor).uses) {
    const Scope& scope = facts.scopeOf(use);
    if (tensor.structural || !scope.known)
      continue;
    if (encloses(scope.module, module))
      add(tensor.name, use.node); // the module itself, or a function of one around it
    else if (scope.target.empty() ? legacyTie && (scope.place == ScopePlace::Told ||
                                                  scope.place == ScopePlace::Likely)
                                  : isOfLayer(facts, use))
      add(scope.module + "." + leaf, use.node, scope.place == ScopePlace::Likely);
  }
  for (const std::string& name : facts.usesOf(tensor).identityNames)
    if (!isAnonymous(name) && name.find('.') != std::string::npos)
      add(name, SIZE_MAX);
  bool keepsName = facts.isLegacy() && !facts.isMadeUp(tensor.initializer);
  auto key = [&](const Name& name) {
    return std::tuple(keepsName && name.order > 0, facts.signature().position(name.name),
                      name.firstUse, name.order);
  };
  std::sort(names.begin(), names.end(),
            [&](const Name& a, const Name& b) { return key(a) < key(b); });
  tensor.rename(names.front().name);
  for (size_t i = 1; i < names.size(); ++i) {
    tensor.aliases.push_back(names[i].name);
    if (names[i].likely)
      naming.table.notes.add(
          kLikelyAlias, fmt::format("{} (of {})", inQuotes(names[i].name), inQuotes(tensor.name)));
  }
}

} // namespace titan::frontend
