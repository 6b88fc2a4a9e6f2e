// What an optimizing exporter computed from parameters: the file then holds a result (the rows of a
// position table that the example reads, a slice) instead of the parameter. Training goes on with
// the result as a parameter; a note says so.
#include "frontend/onnx/name/Namer.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <numeric>

namespace titan::frontend {

static constexpr NoteCause kPart = {
    "{} is the part that the exported sequence reads: the exporter took it out; export with "
    "optimize=False for the whole parameter",
    "{} tensors are the parts that the exported sequence reads: the exporter took them out; export "
    "with optimize=False for the whole parameters: {}"};
static constexpr NoteCause kComputed = {
    "{} was computed from parameters by the exporter, and is trained in their place; export with "
    "optimize=False or do_constant_folding=False to keep them",
    "{} tensors were computed from parameters by the exporter, and are trained in their place; "
    "export with optimize=False or do_constant_folding=False to keep them: {}"};

/// Parameters of the source that no tensor of the file is.
std::vector<const SourceTensor*> Namer::lostParameters() const {
  std::vector<const SourceTensor*> lost;
  for (const SourceTensor& source : signature().tensors())
    if (source.parameter && !taken_.contains(source.name))
      lost.push_back(&source);
  return lost;
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

/// Is `name` that of an op which moves elements as they are? torch.export names what it folded
/// after the op: "embedding_1", "unsqueeze".
static bool namesMovement(std::string_view name) {
  size_t end = name.find_last_not_of("0123456789");
  std::string_view op = name.substr(0, end == std::string_view::npos ? 0 : end + 1);
  if (op.ends_with('_'))
    op.remove_suffix(1);
  for (std::string_view movement :
       {"embedding", "index", "select", "slice", "squeeze", "unsqueeze"})
    if (op == movement)
      return true;
  return false;
}

void Namer::nameFolded(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  const TensorUses& uses = usesOf(tensor);
  // One element of a parameter is known by the op that took it; other scalars are constants.
  bool element = file.shape.empty() && signature().known() && namesMovement(tensor.initializer);
  if (!isFloating(file.dtype) || !uses.differentiable || uses.uses.empty() ||
      (file.shape.empty() && !element) || (!uses.indexedByInput && holdsAngles(file)) ||
      (!element && isMask(file) && !isUniform(file)))
    return;
  const std::string& module = scopes_[uses.uses.front().node].module;
  std::string sources;
  if (signature().known()) {
    std::vector<const SourceTensor*> candidates;
    for (const SourceTensor* source : lostParameters())
      if (encloses(module, moduleOf(source->name)))
        candidates.push_back(source);
    if (candidates.empty())
      return;
    // A lookup or slice that was folded has elements of one parameter as they are.
    bool lookup = tensor.initializer.starts_with("embedding") && file.shape.size() >= 2;
    bool wrapped = tensor.initializer.starts_with("unsqueeze");
    if (lookup)
      std::erase_if(candidates, [](const SourceTensor* s) { return leafOf(s->name) != "weight"; });
    // The rest is sure of positions only: a bias by distance is looked up, turned and wrapped.
    bool moved = lookup || tensor.initializer.starts_with("slice") ||
                 (namesMovement(tensor.initializer) && isAddedToEmbedding(tensor));
    if (moved && !element && candidates.size() == 1) {
      take(tensor, candidates.front()->name, false);
      tensor.kind = TensorKind::Parameter;
      tensor.role = lookup ? Role::Embedding : tensor.role;
      size_t dropped = 0; // of a lookup by [1, positions]
      while ((lookup || wrapped) && file.shape.size() - dropped > 2 && file.shape[dropped] == 1)
        ++dropped;
      std::vector<int64_t> dims(file.shape.size() - dropped);
      std::iota(dims.begin(), dims.end(), static_cast<int64_t>(dropped));
      if (dropped > 0)
        tensor.turn(file.shape, dims);
      tensor.setDoubt(kPart, fmt::format("{} {}", inQuotes(tensor.name),
                                         toString(std::span(file.shape).subspan(dropped))));
      return;
    }
    for (const SourceTensor* source : candidates)
      sources += (sources.empty() ? " (perhaps " : ", ") + inQuotes(source->name);
  } else if (!graph_.fromPyTorch() || !isAddedToEmbedding(tensor)) {
    return;
  }
  tensor.kind = TensorKind::Parameter;
  nameStructurally(tensor);
  tensor.isPart = true;
  tensor.setDoubt(kComputed, inQuotes(tensor.name) + sources + (sources.empty() ? "" : ")"));
}

} // namespace titan::frontend
