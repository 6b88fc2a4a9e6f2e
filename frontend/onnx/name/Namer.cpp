#include "frontend/onnx/name/Namer.h"

#include "frontend/onnx/name/Values.h"
#include "runtime/program/Names.h"

#include <algorithm>
#include <cctype>

namespace titan::frontend {

static constexpr NoteCause kAngles = {
    "{} holds sines and cosines of positions, or their frequencies: it is a constant and not "
    "trained, unless --names says kind = \"parameter\"",
    "{} tensors hold sines and cosines of positions, or their frequencies: they are constants and "
    "not trained, unless --names says kind = \"parameter\": {}"};
static constexpr NoteCause kTrainedAngles = {
    "{} holds sines and cosines, and an input says which rows are read: it is trained, unless "
    "--names says kind = \"buffer\"",
    "{} tensors hold sines and cosines, and inputs say which rows are read: they are trained, "
    "unless --names says kind = \"buffer\": {}"};
static constexpr NoteCause kPerhapsFrozen = {
    "parameter {} holds sines and cosines of positions: it is trained, for no export says what is "
    "frozen; model.frozen keeps it as it is",
    "{} parameters hold sines and cosines of positions: they are trained, for no export says what "
    "is frozen; model.frozen keeps them as they are: {}"};
static constexpr NoteCause kConstantNode = {
    "{} is of a Constant node and neither weight nor bias: it is a constant and not trained, "
    "unless --names says kind = \"parameter\"",
    "{} tensors are of Constant nodes and neither weights nor biases: they are constants and not "
    "trained, unless --names says kind = \"parameter\": {}"};
static constexpr NoteCause kNameless = {
    "{} has no name that could be recovered; --names can give it one",
    "{} tensors have no names that could be recovered; --names can give them some: {}"};

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

bool isFloating(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::F16 || dtype == DType::BF16;
}

Namer::Namer(const Graph& graph) : graph_(graph), uses_(findUses(graph)) {
  for (const Node& node : graph.nodes) {
    for (const std::string& output : node.outputs)
      if (!output.empty())
        producer_.emplace(output, scopes_.size());
    Scope& scope = scopes_.emplace_back(scopeOf(node));
    if (scope.place == ScopePlace::Unknown)
      scope.module.clear();
    if (!scope.module.empty())
      modules_.insert(scope.module);
    for (const FxOperand& operand : scope.operands)
      fxKinds_.emplace(operand.mangled, operand.kind);
    for (const FxOperand& value : scope.values)
      fxValues_.insert(value.mangled);
  }
  converted_ = isConverted(graph);
  for (const std::string& name : graph.initializerOrder)
    if (!isMadeUp(name))
      byMangled_.emplace(mangled(name), name);
}

/// Not a name of the source: an exporter's, or the name of a value that its optimizer folded
/// (torch.export then names no parameter like it).
bool Namer::isMadeUp(const std::string& name) const {
  if (isAnonymous(name) || graph_.initializers.at(name).nameless)
    return true;
  if (signature().known())
    return !signature().byName(name);
  if (converted_)
    return namesFxValue(name);
  return !fxKinds_.empty() && !fxKinds_.contains(mangled(name));
}

NameTable Namer::run() {
  // Names that the file has come first: a recovered name must not take one of them.
  for (const std::string& name : graph_.initializerOrder)
    if (!isMadeUp(name))
      taken_.insert(name);
  findProjections();
  std::vector<size_t> unknown;
  for (const std::string& name : graph_.initializerOrder) {
    NamedTensor tensor;
    tensor.initializer = tensor.name = name;
    describeUse(tensor);
    if (!isMadeUp(name))
      classify(tensor);
    else if (!recover(tensor))
      unknown.push_back(table_.tensors.size());
    table_.tensors.push_back(std::move(tensor));
  }
  readFolds();
  for (NamedTensor& tensor : table_.tensors)
    if (tensor.fillsStates())
      tie(tensor);
  // Only now is it known which parameters of the source no tensor of the file is.
  nameFolded(unknown);
  doubtMergedLayers();
  doubtShared();
  settleCopies();
  for (NamedTensor& tensor : table_.tensors)
    if (tensor.kind == TensorKind::Constant && tensor.proof == Proof::None)
      tensor.proof = proofOf(tensor);
    else
      tensor.perhapsPadded = isPerhapsPadded(tensor);
  listSource();
  return std::move(table_);
}

/// Sets role and fan-in from the first use that has one.
void Namer::describeUse(NamedTensor& tensor) {
  for (const Use& use : usesOf(tensor).uses) {
    if (tensor.role == Role::Other)
      tensor.role = use.role;
    if (tensor.fanIn == 0)
      tensor.fanIn = use.fanIn;
  }
}

/// The kind of a tensor whose name the file has kept.
void Namer::classify(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  if (file.assumed)
    return;
  tensor.guessed = converted_ && hasCopies(tensor.initializer);
  if (const SourceTensor* source = signature().byName(tensor.initializer)) {
    // A buffer that is not persistent is no state: PyTorch's state_dict() has it not.
    tensor.kind = source->parameter    ? TensorKind::Parameter
                  : source->persistent ? TensorKind::Buffer
                                       : TensorKind::Constant;
    tensor.proof = Proof::Source;
    if (source->parameter && holdsAngles(file))
      table_.notes.add(kPerhapsFrozen, inQuotes(tensor.initializer));
    return;
  }
  auto fx = fxKinds_.find(mangled(tensor.initializer));
  if (fx != fxKinds_.end()) {
    tensor.kind = fx->second == 'p'   ? TensorKind::Parameter
                  : fx->second == 'b' ? TensorKind::Buffer
                                      : TensorKind::Constant;
    tensor.proof = Proof::Source;
    return;
  }
  if (tensor.role == Role::Statistic)
    tensor.kind = TensorKind::Buffer;
  else if (!isFloating(file.dtype) || !usesOf(tensor).differentiable)
    tensor.kind = TensorKind::Constant;
  else if (file.shape.empty() && !graph_.fromPyTorch())
    // PyTorch writes its own scalars without a name; other producers name theirs.
    tensor.kind = TensorKind::Constant;
  else if (file.fromConstantNode && (graph_.fromPyTorch() || tensor.role == Role::Other)) {
    // Library functions name their constants ("beta"); a Constant node that is a weight is
    // another producer's.
    tensor.kind = TensorKind::Constant;
    tensor.doubt = graph_.fromPyTorch() ? nullptr : &kConstantNode;
  } else if (!classifyAngles(tensor)) {
    classifyLegacy(tensor);
  }
}

/// The frequencies, cosines or sines of rotary or sinusoidal positions are a buffer in the source.
/// What an input looks up, as words, is rather a table that starts from them.
bool Namer::classifyAngles(NamedTensor& tensor) {
  bool table = tensor.role == Role::Other || tensor.role == Role::Embedding;
  if (!usesOf(tensor).onlyAngles && !(table && holdsAngles(fileTensor(tensor))))
    return false;
  bool lookedUp = usesOf(tensor).indexedByInput;
  tensor.kind = lookedUp ? TensorKind::Parameter : TensorKind::Constant;
  tensor.doubt = lookedUp ? &kTrainedAngles : &kAngles;
  return true;
}

/// Cosines and sines of positions: in one table, or this one beside a table of the others.
bool Namer::holdsAngles(const Tensor& file) const {
  return isAngleTable(file) ||
         std::any_of(graph_.initializers.begin(), graph_.initializers.end(),
                     [&](const auto& other) { return areCosinesAndSines(file, other.second); });
}

/// Kind, name and layout of a tensor that the exporter renamed. False: nothing tells what it is.
bool Namer::recover(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  // PyTorch writes what it folds as initializers; its Constant nodes are constants of the
  // program.
  if (file.fromConstantNode && graph_.fromPyTorch()) {
    tensor.proof = Proof::Number;
    return true;
  }
  if (fromRecurrence(tensor) || fromProjection(tensor))
    return true;
  if (isLegacyFold(tensor)) {
    nameLegacyFold(tensor);
    return true;
  }
  if (fromMetadata(tensor) || fromScope(tensor) || fromBiasBeside(tensor))
    return true;
  bool differentiable = isFloating(file.dtype) && usesOf(tensor).differentiable;
  if (isFolded(tensor))
    return false;
  if (file.nameless && (differentiable || tensor.role == Role::Statistic)) {
    // A part of a parameter's tensor, or a parameter that the file lacks.
    tensor.kind = tensor.role == Role::Statistic ? TensorKind::Buffer : TensorKind::Parameter;
    nameStructurally(tensor);
    return true;
  }
  if (signature().known() || (converted_ && tensor.role != Role::Statistic))
    return false;
  if (tensor.role == Role::Statistic)
    tensor.kind = TensorKind::Buffer;
  else if (differentiable && tensor.role != Role::Other && !file.shape.empty() &&
           (tensor.role != Role::Bias || besideParameter(tensor)))
    tensor.kind = TensorKind::Parameter;
  else
    return false;
  nameStructurally(tensor);
  return true;
}

/// Is an anonymous addend a bias? Gemm's third operand is; what an Add takes may be any constant.
bool Namer::besideParameter(const NamedTensor& tensor) const {
  for (const Use& use : usesOf(tensor).uses)
    if (use.role == Role::Bias && graph_.nodes[use.node].opType != "Add" &&
        graph_.nodes[use.node].opType != "Sum")
      return true;
  return false;
}

/// What the module of `use` calls the matrix: as the bias that is added to the product
/// (`in_proj_bias` beside `in_proj_weight`), as nn.MultiheadAttention calls its projections, else
/// `weight`, as nn.Linear does, which has one.
Namer::Attribute Namer::weightAttribute(const NamedTensor& tensor, const Use& use) const {
  const std::string& module = scopes_[use.node].module;
  const std::string& product = graph_.nodes[use.node].outputs.front();
  for (const Node& add : graph_.nodes) {
    if (add.opType != "Add" ||
        std::find(add.inputs.begin(), add.inputs.end(), product) == add.inputs.end())
      continue;
    for (const std::string& input : add.inputs)
      if (graph_.initializers.contains(input) && moduleOf(input) == module &&
          leafOf(input).ends_with("_bias"))
        return {std::string(leafOf(input).substr(0, leafOf(input).size() - 4)) + "weight"};
  }
  Shape shape = fileTensor(tensor).shape; // [in, out]
  bool fused = shape.size() == 2 && shape[1] == 3 * shape[0];
  Shape square{shape[0], shape[0]}, wide{shape[0], 3 * shape[0]};
  if (fused && (graph_.initializers.contains(module + ".out_proj.weight") ||
                productsOf(module, &square) > 0))
    return {"in_proj_weight", /*guessed=*/true};
  bool projected = std::ranges::any_of(projections_, [&](const auto& entry) {
    return entry.second.first.state == module + ".in_proj_weight";
  });
  if (shape == square && (productsOf(module, &wide) > 0 || projected))
    return {"out_proj.weight", /*guessed=*/true};
  return {"weight", /*guessed=*/productsOf(module, nullptr) > 1};
}

/// The number of anonymous matrices, of `shape` if there is one, that `module` itself multiplies
/// by. nn.MultiheadAttention without biases has two: it calls no module for its projections.
size_t Namer::productsOf(const std::string& module, const Shape* shape) const {
  return static_cast<size_t>(std::count_if(
      graph_.initializerOrder.begin(), graph_.initializerOrder.end(), [&](const std::string& name) {
        const std::vector<Use>& uses = uses_.at(name).uses;
        return isMadeUp(name) && (!shape || graph_.initializers.at(name).shape == *shape) &&
               std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
                 return use.role == Role::Weight && scopes_[use.node].module == module;
               });
      }));
}

/// Scopes alone: a matrix that a module multiplies by, anonymous because its transposition was
/// folded, is a Linear's weight, and what it adds is its bias.
bool Namer::fromScope(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  if (!graph_.fromPyTorch() || !isFloating(file.dtype) || !usesOf(tensor).differentiable)
    return false;
  for (const Use& use : usesOf(tensor).uses) {
    const Scope& scope = scopes_[use.node];
    // An fx node says itself what it reads (fromMetadata).
    if (scope.module.empty() || scope.readsFx())
      continue;
    bool weight = use.role == Role::Weight && file.shape.size() >= 2;
    bool bias = use.role == Role::Bias && file.shape.size() == 1;
    if (!weight && !bias)
      continue;
    Attribute attribute = weight ? weightAttribute(tensor, use) : Attribute{"bias"};
    if (isLegacyFold(tensor) && attribute.name == "weight" && !isLayer(scope.module))
      continue;
    std::string name = scope.module + "." + attribute.name;
    if (signature().known() && !signature().byName(name))
      continue;
    bool transposed = weight && file.shape.size() == 2 && use.transposed;
    if (!take(tensor, name, transposed))
      continue;
    tensor.kind = TensorKind::Parameter;
    tensor.guessed = !signature().known() && (attribute.guessed || scope.place != ScopePlace::Told);
    return true;
  }
  return false;
}

/// What proves, where the source does not say it, that a tensor is a constant.
Proof Namer::proofOf(const NamedTensor& constant) const {
  const Tensor& file = fileTensor(constant);
  if (!usesOf(constant).differentiable)
    return Proof::NoGradient;
  // What is zeros or ones alone forbids nothing: it may be a parameter's initial value.
  if (file.assumed || (isMask(file) && !isUniform(file)))
    return Proof::Mask;
  if (usesOf(constant).onlyAngles || holdsAngles(file))
    return Proof::Angles;
  // PyTorch's exporters write parameters as initializers; other producers name their numbers.
  bool isNumber = graph_.fromPyTorch()
                      ? file.fromConstantNode || (file.shape.empty() && isMadeUp(file.name))
                      : file.shape.empty();
  return isNumber ? Proof::Number : Proof::None;
}

/// nn.Embedding(padding_idx=p) trains no row p. The metadata of a look-up says so; without it the
/// row looks like any other.
bool Namer::isPerhapsPadded(const NamedTensor& table) const {
  const std::vector<Use>& uses = usesOf(table).uses;
  return graph_.fromPyTorch() && table.kind == TensorKind::Parameter &&
         usesOf(table).indexedByInput && std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
           return use.role == Role::Embedding && scopes_[use.node].target.empty();
         });
}

/// The parameters and buffers that the exporter names.
void Namer::listSource() {
  std::set<std::string> read;
  for (const auto& [name, kind] : fxKinds_)
    read.insert(name);
  for (const SourceTensor& source : signature().tensors())
    table_.listed.push_back({stripWrapperSegments(source.name), source.parameter, source.persistent,
                             read.contains(mangled(source.name))});
  if (signature().known())
    return;
  std::map<std::string, std::string> known; // by mangled name
  for (const std::string& name : taken_)
    known.emplace(mangled(name), name);
  for (const auto& [name, kind] : fxKinds_) {
    if (kind != 'p' && kind != 'b')
      continue;
    auto it = known.find(name);
    std::string shown = it == known.end() ? demangled(name, "") : it->second;
    table_.listed.push_back({stripWrapperSegments(shown), kind == 'p', true, true});
  }
}

bool Namer::take(NamedTensor& tensor, const std::string& name, bool transposed) {
  if (!taken_.insert(name).second)
    return false;
  tensor.name = name;
  if (transposed)
    tensor.turn(fileTensor(tensor).shape, {1, 0});
  return true;
}

void Namer::nameStructurally(NamedTensor& tensor) {
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
  for (int other = 2; signature().byName(name) || !taken_.insert(name).second; ++other)
    name = fmt::format("{}{}{}_{}.{}_{}", module, module.empty() ? "" : ".", type, ordinal, leaf,
                       other);
  tensor.name = name;
  tensor.structural = true;
  tensor.setDoubt(kNameless,
                  fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(name)));
}

} // namespace titan::frontend
