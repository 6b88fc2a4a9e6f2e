#include "frontend/onnx/name/LegacyScopes.h"

#include "frontend/onnx/name/SourceModel.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace titan::frontend {

static bool isNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// "down" of "down_1": the exporter numbers scopes of equal names.
std::string_view withoutNumber(std::string_view segment) {
  size_t underscore = segment.rfind('_');
  bool numbered = underscore != std::string_view::npos && isNumber(segment.substr(underscore + 1));
  return numbered ? segment.substr(0, underscore) : segment;
}

/// The scope part of a legacy node name: "/a/b" of "/a/b/MatMul"; empty for others.
std::string scopePart(const Node& node) {
  if (!node.name.starts_with('/') || node.metadata.contains("pkg.torch.onnx.name_scopes"))
    return {};
  return node.name.substr(0, node.name.rfind('/'));
}

namespace {

/// The part of a module path that a legacy scope shows: from its last segment that is no number on.
std::string_view unqualified(std::string_view module) {
  size_t end = module.size();
  while (true) {
    size_t dot = module.rfind('.', end ? end - 1 : 0);
    if (end == 0 || dot == std::string_view::npos)
      return module;
    if (!isNumber(module.substr(dot + 1, end - dot - 1)))
      return module.substr(dot + 1);
    end = dot;
  }
}

std::string_view lastSegment(std::string_view scope) { return scope.substr(scope.rfind('/') + 1); }

/// Modules by scope, from those with evidence: "/h.0/ln_1" is "transformer.h.0.ln_1", so "/h.0" is
/// "transformer.h.0". A scope that would be two modules is left out.
std::map<std::string, std::string>
withSurroundings(const std::map<std::string, std::string>& modules) {
  std::map<std::string, std::string> all = modules;
  std::set<std::string> contradictory;
  for (const auto& [scope, module] : modules) {
    std::string inner = scope, path = module;
    while (inner.rfind('/') != 0) {
      std::string outer = inner.substr(0, inner.rfind('/'));
      std::string_view segment = lastSegment(inner), around = lastSegment(outer);
      std::string_view shown = unqualified(path);
      if (shown != segment && shown != withoutNumber(segment))
        break;
      // "/blocks/blocks.0": an element of a list that was called itself.
      bool element = segment.size() > around.size() + 1 && segment.starts_with(around) &&
                     isNumber(segment.substr(around.size() + 1));
      if (element)
        path = std::string(moduleOf(path));
      else if (path.size() > shown.size())
        path.resize(path.size() - shown.size() - 1);
      else
        break;
      // A container that is not called has no scope: "/model/h.0" is "model.transformer.h.0".
      if (unqualified(path) != around && unqualified(path) != withoutNumber(around))
        break;
      // The outermost scope is a child of the root: of "model.model" and "model", which both show
      // as "/model", the latter, whose own "model" was not called.
      for (std::string_view above = moduleOf(path);
           outer.rfind('/') == 0 && !above.empty() && unqualified(above) == around;
           above = moduleOf(path))
        path = std::string(above);
      auto [it, fresh] = all.try_emplace(outer, path);
      if (!fresh && it->second != path)
        contradictory.insert(outer);
      inner = outer;
    }
  }
  for (const std::string& scope : contradictory)
    if (!modules.contains(scope))
      all.erase(scope);
  return all;
}

/// The module of `scope` below the nearest scope around it that is known; empty where none is.
std::string belowKnown(const std::map<std::string, std::string>& modules,
                       const std::string& scope) {
  for (size_t end = scope.rfind('/'); end != 0 && end != std::string::npos;
       end = scope.rfind('/', end - 1)) {
    auto known = modules.find(scope.substr(0, end));
    if (known == modules.end())
      continue;
    std::string module = known->second;
    std::string_view around = lastSegment(known->first);
    for (size_t begin = end + 1; begin < scope.size();) {
      size_t next = std::min(scope.find('/', begin), scope.size());
      std::string_view segment = std::string_view(scope).substr(begin, next - begin);
      bool element = segment.size() > around.size() + 1 && segment.starts_with(around) &&
                     segment[around.size()] == '.' && isNumber(segment.substr(around.size() + 1));
      module += element ? std::string(segment.substr(around.size())) : "." + std::string(segment);
      around = segment;
      begin = next + 1;
    }
    return module;
  }
  return {};
}

/// Is `scope`, or one around it that is not known, numbered: "/h/gate_1" beside "/h/gate"? It is
/// another call of that module, or a module of that name in another container.
bool isSecond(const std::string& scope, const std::set<std::string>& scopes,
              const std::map<std::string, std::string>& known) {
  for (size_t end = scope.size(); end != 0; end = scope.rfind('/', end - 1)) {
    std::string around = scope.substr(0, end);
    if (known.contains(around))
      return false;
    std::string_view segment = lastSegment(around), first = withoutNumber(segment);
    if (first != segment &&
        scopes.contains(around.substr(0, around.size() - segment.size() + first.size())))
      return true;
  }
  return false;
}

} // namespace

std::string_view shownModule(std::string_view scope, std::string_view tensor) {
  std::string_view module = moduleOf(tensor);
  // nn.MultiheadAttention reads the tensors of its out_proj, which it does not call.
  for (std::string_view candidate :
       {module, leafOf(module) == "out_proj" ? moduleOf(module) : std::string_view()}) {
    std::string_view shown = unqualified(candidate);
    if (!candidate.empty() &&
        (shown == lastSegment(scope) || shown == withoutNumber(lastSegment(scope))))
      return candidate;
  }
  return {};
}

void resolveScopes(Graph& graph) {
  if (!graph.fromPyTorch())
    return;
  std::map<std::string, std::string> modules; // of scopes with evidence
  for (const Node& node : graph.nodes) {
    std::string scope = scopePart(node);
    if (scope.empty())
      continue;
    for (const std::string& input : node.inputs) {
      auto tensor = graph.initializers.find(input);
      if (tensor == graph.initializers.end() || tensor->second.fromConstantNode)
        continue;
      if (std::string_view module = shownModule(scope, input); !module.empty())
        modules.emplace(scope, module);
    }
  }
  std::map<std::string, std::string> known = withSurroundings(modules);
  // "/down" is blocks.0.down: containers are hidden, and other outermost scopes may be in one too.
  bool hidden = std::any_of(known.begin(), known.end(), [](const auto& entry) {
    return entry.first.rfind('/') == 0 && unqualified(entry.second) != entry.second;
  });
  std::set<std::string> scopes, unknown; // with those around them; outermost ones that are unknown
  for (const Node& node : graph.nodes) {
    std::string scope = scopePart(node);
    for (size_t end = scope.size(); end != 0; end = scope.rfind('/', end - 1))
      scopes.insert(scope.substr(0, end));
  }
  std::map<std::string_view, size_t> repeated;
  for (Node& node : graph.nodes) {
    std::string scope = scopePart(node);
    if (scope.empty())
      continue;
    if (auto it = known.find(scope); it != known.end()) {
      node.module = it->second;
      continue;
    }
    std::string module = belowKnown(known, scope);
    node.place = hidden && module.empty() ? ScopePlace::Guessed : ScopePlace::Likely;
    if (node.place == ScopePlace::Guessed) {
      auto [outermost, fresh] = unknown.insert(scope.substr(0, scope.find('/', 1)));
      if (fresh)
        ++repeated[withoutNumber(lastSegment(*outermost))];
    }
    if (isSecond(scope, scopes, known))
      node.place = ScopePlace::Unknown;
    else if (!module.empty())
      node.module = module;
  }
  // "/gate" and "/gate_1" are in two containers.
  for (Node& node : graph.nodes)
    if (node.place == ScopePlace::Guessed) {
      std::string scope = scopePart(node);
      if (repeated.at(withoutNumber(lastSegment(scope.substr(0, scope.find('/', 1))))) > 1)
        node.place = ScopePlace::Unknown;
    }
}

} // namespace titan::frontend
