#include "frontend/onnx/name/SourceModel.h"

#include "frontend/onnx/name/Namer.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace titan::frontend {

namespace {

constexpr NoteCause kMergedWith = {
    "{} have equal values and were merged; they are separate here",
    "{} pairs of tensors have equal values and were merged; they are separate here: {}"};
constexpr NoteCause kFoldedEqually = {
    "{} have equal values, and nothing tells that they are one parameter: they are separate here",
    "{} pairs of tensors have equal values, and nothing tells that they are one parameter each: "
    "they "
    "are separate here: {}"};
constexpr NoteCause kMerged = {
    "{} was merged from several parameters of equal value; they are separate here",
    "{} tensors were each merged from several parameters of equal value; they are separate here: "
    "{}"};

bool isNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

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

} // namespace

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
      std::string_view module = moduleOf(input), shown = unqualified(module);
      if (!module.empty() &&
          (shown == lastSegment(scope) || shown == withoutNumber(lastSegment(scope))))
        modules.emplace(scope, module);
    }
  }
  std::map<std::string, std::string> known = withSurroundings(modules);
  // "/down" is blocks.0.down: containers are hidden, and other outermost scopes may be in one too.
  bool hidden = std::any_of(known.begin(), known.end(), [](const auto& entry) {
    return entry.first.rfind('/') == 0 && unqualified(entry.second) != entry.second;
  });
  std::set<std::string> unknown; // outermost scopes
  std::map<std::string_view, size_t> repeated;
  for (Node& node : graph.nodes) {
    std::string scope = scopePart(node);
    if (scope.empty())
      continue;
    if (auto it = known.find(scope); it != known.end()) {
      node.module = it->second;
    } else if (std::string module = belowKnown(known, scope); !module.empty()) {
      node.module = module;
    } else if (hidden) {
      auto [outermost, fresh] = unknown.insert(scope.substr(0, scope.find('/', 1)));
      node.place = ScopePlace::Guessed;
      if (fresh)
        ++repeated[withoutNumber(lastSegment(*outermost))];
    }
  }
  // "/gate" and "/gate_1" are in two containers.
  for (Node& node : graph.nodes)
    if (node.place == ScopePlace::Guessed) {
      std::string scope = scopePart(node);
      if (repeated.at(withoutNumber(lastSegment(scope.substr(0, scope.find('/', 1))))) > 1)
        node.place = ScopePlace::Unknown;
    }
}

namespace {

/// The legacy exporter writes tensors of equal bytes once, with an Identity for each of the others.
/// A tied parameter is one value of its graph, whatever it is called: no Identity stands for it. So
/// those that have names are parameters of their own: copies of a layer, or ones and zeros. Of
/// those that it folded, as transposed matrices, the modules around them tell.
class EqualTensors {
public:
  explicit EqualTensors(Graph& graph) : graph_(graph) {}

  void separate() {
    std::vector<size_t> folded;
    std::set<size_t> done;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!standsForTensor(node))
        continue;
      if (isAnonymous(node.outputs[0])) {
        folded.push_back(i);
        continue;
      }
      makeOwn(node, kMergedWith);
      done.insert(i);
    }
    if (!folded.empty())
      indexReaders();
    for (size_t i : folded)
      if (isOfItsOwn(graph_.nodes[i])) {
        makeOwn(graph_.nodes[i], kFoldedEqually);
        done.insert(i);
      }
    size_t index = 0;
    std::erase_if(graph_.nodes, [&](const Node&) { return done.contains(index++); });
  }

private:
  /// Did the exporter write it for equal bytes? What the source computes has a scope or metadata.
  bool standsForTensor(const Node& node) const {
    if (node.opType != "Identity" || node.inputs.size() != 1 || node.outputs.size() != 1 ||
        node.name.starts_with('/') || !node.metadata.empty() ||
        !graph_.initializers.contains(node.inputs[0]))
      return false;
    return std::none_of(graph_.outputs.begin(), graph_.outputs.end(),
                        [&](const Port& output) { return output.name == node.outputs[0]; });
  }

  void makeOwn(const Node& node, const NoteCause& cause) {
    const std::string &original = node.inputs[0], &name = node.outputs[0];
    addCopy(graph_, original, name, /*nameless=*/false);
    graph_.notes.add(cause, fmt::format("{} and {}", inQuotes(name), inQuotes(original)));
  }

  /// Who reads what, once those that have names are tensors of their own.
  void indexReaders() {
    for (const Node& node : graph_.nodes) {
      if (node.opType == "Identity")
        continue;
      const std::string scope = scopePart(node);
      for (const std::string& input : node.inputs) {
        scopeOfReader_.try_emplace(input, scope);
        if (graph_.initializers.contains(input) && !isAnonymous(input))
          namedTensors_[scope].insert(input);
      }
    }
  }

  /// Is what a folded tensor stands for another tensor than the one with its bytes? The same
  /// parameter in two places says that one module is called twice; equal parameters of two modules,
  /// that one is a copy of the other; different ones, that these bytes are tied, unless they are
  /// ones or zeros. Where the modules have nothing else, two calls of one module are told by their
  /// scopes.
  bool isOfItsOwn(const Node& node) {
    const std::string &a = scopeOfReader_[node.inputs[0]], &b = scopeOfReader_[node.outputs[0]];
    bool equalByChance = isUniform(graph_.initializers.at(node.inputs[0]));
    if (a == b)
      return equalByChance;
    const std::set<std::string>&ofA = namedTensors_[a], &ofB = namedTensors_[b];
    auto origin = [&](const std::string& name) {
      const std::string& original = graph_.initializers.at(name).copyOf;
      return original.empty() ? name : original;
    };
    bool copied = false;
    for (const std::string& name : ofB) {
      if (ofA.contains(name))
        return false;
      copied |= std::any_of(ofA.begin(), ofA.end(), [&](const std::string& other) {
        return origin(other) == origin(name);
      });
    }
    if (copied || ofA.empty() || ofB.empty())
      return copied || withoutNumber(a) != withoutNumber(b);
    return equalByChance;
  }

  Graph& graph_;
  std::map<std::string, std::string>
      scopeOfReader_; ///< by value: the legacy scope of its first reader
  std::map<std::string, std::set<std::string>> namedTensors_; ///< that are read, by legacy scope
};

} // namespace

void addCopy(Graph& graph, const std::string& original, const std::string& name, bool nameless) {
  Tensor copy = graph.initializers.at(original);
  copy.name = name;
  copy.copyOf = original;
  copy.nameless = nameless;
  graph.initializers.emplace(name, std::move(copy));
  graph.initializerOrder.push_back(name);
}

/// Is every use of `name` an operand of an op that broadcasts it to another one's shape?
static bool onlyBroadcasts(const Graph& graph, const std::string& name) {
  size_t uses = 0;
  for (const Node& node : graph.nodes)
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != name)
        continue;
      bool binary = node.opType == "Add" || node.opType == "Mul" || node.opType == "Sub";
      if (!binary || graph.initializers.contains(node.inputs[1 - k]))
        return false;
      ++uses;
    }
  for (const Port& output : graph.outputs)
    uses = output.name == name ? 0 : uses;
  return uses > 0;
}

void shareRepeatedSamples(Graph& graph) {
  if (!graph.fromPyTorch())
    return;
  for (auto& [name, tensor] : graph.initializers) {
    bool folded = graph.signature.known() ? !graph.signature.byName(name) : isAnonymous(name);
    if (!folded || tensor.fromConstantNode || tensor.shape.size() < 3 || tensor.shape[0] < 2 ||
        !isFloating(tensor.dtype))
      continue;
    bool isBatch = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const Port& input) {
      return input.dims && !input.dims->empty() && input.dims->front().extent == tensor.shape[0];
    });
    if (!isBatch || !onlyBroadcasts(graph, name) || !hasEqualSlices(tensor))
      continue;
    auto samples = static_cast<uint64_t>(tensor.shape[0]);
    if (tensor.inlineBytes)
      tensor.inlineBytes = std::make_shared<const std::string>(
          tensor.inlineBytes->substr(0, tensor.inlineBytes->size() / samples));
    if (tensor.span)
      tensor.span->bytes /= samples;
    tensor.shape[0] = 1;
  }
}

void splitMergedTensors(Graph& graph) {
  if (graph.fromPyTorch())
    EqualTensors(graph).separate();
  /// The parameter of the fx node that operand `k` of `node` is; empty: not known.
  auto parameterOf = [&](const Node& node, const Scope& scope, size_t k) -> std::string {
    if (scope.operands.empty())
      return {};
    std::string own = mangled(node.inputs[k]);
    std::vector<std::string> tokens;
    for (const FxOperand& operand : scope.operands) {
      if (operand.mangled == own)
        return own;
      // A linear's weight is its second argument, its bias the third.
      bool linear = scope.target.starts_with("aten.linear.");
      bool bias = node.opType == "Add" || k == 2;
      if (!linear || operand.position == (bias ? 2 : 1))
        tokens.push_back(operand.mangled);
    }
    std::string leaf = "_" + mangled(leafOf(node.inputs[k]));
    if (tokens.size() > 1)
      std::erase_if(tokens, [&](const std::string& token) { return !token.ends_with(leaf); });
    return tokens.size() == 1 ? tokens.front() : std::string();
  };
  std::set<std::string> parameters; // that fx nodes name
  std::vector<Scope> scopes;
  for (const Node& node : graph.nodes)
    for (const FxOperand& operand : scopes.emplace_back(scopeOf(node)).operands)
      parameters.insert(operand.mangled);
  auto isSourceName = [&](const std::string& name) {
    return graph.signature.known() ? graph.signature.byName(name) != nullptr
                                   : parameters.contains(mangled(name));
  };
  std::map<std::string, std::map<std::string, std::string>>
      copies; // initializer -> parameter -> name
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    const Scope& scope = scopes[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      auto tensor = graph.initializers.find(node.inputs[k]);
      if (tensor == graph.initializers.end() || tensor->second.shape.empty())
        continue;
      std::string original = node.inputs[k], parameter = parameterOf(node, scope, k);
      if (parameter.empty())
        continue;
      auto& names = copies[original];
      // The file's name stays with its own parameter, whoever is used first; an anonymous tensor is
      // that of its first use.
      if (names.empty())
        names.emplace(isSourceName(original) ? mangled(original) : parameter, original);
      auto [it, fresh] = names.try_emplace(parameter, "");
      if (fresh) {
        it->second = fmt::format("{}#{}", original, names.size() - 1);
        addCopy(graph, original, it->second, /*nameless=*/true);
        graph.notes.add(kMerged, inQuotes(original));
      }
      node.inputs[k] = it->second;
    }
  }
}

void recoverSource(Graph& graph) {
  restoreRemovedBiases(graph);
  shareRepeatedSamples(graph);
  splitMergedTensors(graph);
  splitMergedLayers(graph);
  resolveScopes(graph);
}

} // namespace titan::frontend
