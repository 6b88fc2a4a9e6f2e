// Tensors of equal bytes, which the TorchScript exporter writes once.
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/LegacyScopes.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

namespace {

constexpr NoteCause kMergedWith = {
    "{} have equal values and were merged; they are separate here",
    "{} pairs of tensors have equal values and were merged; they are separate here: {}"};
constexpr NoteCause kFoldedEqually = {
    "{} have equal values, and nothing tells that they are one parameter: they are separate here",
    "{} pairs of tensors have equal values, and nothing tells that they are one parameter each: "
    "they are separate here: {}"};
constexpr NoteCause kTakenForOne = {
    "{} have equal values and are taken for one parameter that is used twice",
    "{} pairs of tensors have equal values and are taken for one parameter each that is used "
    "twice: {}"};

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
    for (size_t i : folded) {
      const Node& node = graph_.nodes[i];
      switch (relationOf(node)) {
      case Relation::Distinct:
        makeOwn(node, kFoldedEqually);
        done.insert(i);
        break;
      case Relation::TakenForOne:
        graph_.notes.add(kTakenForOne, fmt::format("{} and {}", inQuotes(node.outputs[0]),
                                                   inQuotes(node.inputs[0])));
        break;
      case Relation::One:
        break;
      }
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

  enum class Relation { One, TakenForOne, Distinct };

  /// What a folded tensor is to the one with its bytes. A parameter of their module in two places
  /// says that it is called twice; equal parameters of two modules, that one is a copy of the
  /// other; different ones, that these bytes are tied, unless they are ones or zeros. Where the
  /// modules have nothing else, two calls of one module are told by their scopes.
  Relation relationOf(const Node& node) {
    const std::string &a = scopeOfReader_[node.inputs[0]], &b = scopeOfReader_[node.outputs[0]];
    const Relation otherwise = isUniform(graph_.initializers.at(node.inputs[0]))
                                   ? Relation::Distinct
                                   : Relation::TakenForOne;
    if (a == b)
      return otherwise;
    const std::set<std::string>&ofA = namedTensors_[a], &ofB = namedTensors_[b];
    auto origin = [&](const std::string& name) {
      const std::string& original = graph_.initializers.at(name).copyOf;
      return original.empty() ? name : original;
    };
    bool copied = false;
    for (const std::string& name : ofB) {
      if (ofA.contains(name))
        return !shownModule(a, name).empty() && !shownModule(b, name).empty() ? Relation::One
                                                                              : otherwise;
      copied |= std::any_of(ofA.begin(), ofA.end(), [&](const std::string& other) {
        return origin(other) == origin(name);
      });
    }
    if (copied)
      return Relation::Distinct;
    if (ofA.empty() || ofB.empty())
      return withoutNumber(a) != withoutNumber(b) ? Relation::Distinct : Relation::TakenForOne;
    return otherwise;
  }

  Graph& graph_;
  std::map<std::string, std::string>
      scopeOfReader_; ///< by value: the legacy scope of its first reader
  std::map<std::string, std::set<std::string>> namedTensors_; ///< that are read, by legacy scope
};

} // namespace

void separateEqualTensors(Graph& graph) {
  // What torch.export writes as an Identity is a value of the source.
  if (graph.fromPyTorch() && !isConverted(graph))
    EqualTensors(graph).separate();
}

} // namespace titan::frontend
