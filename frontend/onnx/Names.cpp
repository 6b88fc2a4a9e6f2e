#include "frontend/onnx/Names.h"

#include "runtime/program/Names.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace titan::frontend {

std::string_view name(TensorKind kind) {
  return kind == TensorKind::Parameter ? "parameter"
         : kind == TensorKind::Buffer  ? "buffer"
                                       : "constant";
}

Shape NamedTensor::sourceShape(const Shape& fileShape) const {
  if (layout.empty())
    return fileShape;
  Shape shape;
  for (int64_t d : layout)
    shape.push_back(fileShape[d]);
  return shape;
}

const NamedTensor* NameTable::find(std::string_view initializer) const {
  for (const NamedTensor& tensor : tensors)
    if (tensor.initializer == initializer)
      return &tensor;
  return nullptr;
}

namespace {

/// Did an exporter or an optimizer make this name up?
bool isAnonymous(std::string_view name) {
  auto digitsFrom = [&](size_t i) {
    return i < name.size() && std::all_of(
                                  name.begin() + static_cast<long>(i), name.end(),
                                  [](unsigned char c) { return std::isdigit(c); });
  };
  if (digitsFrom(0) || name.find("::") != std::string_view::npos || name.starts_with('/'))
    return true;
  for (std::string_view prefix : {"val_", "_val_", "Constant_", "lifted_tensor_",
                                  "const_fold_opt__", "_inlfunc_", "graph_constant"})
    if (name.starts_with(prefix) && (digitsFrom(prefix.size()) || prefix.size() > 8))
      return true;
  // "Identity_output_0", "node_Cast_3_output_0"
  size_t output = name.rfind("_output_");
  return output != std::string_view::npos && digitsFrom(output + 8);
}

bool isFloat(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::F16 || dtype == DType::BF16;
}

class Namer {
public:
  explicit Namer(const Graph& graph) : graph_(graph), uses_(findUses(graph)) {
    for (const Node& node : graph.nodes) {
      scopes_.push_back(scopeOf(node));
      const Scope& scope = scopes_.back();
      if (!scope.module.empty())
        modules_.insert(scope.module);
      for (const FxOperand& operand : scope.operands)
        fxKinds_.emplace(operand.mangled, operand.kind);
    }
    for (const std::string& name : graph.initializerOrder)
      if (!isMadeUp(name))
        byMangled_.emplace(mangled(name), name);
  }

  /// Not a name of the source: an exporter's, or the name of a value that its optimizer folded
  /// (torch.export then names no parameter like it).
  bool isMadeUp(const std::string& name) const {
    const std::string& copyOf = graph_.initializers.at(name).copyOf;
    return isAnonymous(name) || (!copyOf.empty() && name.starts_with(copyOf + "#")) ||
           (!fxKinds_.empty() && !fxKinds_.contains(mangled(name)));
  }

  NameTable run() {
    // Names that the file has come first: a recovered name must not take one of them.
    for (const std::string& name : graph_.initializerOrder)
      if (!isMadeUp(name))
        taken_.insert(name);
    for (const std::string& name : graph_.initializerOrder) {
      NamedTensor tensor;
      tensor.initializer = tensor.name = name;
      describeUse(tensor);
      if (isMadeUp(name))
        recover(tensor);
      else
        classify(tensor);
      table_.tensors.push_back(std::move(tensor));
    }
    for (NamedTensor& tensor : table_.tensors)
      if (tensor.kind != TensorKind::Constant)
        tie(tensor);
    return std::move(table_);
  }

private:
  const Tensor& fileTensor(const NamedTensor& tensor) const {
    return graph_.initializers.at(tensor.initializer);
  }
  const TensorUses& usesOf(const NamedTensor& tensor) const { return uses_.at(tensor.initializer); }

  /// Sets role and fan-in from the first use that has one.
  void describeUse(NamedTensor& tensor) {
    for (const Use& use : usesOf(tensor).uses) {
      if (tensor.role == Role::Other)
        tensor.role = use.role;
      if (tensor.fanIn == 0)
        tensor.fanIn = use.fanIn;
    }
  }

  /// The kind of a tensor whose name the file has kept.
  void classify(NamedTensor& tensor) {
    const Tensor& file = fileTensor(tensor);
    auto fx = fxKinds_.find(mangled(tensor.initializer));
    if (fx != fxKinds_.end()) {
      tensor.kind = fx->second == 'p'   ? TensorKind::Parameter
                    : fx->second == 'b' ? TensorKind::Buffer
                                        : TensorKind::Constant;
      return;
    }
    if (tensor.role == Role::Statistic)
      tensor.kind = TensorKind::Buffer;
    else if (!isFloat(file.dtype) || !usesOf(tensor).differentiable)
      tensor.kind = TensorKind::Constant;
    else if (file.fromConstantNode && (graph_.fromPyTorch() || tensor.role == Role::Other))
      // Library functions name their constants ("beta"); a Constant node that is a weight is
      // another producer's.
      tensor.kind = TensorKind::Constant;
    else if (file.shape.empty() && !graph_.fromPyTorch())
      // PyTorch writes its own scalars without a name; other producers name theirs.
      tensor.kind = TensorKind::Constant;
    else
      tensor.kind = TensorKind::Parameter;
  }

  /// Kind, name and layout of a tensor that the exporter renamed.
  void recover(NamedTensor& tensor) {
    const Tensor& file = fileTensor(tensor);
    // PyTorch writes what it folds as initializers; its Constant nodes are constants of the
    // program.
    if (file.fromConstantNode && graph_.fromPyTorch())
      return;
    if (fromMetadata(tensor) || fromScope(tensor))
      return;
    bool differentiable = isFloat(file.dtype) && usesOf(tensor).differentiable;
    if (tensor.role == Role::Statistic)
      tensor.kind = TensorKind::Buffer;
    else if (differentiable && tensor.role != Role::Other && !file.shape.empty() &&
             (tensor.role != Role::Bias || besideParameter(tensor)))
      tensor.kind = TensorKind::Parameter;
    else
      return;
    nameStructurally(tensor);
  }

  /// Is an anonymous addend a bias? Gemm's third operand is; what an Add takes may be any constant.
  bool besideParameter(const NamedTensor& tensor) const {
    for (const Use& use : usesOf(tensor).uses)
      if (use.role == Role::Bias && graph_.nodes[use.node].opType != "Add" &&
          graph_.nodes[use.node].opType != "Sum")
        return true;
    return false;
  }

  /// torch.export: the fx node lists the parameters that it reads; those that no initializer
  /// carries are candidates.
  bool fromMetadata(NamedTensor& tensor) {
    for (const Use& use : usesOf(tensor).uses) {
      const Scope& scope = scopes_[use.node];
      std::vector<const FxOperand*> candidates;
      for (const FxOperand& operand : scope.operands)
        if (!byMangled_.contains(operand.mangled))
          candidates.push_back(&operand);
      bool linear = scope.target.starts_with("aten.linear.");
      if (linear)
        std::erase_if(candidates, [&](const FxOperand* operand) {
          return operand->position != (use.role == Role::Bias ? 2 : 1);
        });
      // A norm reads a weight and a bias: the operand's part tells which.
      bool bias = use.role == Role::Bias || use.role == Role::NormBias;
      if (candidates.size() > 1)
        std::erase_if(candidates, [&](const FxOperand* operand) {
          return !operand->mangled.ends_with(bias ? "_bias" : "_weight");
        });
      if (candidates.size() != 1)
        continue;
      const FxOperand& operand = *candidates.front();
      bool transposed = linear && use.role == Role::Weight && use.transposed;
      if (!take(tensor, demangled(operand.mangled, scope.module), transposed))
        continue;
      tensor.kind = operand.kind == 'p'   ? TensorKind::Parameter
                    : operand.kind == 'b' ? TensorKind::Buffer
                                          : TensorKind::Constant;
      return true;
    }
    return false;
  }

  /// Scopes alone: a matrix that a module multiplies by, anonymous because its transposition was
  /// folded, is a Linear's weight, and what it adds is its bias.
  bool fromScope(NamedTensor& tensor) {
    const Tensor& file = fileTensor(tensor);
    if (!graph_.fromPyTorch() || !isFloat(file.dtype) || !usesOf(tensor).differentiable)
      return false;
    for (const Use& use : usesOf(tensor).uses) {
      const Scope& scope = scopes_[use.node];
      if (scope.module.empty())
        continue;
      bool weight = use.role == Role::Weight && file.shape.size() >= 2;
      bool bias = use.role == Role::Bias && file.shape.size() == 1;
      if (!weight && !bias)
        continue;
      bool transposed = weight && file.shape.size() == 2 && use.transposed;
      if (!take(tensor, scope.module + (weight ? ".weight" : ".bias"), transposed))
        continue;
      tensor.kind = TensorKind::Parameter;
      return true;
    }
    return false;
  }

  bool take(NamedTensor& tensor, const std::string& name, bool transposed) {
    if (!taken_.insert(name).second)
      return false;
    tensor.name = name;
    if (transposed)
      tensor.layout = {1, 0};
    return true;
  }

  /// "enc_0_weight" to "enc.0.weight": the longest module path that it starts with, then the
  /// attribute.
  std::string demangled(const std::string& text, const std::string& module) const {
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

  void nameStructurally(NamedTensor& tensor) {
    const Use& use = *std::find_if(usesOf(tensor).uses.begin(), usesOf(tensor).uses.end(),
                                   [&](const Use& u) { return u.role == tensor.role; });
    const Node& node = graph_.nodes[use.node];
    std::string type = mangled(node.opType);
    auto ordinal =
        std::count_if(graph_.nodes.begin(), graph_.nodes.begin() + static_cast<long>(use.node),
                      [&](const Node& other) { return other.opType == node.opType; });
    const char* leaf = tensor.role == Role::Bias || tensor.role == Role::NormBias ? "bias"
                       : tensor.role == Role::Statistic && use.operand == 3       ? "running_mean"
                       : tensor.role == Role::Statistic                           ? "running_var"
                                                                                  : "weight";
    const std::string& module = scopes_[use.node].module;
    std::string name =
        fmt::format("{}{}{}_{}.{}", module, module.empty() ? "" : ".", type, ordinal, leaf);
    for (int other = 2; !taken_.insert(name).second; ++other)
      name = fmt::format("{}{}{}_{}.{}_{}", module, module.empty() ? "" : ".", type, ordinal, leaf,
                         other);
    tensor.name = name;
    tensor.structural = true;
    table_.notes.push_back(fmt::format(
        "'{}' has no name that could be recovered: it is called '{}'; --names can say otherwise",
        printable(tensor.initializer), printable(name)));
  }

  /// Finds the other names of a tied tensor; the canonical one is that of the first use.
  void tie(NamedTensor& tensor) {
    struct Name {
      std::string name;
      size_t firstUse;
      size_t order;
    };
    std::vector<Name> names{{tensor.name, SIZE_MAX, 0}};
    std::string module(moduleOf(tensor.name)), leaf(leafOf(tensor.name));
    auto add = [&](const std::string& name, size_t node) {
      for (Name& known : names)
        if (known.name == name) {
          known.firstUse = std::min(known.firstUse, node);
          return;
        }
      if (taken_.insert(name).second)
        names.push_back({name, node, names.size()});
    };
    // Without classes only the usual attributes of a layer tell a tied module from a function call.
    bool legacyTie =
        graph_.fromPyTorch() && (leaf == "weight" || leaf == "bias") && !module.empty();
    for (const Use& use : usesOf(tensor).uses) {
      const Scope& scope = scopes_[use.node];
      if (tensor.structural || !scope.known)
        continue;
      if (encloses(scope.module, module))
        add(tensor.name, use.node); // the module itself, or a function of one around it
      else if (scope.target.empty() ? legacyTie
                                    : scope.moduleClass.starts_with("torch.nn.modules."))
        add(scope.module + "." + leaf, use.node);
    }
    for (const std::string& name : usesOf(tensor).identityNames)
      if (!isAnonymous(name) && name.find('.') != std::string::npos)
        add(name, SIZE_MAX);
    std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) {
      return std::pair(a.firstUse, a.order) < std::pair(b.firstUse, b.order);
    });
    tensor.name = names.front().name;
    for (size_t i = 1; i < names.size(); ++i)
      tensor.aliases.push_back(names[i].name);
  }

  const Graph& graph_;
  std::map<std::string, TensorUses> uses_;
  std::vector<Scope> scopes_; ///< by node
  std::set<std::string> modules_, taken_;
  std::map<std::string, char> fxKinds_;          ///< by mangled name
  std::map<std::string, std::string> byMangled_; ///< initializers that kept their names
  NameTable table_;
};

Status applyOverrides(const Graph& graph, const NameOverrides& overrides, NameTable& table) {
  for (const auto& [initializer, entry] : overrides) {
    auto it = std::find_if(table.tensors.begin(), table.tensors.end(),
                           [&](const NamedTensor& t) { return t.initializer == initializer; });
    if (it == table.tensors.end())
      return Error::badInput("names file: the model has no initializer '{}'; --check lists them",
                             printable(initializer));
    const Shape& shape = graph.initializers.at(initializer).shape;
    if (entry.layout) {
      std::vector<int64_t> sorted = *entry.layout;
      std::sort(sorted.begin(), sorted.end());
      bool permutes = sorted.size() == shape.size();
      for (size_t d = 0; permutes && d < sorted.size(); ++d)
        permutes = sorted[d] == static_cast<int64_t>(d);
      if (!permutes)
        return Error::badInput("names file: '{}': layout {} does not permute the dimensions of {}",
                               printable(initializer), toString(*entry.layout), toString(shape));
      it->layout = *entry.layout == sorted ? std::vector<int64_t>() : *entry.layout;
    }
    if (entry.name) {
      it->name = *entry.name;
      std::erase(it->aliases, it->name);
      it->structural = false;
    }
    if (entry.kind)
      it->kind = *entry.kind;
    if (it->kind == TensorKind::Parameter && !isFloat(graph.initializers.at(initializer).dtype))
      return Error::badInput("names file: '{}' is {}: only floating tensors can be parameters",
                             printable(initializer),
                             titan::name(graph.initializers.at(initializer).dtype));
  }
  return {};
}

/// Wrappers of the training framework (torch.compile, DDP, FSDP) are not part of a canonical name.
void stripWrappers(NameTable& table) {
  std::set<std::string> names;
  for (const NamedTensor& tensor : table.tensors)
    names.insert(tensor.name);
  for (NamedTensor& tensor : table.tensors) {
    if (tensor.kind == TensorKind::Constant)
      continue;
    std::string stripped = stripWrapperSegments(tensor.name);
    if (stripped == tensor.name || !names.insert(stripped).second)
      continue;
    table.notes.push_back(
        fmt::format("'{}' is called '{}': wrapper segments are not part of a name",
                    printable(tensor.name), printable(stripped)));
    tensor.name = stripped;
  }
}

} // namespace

Result<NameTable> nameTensors(const Graph& graph, const NameOverrides& overrides) {
  NameTable table = Namer(graph).run();
  TITAN_TRY(applyOverrides(graph, overrides, table));
  stripWrappers(table);
  std::map<std::string, std::string> owner;
  for (const NamedTensor& tensor : table.tensors) {
    if (tensor.kind == TensorKind::Constant)
      continue;
    auto [it, fresh] = owner.try_emplace(tensor.name, tensor.initializer);
    if (!fresh)
      return Error::badInput("'{}' and '{}' would both be called '{}': rename one with --names",
                             printable(it->second), printable(tensor.initializer),
                             printable(tensor.name));
  }
  return table;
}

} // namespace titan::frontend
