// Tensors that torch.export's optimizer merged for their equal values, whose readers still say
// which parameter, or which value that it folded, each of them reads.
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/name/Recurrent.h"
#include "frontend/onnx/name/SourceModel.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

static constexpr NoteCause kMerged = {
    "{} was merged from several parameters of equal value; they are separate here",
    "{} tensors were each merged from several parameters of equal value; they are separate here: "
    "{}"};

namespace {

class FxSplitter {
public:
  explicit FxSplitter(Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      known_.insert(node.outputs.begin(), node.outputs.end());
      const Scope& scope = scopes_.emplace_back(scopeOf(node));
      for (const FxOperand& operand : scope.operands)
        parameters_.insert(operand.mangled);
      for (const std::string& input : node.inputs)
        if (graph.initializers.contains(input) && readsItself(scope, input))
          readThemselves_.insert(input);
    }
    for (const Port& input : graph.inputs)
      known_.insert(input.name);
    for (const auto& [name, tensor] : graph.initializers) {
      known_.insert(name);
      elements_.emplace(fxNameOf(graph, name), elementCount(tensor.shape));
    }
  }

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      for (size_t k = 0; k < graph_.nodes[i].inputs.size(); ++k)
        if (auto tensor = graph_.initializers.find(graph_.nodes[i].inputs[k]);
            tensor != graph_.initializers.end())
          separate(i, k, tensor->second);
    for (const std::string& tensor : merged_)
      if (folded_.contains(tensor) && !isRead(tensor))
        remove(tensor);
      else
        graph_.notes.add(kMerged, inQuotes(tensor));
  }

private:
  bool isRead(const std::string& value) const {
    const auto reads = [&](const Node& node) {
      return std::ranges::find(node.inputs, value) != node.inputs.end();
    };
    return std::ranges::any_of(graph_.nodes, reads) ||
           std::ranges::any_of(graph_.outputs,
                               [&](const Port& output) { return output.name == value; });
  }

  void separate(size_t index, size_t k, const Tensor& tensor) {
    std::string& read = graph_.nodes[index].inputs[k];
    const std::string original = read;
    if (const std::string name = nameBehind(index, tensor); !name.empty()) {
      addCopy(graph_, original, name, /*nameless=*/false);
      noteMerged(original);
      read = name;
      return;
    }
    std::string identity = identityOf(index, k, tensor);
    if (identity.empty())
      return;
    // What one module reads again has the same values, and was drawn: the module is called again.
    if (identity.front() == '%' && !scopes_[index].module.empty() && isDrawn(tensor))
      identity = "%" + scopes_[index].module;
    auto& names = copies_[original];
    // The file's name stays with its own tensor, whoever is used first; an anonymous one is that of
    // its first use.
    if (names.empty())
      names.emplace(ownIdentity(original).value_or(identity), original);
    auto [it, fresh] = names.try_emplace(identity, "");
    if (fresh) {
      it->second = fmt::format("{}#{}", original, names.size() - 1);
      if (holdsFoldedNorm(graph_.nodes[index]))
        folded_.insert(original);
      addCopy(graph_, original, it->second, /*nameless=*/true);
      // Integers without a name of the source are axes and shapes.
      if (isFloating(tensor.dtype) || graph_.signature.byName(original))
        noteMerged(original);
    }
    read = it->second;
  }

  void remove(const std::string& tensor) {
    graph_.initializers.erase(tensor);
    std::erase(graph_.initializerOrder, tensor);
  }

  void noteMerged(const std::string& tensor) {
    if (std::ranges::find(merged_, tensor) == merged_.end())
      merged_.push_back(tensor);
  }

  /// Which tensor of the source operand `k` is: the mangled name of a parameter, or "%add_1" of
  /// a value that was folded. Empty: not known.
  std::string identityOf(size_t index, size_t k, const Tensor& tensor) {
    const Node& node = graph_.nodes[index];
    const std::string& name = node.inputs[k];
    const Scope& scope = scopes_[index];
    // The biases of all layers of a module are arguments of each: the matrix beside tells whose.
    if (k == kRecurrentBias && !gatesOf(node).empty())
      return "%" + node.inputs[kRecurrentMatrix];
    FxArgument argument = argumentOf(node, scope, k, tensor.shape.size());
    if (argument.isSole && argument.lifted.size() == 1 && argument.values.empty())
      return argument.reading == Reading::Scaled ? "%" + argument.lifted.front().mangled + "*"
                                                 : argument.lifted.front().mangled;
    if (argument.isSole && argument.lifted.empty() && argument.values.empty())
      return numberIn(tensor, name);
    // A norm that is called again reads its statistics through one.
    if (node.opType == "Identity" && readsItself(scope, name))
      return fxNameOf(graph_, name);
    if (argument.isNone)
      return "%";
    // A fresh norm reads its bias as its mean, too.
    if (node.opType == "BatchNormalization" && k == kBatchCounter)
      return fxNameOf(graph_, name);
    if (node.opType == "BatchNormalization") {
      std::string& firstCall = statistics_[{scope.module, k}];
      if (argument.lifted.size() == 1)
        return firstCall = argument.lifted.front().mangled;
      if (k >= 3 && argument.lifted.empty() && !firstCall.empty())
        return firstCall;
    }
    if (readsItself(scope, name))
      return fxNameOf(graph_, name);
    for (const FxOperand& value : argument.values)
      if (value.mangled == name)
        return "%" + name;
    // Of an op that reads several, the one that is called alike.
    if (argument.lifted.size() > 1)
      std::erase_if(argument.lifted, [&](const FxOperand& operand) {
        return !operand.mangled.ends_with("_" + mangled(leafOf(tensor.name)));
      });
    if (argument.lifted.size() == 1)
      return tensor.shape.empty() || isOfOtherSize(argument.lifted.front(), tensor)
                 ? std::string()
                 : argument.lifted.front().mangled;
    if (!argument.lifted.empty() || scope.values.empty())
      return {};
    // Values that are in no file were folded, or are views that nobody needs.
    std::erase_if(argument.values, [&](const FxOperand& value) {
      return known_.contains(value.mangled) || namesNumbers(value.mangled);
    });
    if (readThemselves_.contains(name)) {
      // Not the parameter that gives the tensor its name: nothing of it is read here.
      std::string values;
      for (const FxOperand& value : argument.values)
        values += "%" + value.mangled;
      return values.empty() && elementCount(tensor.shape) > 1 ? std::string() : values + "%";
    }
    // "add_7", which is in no file, where "add" is: another value of the same op. What a layer
    // reads of its weight's argument is computed of that alone.
    std::erase_if(argument.values, [&](const FxOperand& value) {
      return !argument.isPlaced && opOfValue(value.mangled) != opOfValue(name);
    });
    return argument.values.size() == 1 ? "%" + argument.values.front().mangled : std::string();
  }

  /// Has the file a tensor of the name of `parameter` that has another number of elements?
  bool isOfOtherSize(const FxOperand& parameter, const Tensor& tensor) const {
    auto own = elements_.find(parameter.mangled);
    return own != elements_.end() && own->second != elementCount(tensor.shape);
  }

  /// Of an argument that is a number of the program.
  static std::string numberIn(const Tensor& tensor, const std::string& name) {
    if (elementCount(tensor.shape) != 1)
      return {};
    return namesNumbers(name) ? "%" + name : "%";
  }

  /// What a node without metadata reads, in place of a parameter that others read themselves: the
  /// one that is called alike in the module of the nodes behind it. Empty: not known.
  std::string nameBehind(size_t index, const Tensor& tensor) const {
    if (scopes_[index].known || !readThemselves_.contains(tensor.name))
      return {};
    std::set<std::string> modules,
        values(graph_.nodes[index].outputs.begin(), graph_.nodes[index].outputs.end());
    for (size_t i = index + 1; i < graph_.nodes.size(); ++i)
      if (std::ranges::any_of(graph_.nodes[i].inputs,
                              [&](const std::string& input) { return values.contains(input); }))
        modules.insert(scopes_[i].module);
    if (modules.size() != 1 || modules.begin()->empty() ||
        *modules.begin() == moduleOf(tensor.name))
      return {};
    std::string name = fmt::format("{}.{}", *modules.begin(), leafOf(tensor.name));
    const SourceTensor* source = graph_.signature.byName(name);
    return source && source->parameter && !graph_.initializers.contains(name) ? name
                                                                              : std::string();
  }

  bool readsItself(const Scope& scope, const std::string& name) const {
    std::string own = fxNameOf(graph_, name);
    return std::ranges::any_of(scope.operands,
                               [&](const FxOperand& operand) { return operand.mangled == own; });
  }

  /// Of a name that is the source's.
  std::optional<std::string> ownIdentity(const std::string& name) const {
    bool isSource = graph_.signature.known() ? graph_.signature.byName(name) != nullptr
                                             : parameters_.contains(mangled(name));
    return isSource ? std::optional(fxNameOf(graph_, name)) : std::nullopt;
  }

  Graph& graph_;
  std::vector<Scope> scopes_;               ///< by node
  std::vector<std::string> merged_;         ///< in the order of their readers
  std::set<std::string> folded_;            ///< of them: in place of which a product with a norm is
  std::set<std::string> known_;             ///< values that the graph has
  std::map<std::string, int64_t> elements_; ///< of initializers, by mangled name
  std::set<std::string> parameters_;        ///< that fx nodes name, mangled
  /// Initializers that a node reads whose fx node names them.
  std::set<std::string> readThemselves_;
  /// What a norm of the batch of a module reads as its operand of this number.
  std::map<std::pair<std::string, size_t>, std::string> statistics_;
  /// By initializer: what its readers read, and what that is called here.
  std::map<std::string, std::map<std::string, std::string>> copies_;
};

} // namespace

void splitMergedTensors(Graph& graph) { FxSplitter(graph).run(); }

} // namespace titan::frontend
