// What an optimizing exporter computed: the file then holds a result (the rows of a position table
// that the example reads, a slice, 1 + w) instead of what it was computed of. What is not certainly
// a constant is trained as it stands, never under the name of a parameter that it is not.
#include "frontend/onnx/name/Angles.h"
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Rules.h"
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

static constexpr NoteCause kZeroStates = {
    "{} is zeros that a recurrent layer starts from, as where its caller gives it none: it is a "
    "constant, unless --names says kind = \"parameter\"",
    "{} tensors are zeros that recurrent layers start from, as where their callers give them none: "
    "they are constants, unless --names says kind = \"parameter\": {}"};

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
static bool isAddedToEmbedding(const Facts& facts, const NamedTensor& tensor) {
  for (const Use& use : facts.usesOf(tensor).uses) {
    const Node& add = facts.nodeOf(use);
    if (add.opType != "Add" || add.inputs.size() != 2)
      continue;
    std::string other = add.inputs[1 - use.operand];
    // Through a factor, a norm or dropout back to the lookup.
    for (int steps = 0; steps < 4; ++steps) {
      const Node* node = facts.producerOf(other);
      if (!node || node->inputs.empty())
        break;
      if (node->opType == "Gather")
        return facts.graph.initializers.contains(node->inputs[0]);
      other = node->inputs[0];
    }
  }
  return false;
}

/// The values tell that it was computed of a parameter that is in the file.
static bool nameComputedOfKept(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  std::vector<std::string> of, own;
  for (const NamedTensor& kept : naming.table.tensors) {
    if (!naming.isWhole(kept) || !isComputedOf(facts.file(kept), facts.file(tensor)))
      continue;
    of.push_back(kept.name);
    if (areRelated(facts.firstModule(tensor), moduleOf(kept.name)))
      own.push_back(kept.name);
  }
  if (of.empty())
    return false;
  // Of copies with equal values, one.
  naming.namePart(tensor, own.size() == 1 ? own : of, kComputedOfKept);
  return true;
}

/// The transposition of the one parameter of its reader's module that the file has lost. What was
/// computed before it was transposed looks alike: the name is a guess.
static bool nameTransposed(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  static constexpr std::string_view kTranspositions[] = {"permute", "t", "transpose", "numpy_t"};
  if (file.shape.size() != 2 ||
      std::ranges::find(kTranspositions, opOfValue(facts.nameInFile(tensor))) ==
          std::end(kTranspositions))
    return false;
  std::vector<const SourceTensor*> candidates = naming.lostParameters();
  std::erase_if(candidates, [&](const SourceTensor* source) {
    return moduleOf(source->name) != facts.firstModule(tensor);
  });
  if (candidates.size() != 1 || !naming.take(tensor, candidates.front()->name, /*transposed=*/true))
    return false;
  tensor.kind = TensorKind::Parameter;
  tensor.guessed = true;
  tensor.setDoubt(kTransposed,
                  fmt::format("{} (here {})", inQuotes(tensor.initializer), inQuotes(tensor.name)));
  return true;
}

/// Rows or a slice of the one parameter around it that the file has lost.
static bool nameTaken(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const std::string& name = facts.nameInFile(tensor);
  bool lookup = opOfValue(name) == "embedding" && facts.file(tensor).shape.size() >= 2;
  // Others than lookups and slices are sure of positions only: a bias by distance is looked up,
  // turned and wrapped.
  if (!lookup && opOfValue(name) != "slice" &&
      !(namesMovement(name) && isAddedToEmbedding(facts, tensor)))
    return false;
  std::vector<const SourceTensor*> candidates = naming.lostParameters();
  std::erase_if(candidates, [&](const SourceTensor* source) {
    return !encloses(facts.firstModule(tensor), moduleOf(source->name)) ||
           (lookup && leafOf(source->name) != "weight");
  });
  if (candidates.size() != 1)
    return false;
  naming.namePart(tensor, {candidates.front()->name}, kTaken);
  if (lookup)
    tensor.role = Role::Embedding;
  return true;
}

/// Parameters in the file that it may be computed of, and whose values are all equal, so that they
/// do not tell: those of the module that reads it, and the one that it was merged into.
static std::vector<std::string> uniformSourcesOf(const Naming& naming, const NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  std::vector<std::string> of;
  for (const NamedTensor& kept : naming.table.tensors)
    if (naming.isWhole(kept) &&
        (kept.initializer == facts.file(tensor).copyOf ||
         moduleOf(kept.name) == facts.firstModule(tensor)) &&
        !isDrawn(facts.file(kept)))
      of.push_back(kept.name);
  return of;
}

/// The module of the first node behind `tensor` whose module is known.
static const std::string& moduleBehind(const Facts& facts, const NamedTensor& tensor) {
  std::set<std::string> values = {tensor.initializer};
  for (size_t i = facts.usesOf(tensor).uses.front().node; i < facts.graph.nodes.size(); ++i) {
    const Node& node = facts.graph.nodes[i];
    if (std::ranges::none_of(node.inputs,
                             [&](const auto& input) { return values.contains(input); }))
      continue;
    if (facts.scopes()[i].known)
      return facts.scopes()[i].module;
    values.insert(node.outputs.begin(), node.outputs.end());
  }
  return facts.firstModule(tensor);
}

/// Parameters in the file that other calls of the layer read of which the tensor was one: the first
/// step of a recurrent layer from a trained state, for one. They have not the gradient of that.
static std::vector<std::string> layersBeside(const Naming& naming, const NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const std::string_view op = opOfValue(facts.nameInFile(tensor));
  if (!isLayer(op))
    return {};
  const std::string target = fmt::format("aten.{}.", op);
  const std::string& module = moduleBehind(facts, tensor);
  std::vector<std::string> of;
  for (const NamedTensor& kept : naming.table.tensors)
    if (naming.isWhole(kept) && moduleOf(kept.name) == module &&
        std::ranges::any_of(facts.usesOf(kept).uses, [&](const Use& use) {
          return facts.scopeOf(use).target.starts_with(target);
        }))
      of.push_back(kept.name);
  return of;
}

static void nameComputed(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  if (isOpenMask(facts, tensor)) {
    tensor.setDoubt(kOpenMask);
    return;
  }
  if (areZeroStates(facts, tensor)) {
    tensor.setDoubt(kZeroStates);
    return;
  }
  std::vector<const SourceTensor*> candidates = naming.lostParameters();
  if (std::vector<std::string> of = uniformSourcesOf(naming, tensor);
      facts.signature().known() && !of.empty()) {
    naming.namePart(tensor, of, kPerhapsOfKept);
    return;
  }
  if (std::vector<std::string> of = layersBeside(naming, tensor); !of.empty()) {
    naming.namePart(tensor, of, kPerhapsOfKept);
    return;
  }
  if (facts.signature().known() && candidates.empty()) {
    tensor.setDoubt(kFixed);
    return;
  }
  tensor.kind = TensorKind::Parameter;
  naming.nameStructurally(tensor);
  if (facts.isConverted && isAnonymous(facts.nameInFile(tensor)))
    return; // a layer's weight, most likely
  tensor.isPart = true;
  std::string sources;
  size_t count = 0;
  constexpr size_t kMostShown = 4;
  for (const SourceTensor* source : candidates)
    if (areRelated(facts.firstModule(tensor), moduleOf(source->name)) && count++ < kMostShown)
      sources += (sources.empty() ? " (perhaps " : ", ") + inQuotes(source->name);
  tensor.setDoubt(kComputed, inQuotes(tensor.name) + sources + (sources.empty() ? "" : ")"));
}

/// TorchScript leaves nothing but the table of positions that is added to an embedding.
static void nameAddedPositions(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  if (!facts.graph.fromPyTorch() || file.shape.empty() || isMask(file) ||
      !isAddedToEmbedding(facts, tensor) ||
      (!facts.usesOf(tensor).indexedByInput && holdsAngles(file, facts.graph)))
    return;
  naming.namePart(tensor, {}, kComputed);
}

void nameFolded(Naming& naming, const std::vector<size_t>& unknown) {
  const Facts& facts = naming.facts;
  const KeptByMovement kept = unknown.empty() ? KeptByMovement() : keptByMovement(naming);
  std::vector<NamedTensor*> open;
  for (size_t i : unknown) {
    NamedTensor& tensor = naming.table.tensors[i];
    const TensorUses& uses = facts.usesOf(tensor);
    if (!isFloating(facts.file(tensor).dtype) || !uses.differentiable || uses.uses.empty())
      continue;
    if (!facts.signature().known() && !facts.hasFxValues() && !facts.isConverted)
      nameAddedPositions(naming, tensor);
    else if (tensor.proof = proofOfFolded(facts, tensor);
             tensor.proof == Proof::None && !readAsMoved(naming, tensor, kept))
      open.push_back(&tensor);
  }
  // What is known of some parameters says more of the others.
  std::erase_if(open, [&](NamedTensor* t) {
    return nameComputedOfKept(naming, *t) || nameTransposed(naming, *t) || nameTaken(naming, *t);
  });
  for (NamedTensor* tensor : open)
    nameComputed(naming, *tensor);
}

} // namespace titan::frontend
