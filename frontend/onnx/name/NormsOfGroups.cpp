#include "frontend/onnx/name/NormsOfGroups.h"

#include "frontend/onnx/name/Dataflow.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Rules.h"
#include "frontend/onnx/name/SourceModel.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

static constexpr NoteCause kFolded = {
    "{} was reshaped by the exporter and is taken for the parameter of the norm of groups that it "
    "belongs to; export with do_constant_folding=False or optimize=False to be sure",
    "{} tensors were reshaped by the exporter and are taken for the parameters of the norms of "
    "groups that they belong to; export with do_constant_folding=False or optimize=False to be "
    "sure: {}"};

namespace {

class Finder {
public:
  explicit Finder(const Graph& graph) : graph_(graph), dataflow_(graph) {}

  std::vector<NormOfGroups> run() const {
    std::vector<NormOfGroups> found;
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (std::optional<NormOfGroups> norm = match(i))
        found.push_back(*norm);
    return found;
  }

private:
  std::optional<NormOfGroups> match(size_t index) const {
    const Node& node = graph_.nodes[index];
    if (!node.domain.empty() || node.opType != "InstanceNormalization" || node.inputs.size() < 3)
      return std::nullopt;
    const std::optional<size_t> view = dataflow_.producerOf(node.inputs[0]),
                                back = onlyReader(index, "Reshape");
    if (!view || graph_.nodes[*view].opType != "Reshape" || !back)
      return std::nullopt;
    NormOfGroups norm;
    norm.norm = index;
    norm.scale = onlyReader(*back, "Mul");
    if (norm.scale) {
      norm.scaleOperand = otherOperand(*norm.scale, *back);
      norm.shift = onlyReader(*norm.scale, "Add");
      if (norm.shift)
        norm.shiftOperand = otherOperand(*norm.shift, *norm.scale);
    }
    const std::string target = scopeOf(node).target;
    // Without a product behind it the norm's own scale would be the module's.
    if (target.starts_with("aten.group_norm.") || target.starts_with("aten.native_group_norm."))
      return norm.scale ? std::optional(norm) : std::nullopt;
    // Without metadata its own scale and bias say that they are no parameters: those are behind.
    return target.empty() && norm.shift && isMadeUp(node.inputs[1]) && isMadeUp(node.inputs[2])
               ? std::optional(norm)
               : std::nullopt;
  }

  /// The node that reads the result of node `index`, if it is of type `op` and no other one does.
  std::optional<size_t> onlyReader(size_t index, std::string_view op) const {
    const std::string& value = graph_.nodes[index].outputs.front();
    const std::vector<Read>& reads = dataflow_.readsOf(value);
    if (reads.size() != 1 || graph_.nodes[reads.front().node].opType != op ||
        std::ranges::any_of(graph_.outputs, [&](const Port& out) { return out.name == value; }))
      return std::nullopt;
    return reads.front().node;
  }

  size_t otherOperand(size_t index, size_t producer) const {
    return graph_.nodes[index].inputs[0] == graph_.nodes[producer].outputs[0] ? 1 : 0;
  }

  /// Numbers of the exporter: TorchScript's are of Constant nodes. A conversion to another opset
  /// leaves initializers, perhaps merged with those of others. One that has kept its name and that
  /// nobody else reads may be a parameter.
  bool isMadeUp(const std::string& name) const {
    auto tensor = graph_.initializers.find(name);
    if (tensor == graph_.initializers.end() || !isUniform(tensor->second))
      return false;
    return tensor->second.fromConstantNode ||
           (isConverted_ && (isAnonymous(name) || dataflow_.readsOf(name).size() > 1));
  }

  const Graph& graph_;
  const Dataflow dataflow_;
  const bool isConverted_ = isConverted(graph_);
};

/// Erases an initializer that nobody reads any more.
void eraseUnread(Graph& graph, const std::string& name) {
  auto isIt = [&](const std::string& other) { return other == name; };
  for (const Node& node : graph.nodes)
    if (std::ranges::any_of(node.inputs, isIt))
      return;
  if (std::ranges::any_of(graph.outputs, [&](const Port& output) { return isIt(output.name); }))
    return;
  graph.initializers.erase(name);
  std::erase_if(graph.initializerOrder, isIt);
}

} // namespace

std::vector<NormOfGroups> normsOfGroups(const Graph& graph) { return Finder(graph).run(); }

void separateNormsOfGroups(Graph& graph) {
  if (!graph.fromPyTorch())
    return;
  std::set<std::string> replaced;
  for (const NormOfGroups& found : normsOfGroups(graph))
    for (size_t k : {1, 2}) {
      std::string& read = graph.nodes[found.norm].inputs[k];
      auto tensor = graph.initializers.find(read);
      if (tensor == graph.initializers.end() || tensor->second.fromConstantNode)
        continue;
      const std::string number = read + "#number";
      if (!graph.initializers.contains(number)) {
        addCopy(graph, read, number, /*nameless=*/true);
        // No parameter is merged with it any more.
        graph.initializers.at(number).copyOf.clear();
        graph.initializers.at(number).fromConstantNode = true;
      }
      replaced.insert(read);
      read = number;
    }
  for (const std::string& name : replaced)
    eraseUnread(graph, name);
}

bool fromNormOfGroups(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Shape& shape = facts.file(tensor).shape;
  const bool isByChannel =
      !shape.empty() &&
      std::all_of(shape.begin() + 1, shape.end(), [](int64_t extent) { return extent == 1; });
  const std::vector<Use>& uses = facts.usesOf(tensor).uses;
  // Only what scales or shifts such a norm has this role in these ops (Uses.cpp).
  const auto isOfNorm = [&](const Use& use) {
    const std::string& op = facts.nodeOf(use).opType;
    return use.role == uses.front().role && ((op == "Mul" && use.role == Role::NormScale) ||
                                             (op == "Add" && use.role == Role::NormBias));
  };
  if ((!facts.isLegacyFold(tensor) && !facts.isConverted) || !facts.isDifferentiable(tensor) ||
      !isByChannel || uses.empty() || !std::ranges::all_of(uses, isOfNorm))
    return false;
  const Use& use = uses.front();
  tensor.kind = TensorKind::Parameter;
  const Scope& scope = facts.scopeOf(use);
  const char* leaf = use.role == Role::NormScale ? "weight" : "bias";
  const std::string name = scope.module + "." + leaf;
  const bool isNamed = !scope.module.empty() && scope.place != ScopePlace::Unknown &&
                       naming.take(tensor, name, /*transposed=*/false);
  if (!isNamed)
    naming.nameStructurally(tensor);
  tensor.turn(shape, {0});
  if (isNamed) {
    tensor.guessed = true;
    tensor.setDoubt(kFolded,
                    fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(name)));
  }
  return true;
}

} // namespace titan::frontend
