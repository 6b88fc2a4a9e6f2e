// What an optimizing exporter computed: the file then holds a result (the rows of a position table
// that the example reads, a slice, 1 + w) instead of what it was computed of. What is not certainly
// a constant is trained as it stands, never under the name of a parameter that it is not.
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Namer.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kTaken = {
    "{} is all that the exporter took out of a parameter, and is trained in its place; export with "
    "optimize=False for the whole parameter",
    "{} tensors are all that the exporter took out of parameters, and are trained in their places; "
    "export with optimize=False for the whole parameters: {}"};
static constexpr NoteCause kComputed = {
    "{} was computed from parameters by the exporter, and is trained in their place; export with "
    "optimize=False or do_constant_folding=False to keep them",
    "{} tensors were computed from parameters by the exporter, and are trained in their place; "
    "export with optimize=False or do_constant_folding=False to keep them: {}"};
static constexpr NoteCause kComputedOfKept = {
    "{} was computed by the exporter from a parameter that is in the file too: each is trained by "
    "itself; export with optimize=False to train the parameter alone",
    "{} tensors were computed by the exporter from parameters that are in the file too: each is "
    "trained by itself; export with optimize=False to train the parameters alone: {}"};
static constexpr NoteCause kPerhapsOfKept = {
    "{} was computed by the exporter, perhaps from parameters that are in the file too, whose "
    "values do not tell: each is trained by itself; export with optimize=False to be sure",
    "{} tensors were computed by the exporter, perhaps from parameters that are in the file too, "
    "whose values do not tell: each is trained by itself; export with optimize=False to be sure: "
    "{}"};
static constexpr NoteCause kFixed = {
    "{} was computed by the exporter, from none of the parameters that the file names: it is a "
    "constant and not trained, unless --names says kind = \"parameter\"",
    "{} tensors were computed by the exporter, from none of the parameters that the file names: "
    "they are constants and not trained, unless --names says kind = \"parameter\": {}"};
static constexpr NoteCause kTransposed = {
    "{} was transposed by the exporter and is taken for the one parameter of its module that the "
    "file lacks; export with optimize=False to be sure",
    "{} tensors were transposed by the exporter and are each taken for the one parameter of their "
    "module that the file lacks; export with optimize=False to be sure: {}"};
static constexpr NoteCause kOpenMask = {
    "{} is zeros, added to the scores of all heads: it is taken for a mask that forbids nothing, a "
    "constant, unless --names says kind = \"parameter\"",
    "{} tensors are zeros, added to the scores of all heads: they are taken for masks that forbid "
    "nothing, constants, unless --names says kind = \"parameter\": {}"};
static constexpr NoteCause kEqual = {
    "{} have the same values: they are one parameter",
    "{} pairs of tensors have the same values: they are one parameter each: {}"};

/// The parameters, or the buffers, of the source that no tensor of the file is or holds a part of.
std::vector<const SourceTensor*> Namer::lost(bool parameters) const {
  std::vector<const SourceTensor*> lost;
  for (const SourceTensor& source : signature().tensors())
    if (source.parameter == parameters && !taken_.contains(source.name) &&
        !accounted_.contains(source.name))
      lost.push_back(&source);
  return lost;
}

const std::string& Namer::firstModule(const NamedTensor& tensor) const {
  return scopes_[usesOf(tensor).uses.front().node].module;
}

/// Is a parameter of the module `of` likely to be used by `module`: one of its own or of a module
/// in it or around it?
static bool areRelated(std::string_view module, std::string_view of) {
  return encloses(module, of) || encloses(of, module);
}

/// Is `name` that of an op which moves elements as they are? torch.export names what it folded
/// after the op: "embedding_1", "unsqueeze".
static bool namesMovement(std::string_view name) {
  std::string_view op = opOfValue(name);
  for (std::string_view movement :
       {"embedding", "index", "select", "slice", "squeeze", "unsqueeze"})
    if (op == movement)
      return true;
  return false;
}

/// The sum of a token embedding and an anonymous table: positions, which were gathered before.
bool Namer::isAddedToEmbedding(const NamedTensor& tensor) const {
  for (const Use& use : usesOf(tensor).uses) {
    const Node& add = graph_.nodes[use.node];
    if (add.opType != "Add" || add.inputs.size() != 2)
      continue;
    std::string other = add.inputs[1 - use.operand];
    // Through a factor, a norm or dropout back to the lookup.
    for (int steps = 0; steps < 4; ++steps) {
      auto it = producer_.find(other);
      if (it == producer_.end() || graph_.nodes[it->second].inputs.empty())
        break;
      const Node& node = graph_.nodes[it->second];
      if (node.opType == "Gather")
        return graph_.initializers.contains(node.inputs[0]);
      other = node.inputs[0];
    }
  }
  return false;
}

/// What the exporter called it, before equal tensors got names of their own.
static const std::string& nameInFile(const Tensor& file) {
  return file.copyOf.empty() ? file.name : file.copyOf;
}

/// A number that is written in the program, or that an op needs, as attention its scale.
bool Namer::isNumber(const NamedTensor& tensor) const {
  const Tensor& file = fileTensor(tensor);
  const std::string& name = nameInFile(file);
  bool ofSource = !file.copyOf.empty() && !isMadeUp(name); // merged into a parameter
  if (!ofSource && namesNumbers(name) && (converted_ || fxValues_.contains(name)))
    return true;
  if (elementCount(file.shape) != 1)
    return false;
  return std::ranges::all_of(usesOf(tensor).uses, [&](const Use& use) {
    const Node& node = graph_.nodes[use.node];
    const Scope& scope = scopes_[use.node];
    if (converted_)
      return isAnonymous(name) &&
             (use.role == Role::Other || (use.role == Role::Bias && node.opType == "Add")) &&
             node.opType != "PRelu";
    if (!scope.readsFx() || isRead(scope.values, tensor.initializer))
      return false;
    FxArgument argument = argumentOf(node, scope, use.operand, file.shape.size());
    // A value that is in no file may have been folded into it.
    bool folded = ofSource && std::ranges::any_of(argument.values, [&](const FxOperand& value) {
                    return !isPresent(value.mangled) && !namesNumbers(value.mangled);
                  });
    return argument.lifted.empty() && !argument.isPlaced && !folded;
  });
}

/// Why an unknown tensor that a gradient reaches is none that is trained.
Proof Namer::proofOfFolded(const NamedTensor& tensor) const {
  const Tensor& file = fileTensor(tensor);
  const TensorUses& uses = usesOf(tensor);
  if (isNumber(tensor))
    return Proof::Number;
  if (uses.onlyAngles || (!uses.indexedByInput && holdsAngles(file)))
    return Proof::Angles;
  // Ones and zeros alone may be what 1 + w started from.
  return isMask(file) && !isUniform(file) ? Proof::Mask : Proof::None;
}

void Namer::namePart(NamedTensor& tensor, std::vector<std::string> of, const NoteCause& cause) {
  tensor.kind = TensorKind::Parameter;
  nameStructurally(tensor);
  tensor.isPart = true;
  std::string shown =
      fmt::format("{} {}", inQuotes(tensor.name), toString(fileTensor(tensor).shape));
  for (size_t i = 0; i < of.size(); ++i)
    shown += (i == 0 ? " (of " : ", ") + inQuotes(of[i]);
  tensor.setDoubt(cause, shown + (of.empty() ? "" : ")"));
  accounted_.insert(of.begin(), of.end());
  tensor.partOf = std::move(of);
}

/// Reads it as a parameter that the file has too, whose dimensions the exporter moved.
bool Namer::readAsMoved(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  const std::string& module = firstModule(tensor);
  struct Equal {
    const NamedTensor* kept;
    std::vector<int64_t> dims;
  };
  std::vector<Equal> equal;
  const std::optional<std::string> key = movementKey(file);
  for (const NamedTensor& kept : table_.tensors)
    if (key && isWhole(kept) && movementKey(fileTensor(kept)) == key)
      if (auto dims = movementOf(fileTensor(kept), file))
        equal.push_back({&kept, *dims});
  // Copies of a module are equal too: then the parameter of the module itself is meant.
  if (equal.size() > 1)
    std::erase_if(equal, [&](const Equal& e) { return moduleOf(e.kept->name) != module; });
  if (equal.size() != 1)
    return false;
  const auto& [kept, moved] = equal.front();
  bool related = areRelated(module, moduleOf(kept->name));
  // Where the module has a parameter that is not in the file, it may be a copy.
  for (const SourceTensor* source : lost(/*parameters=*/true))
    if (!related && (module.empty() ? moduleOf(source->name).empty()
                                    : encloses(module, moduleOf(source->name))))
      return false;
  std::vector<int64_t> dims = moved;
  if (!kept->pieces.empty())
    for (size_t d = 0; d < dims.size(); ++d)
      dims[d] = moved[static_cast<size_t>(kept->pieces.front().piece.dims[d])];
  if (!related || converted_)
    table_.notes.add(kEqual,
                     fmt::format("{} and {}", inQuotes(tensor.initializer), inQuotes(kept->name)));
  tensor.kind = TensorKind::Parameter;
  tensor.turn(file.shape, dims);
  tensor.isCopy = true;
  copies_[tensor.initializer] = kept->initializer;
  return true;
}

/// Is it all of a parameter, under a name of the source?
bool Namer::isWhole(const NamedTensor& tensor) const {
  if (tensor.kind != TensorKind::Parameter || tensor.isCopy || tensor.structural)
    return false;
  const Shape& shape = fileTensor(tensor).shape;
  return tensor.pieces.empty() ||
         (tensor.pieces.size() == 1 && !projections_.contains(tensor.initializer) &&
          tensor.pieces.front().piece.dims.size() == shape.size());
}

/// The values tell that it was computed of a parameter that is in the file.
bool Namer::nameComputedOfKept(NamedTensor& tensor) {
  std::vector<std::string> of, own;
  for (const NamedTensor& kept : table_.tensors) {
    if (!isWhole(kept) || !isComputedOf(fileTensor(kept), fileTensor(tensor)))
      continue;
    of.push_back(kept.name);
    if (areRelated(firstModule(tensor), moduleOf(kept.name)))
      own.push_back(kept.name);
  }
  if (of.empty())
    return false;
  // Of copies with equal values, one.
  namePart(tensor, own.size() == 1 ? own : of, kComputedOfKept);
  return true;
}

/// The transposition of the one parameter of its reader's module that the file has lost. What was
/// computed before it was transposed looks alike: the name is a guess.
bool Namer::nameTransposed(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  static constexpr std::string_view kTranspositions[] = {"permute", "t", "transpose", "numpy_t"};
  if (file.shape.size() != 2 ||
      std::ranges::find(kTranspositions, opOfValue(nameInFile(file))) == std::end(kTranspositions))
    return false;
  std::vector<const SourceTensor*> candidates = lost(/*parameters=*/true);
  std::erase_if(candidates, [&](const SourceTensor* source) {
    return moduleOf(source->name) != firstModule(tensor);
  });
  if (candidates.size() != 1 || !take(tensor, candidates.front()->name, /*transposed=*/true))
    return false;
  tensor.kind = TensorKind::Parameter;
  tensor.guessed = true;
  tensor.setDoubt(kTransposed,
                  fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(tensor.name)));
  return true;
}

/// Rows or a slice of the one parameter around it that the file has lost.
bool Namer::nameTaken(NamedTensor& tensor) {
  const std::string& name = nameInFile(fileTensor(tensor));
  bool lookup = opOfValue(name) == "embedding" && fileTensor(tensor).shape.size() >= 2;
  // Others than lookups and slices are sure of positions only: a bias by distance is looked up,
  // turned and wrapped.
  if (!lookup && opOfValue(name) != "slice" && !(namesMovement(name) && isAddedToEmbedding(tensor)))
    return false;
  std::vector<const SourceTensor*> candidates = lost(/*parameters=*/true);
  std::erase_if(candidates, [&](const SourceTensor* source) {
    return !encloses(firstModule(tensor), moduleOf(source->name)) ||
           (lookup && leafOf(source->name) != "weight");
  });
  if (candidates.size() != 1)
    return false;
  namePart(tensor, {candidates.front()->name}, kTaken);
  if (lookup)
    tensor.role = Role::Embedding;
  return true;
}

/// Zeros [batch, 1, queries, keys] that nothing but sums separate from a softmax.
bool Namer::isOpenMask(const NamedTensor& tensor) const {
  const Tensor& file = fileTensor(tensor);
  if (file.shape.size() != 4 || file.shape[1] != 1 || !isZeros(file))
    return false;
  auto isOfScores = [&](const Use& use) {
    const Node* node = &graph_.nodes[use.node];
    for (int sums = 0; node->opType == "Add" && sums < 4; ++sums) {
      auto reader = std::ranges::find_if(graph_.nodes, [&](const Node& other) {
        return std::ranges::find(other.inputs, node->outputs[0]) != other.inputs.end();
      });
      if (reader == graph_.nodes.end())
        return false;
      node = &*reader;
    }
    return node->opType == "Softmax";
  };
  return std::ranges::all_of(usesOf(tensor).uses, isOfScores);
}

/// Parameters in the file that it may be computed of, and whose values are all equal, so that they
/// do not tell: those of the module that reads it, and the one that it was merged into.
std::vector<std::string> Namer::uniformSourcesOf(const NamedTensor& tensor) const {
  std::vector<std::string> of;
  for (const NamedTensor& kept : table_.tensors)
    if (isWhole(kept) &&
        (kept.initializer == fileTensor(tensor).copyOf ||
         moduleOf(kept.name) == firstModule(tensor)) &&
        !isDrawn(fileTensor(kept)))
      of.push_back(kept.name);
  return of;
}

void Namer::nameComputed(NamedTensor& tensor) {
  if (isOpenMask(tensor)) {
    tensor.setDoubt(kOpenMask);
    return;
  }
  std::vector<const SourceTensor*> candidates = lost(/*parameters=*/true);
  if (std::vector<std::string> of = uniformSourcesOf(tensor); signature().known() && !of.empty()) {
    namePart(tensor, of, kPerhapsOfKept);
    return;
  }
  if (signature().known() && candidates.empty()) {
    tensor.setDoubt(kFixed);
    return;
  }
  tensor.kind = TensorKind::Parameter;
  nameStructurally(tensor);
  if (converted_ && isAnonymous(nameInFile(fileTensor(tensor))))
    return; // a layer's weight, most likely
  tensor.isPart = true;
  std::string sources;
  size_t count = 0;
  constexpr size_t kMostShown = 4;
  for (const SourceTensor* source : candidates)
    if (areRelated(firstModule(tensor), moduleOf(source->name)) && count++ < kMostShown)
      sources += (sources.empty() ? " (perhaps " : ", ") + inQuotes(source->name);
  tensor.setDoubt(kComputed, inQuotes(tensor.name) + sources + (sources.empty() ? "" : ")"));
}

/// TorchScript leaves nothing but the table of positions that is added to an embedding.
void Namer::nameAddedPositions(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  if (!graph_.fromPyTorch() || file.shape.empty() || isMask(file) || !isAddedToEmbedding(tensor) ||
      (!usesOf(tensor).indexedByInput && holdsAngles(file)))
    return;
  namePart(tensor, {}, kComputed);
}

void Namer::nameFolded(const std::vector<size_t>& unknown) {
  std::vector<NamedTensor*> open;
  for (size_t i : unknown) {
    NamedTensor& tensor = table_.tensors[i];
    const TensorUses& uses = usesOf(tensor);
    if (!isFloating(fileTensor(tensor).dtype) || !uses.differentiable || uses.uses.empty())
      continue;
    if (!signature().known() && fxValues_.empty() && !converted_)
      nameAddedPositions(tensor);
    else if (tensor.proof = proofOfFolded(tensor);
             tensor.proof == Proof::None && !readAsMoved(tensor))
      open.push_back(&tensor);
  }
  // What is known of some parameters says more of the others.
  std::erase_if(open, [&](NamedTensor* t) {
    return nameComputedOfKept(*t) || nameTransposed(*t) || nameTaken(*t);
  });
  for (NamedTensor* tensor : open)
    nameComputed(*tensor);
}

} // namespace titan::frontend
