// Folded matrices that are readings of a parameter which the file has as well: the head that is
// tied to an embedding, a matrix that a model multiplies by both ways. Without metadata nothing but
// their bytes tells. Values that were drawn or trained equal each other's transposition only where
// the tensor is the same: copies of a layer are read the same way.
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Namer.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <tuple>

namespace titan::frontend {

static constexpr NoteCause kEqualValues = {
    "{} have the same values: they are one tied parameter",
    "{} pairs of tensors have the same values: they are one tied parameter each: {}"};
static constexpr NoteCause kCopiedLayer = {
    "{} have equal values, in layers that are copies: they are separate here",
    "{} pairs of tensors have equal values, in layers that are copies: they are separate here: {}"};

/// Is `tensor` read by a module whose other tensors are copies of those beside `original`?
bool Namer::isOfACopiedLayer(const NamedTensor& tensor, const NamedTensor& original) const {
  auto origin = [&](const std::string& name) {
    const std::string& of = graph_.initializers.at(name).copyOf;
    return of.empty() ? name : of;
  };
  const std::string_view module = moduleOf(original.name);
  std::set<std::string> beside;
  for (const std::string& name : graph_.initializerOrder)
    if (!isMadeUp(name) && moduleOf(name) == module)
      beside.insert(origin(name));
  return std::any_of(
      graph_.initializerOrder.begin(), graph_.initializerOrder.end(), [&](const std::string& name) {
        return !isMadeUp(name) && moduleOf(name) != module && beside.contains(origin(name)) &&
               std::any_of(
                   usesOf(tensor).uses.begin(), usesOf(tensor).uses.end(),
                   [&](const Use& use) { return moduleOf(name) == scopes_[use.node].module; });
      });
}

/// Is its name that of a scope of which no container is known to be left out?
bool Namer::isShownByScope(const NamedTensor& tensor) const {
  return std::none_of(usesOf(tensor).uses.begin(), usesOf(tensor).uses.end(), [&](const Use& use) {
    return scopes_[use.node].place == ScopePlace::Guessed ||
           scopes_[use.node].place == ScopePlace::Unknown;
  });
}

void Namer::readFolds() {
  if (!graph_.fromPyTorch() || signature().known())
    return;
  // What the file has under its own name comes first, then what is used first: the rest reads it.
  std::vector<NamedTensor*> matrices;
  for (NamedTensor& tensor : table_.tensors)
    if (tensor.kind == TensorKind::Parameter && !tensor.isCopy &&
        fileTensor(tensor).shape.size() == 2 && !projections_.contains(tensor.initializer))
      matrices.push_back(&tensor);
  // Nothing is read where no matrix was folded.
  if (std::none_of(matrices.begin(), matrices.end(),
                   [&](const NamedTensor* tensor) { return isMadeUp(tensor->initializer); }))
    return;
  auto order = [&](const NamedTensor* tensor) {
    const std::vector<Use>& uses = usesOf(*tensor).uses;
    return std::tuple(isMadeUp(tensor->initializer), uses.empty() ? SIZE_MAX : uses.front().node,
                      std::string_view(tensor->initializer));
  };
  std::sort(matrices.begin(), matrices.end(),
            [&](const NamedTensor* a, const NamedTensor* b) { return order(a) < order(b); });
  std::map<std::string, std::vector<NamedTensor*>> byKey;
  for (NamedTensor* tensor : matrices) {
    const Tensor& file = fileTensor(*tensor);
    std::optional<std::string> key = movementKey(file);
    if (!key)
      continue;
    std::vector<NamedTensor*>& equal = byKey[*key];
    // What has the source's name is no reading of another.
    if (!isMadeUp(tensor->initializer) || (!equal.empty() && !hasThreeValues(file))) {
      equal.push_back(tensor);
      continue;
    }
    bool reads = false;
    for (NamedTensor* other : equal) {
      const Tensor& original = fileTensor(*other);
      auto equals = [&](bool transposed) {
        Shape shape = file.shape;
        if (transposed)
          std::reverse(shape.begin(), shape.end());
        return shape == original.shape &&
               isMovedBy(original, file, {transposed ? 1 : 0, transposed ? 0 : 1});
      };
      // The TorchScript exporter writes equal bytes once (EqualTensors.cpp).
      bool turned = equals(true);
      if (!turned && (isLegacy() || isMadeUp(other->initializer) || !equals(false)))
        continue;
      const std::string pair =
          fmt::format("{} and {}", inQuotes(tensor->initializer), inQuotes(other->name));
      if (isOfACopiedLayer(*tensor, *other)) {
        table_.notes.add(kCopiedLayer, pair);
        continue;
      }
      // A head's name. What else reads a matrix both ways may be a function of it.
      if (other->role == Role::Embedding && !tensor->structural && isShownByScope(*tensor))
        other->aliases.push_back(tensor->name);
      tensor->structural = tensor->guessed = tensor->isPart = false;
      tensor->doubt = nullptr;
      // The state of a folded weight is its transposition.
      readAs(*tensor, other->initializer, turned != !other->pieces.empty());
      table_.notes.add(kEqualValues, pair);
      reads = true;
      break;
    }
    if (!reads)
      equal.push_back(tensor);
  }
}

} // namespace titan::frontend
