// Tensors that read a parameter which the file has as well: the head that is tied to an embedding,
// a matrix that a model multiplies by both ways. An exporter stored its transposition, or moved its
// dimensions otherwise. Where metadata does not say so, the bytes do: values that were drawn or
// trained equal each other, moved, only where the tensor is the same.
#include "frontend/onnx/name/Derived.h"
#include "frontend/onnx/name/Rules.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>
#include <tuple>

namespace titan::frontend {

static constexpr NoteCause kEqual = {
    "{} have the same values: they are one parameter",
    "{} pairs of tensors have the same values: they are one parameter each: {}"};
static constexpr NoteCause kEqualValues = {
    "{} have the same values: they are one tied parameter",
    "{} pairs of tensors have the same values: they are one tied parameter each: {}"};
static constexpr NoteCause kCopiedLayer = {
    "{} have equal values, in layers that are copies: they are separate here",
    "{} pairs of tensors have equal values, in layers that are copies: they are separate here: {}"};

namespace {

using Dims = std::vector<int64_t>;

/// Makes `tensor` a second reading of what `of` fills, whose dimension i is its dimension dims[i].
void readAs(Naming& naming, NamedTensor& tensor, const std::string& of, Dims dims) {
  tensor.kind = TensorKind::Parameter;
  tensor.turn(naming.facts.file(tensor).shape, std::move(dims));
  tensor.isCopy = true;
  naming.copies[tensor.initializer] = of;
}

/// The same where dimension i of `kept`, as it stands in the file, is dimension moved[i]. The state
/// of a folded weight is its transposition.
void readAs(Naming& naming, NamedTensor& tensor, const NamedTensor& kept, const Dims& moved) {
  Dims dims = moved;
  if (!kept.pieces.empty()) {
    dims.clear();
    for (int64_t d : kept.pieces.front().piece.dims)
      dims.push_back(moved[static_cast<size_t>(d)]);
  }
  readAs(naming, tensor, kept.initializer, std::move(dims));
}

/// Is `tensor` read by a module whose other tensors are copies of those beside `original`?
bool isOfACopiedLayer(const Facts& facts, const NamedTensor& tensor, const NamedTensor& original) {
  const Graph& graph = facts.graph;
  auto origin = [&](const std::string& name) {
    const std::string& of = graph.initializers.at(name).copyOf;
    return of.empty() ? name : of;
  };
  const std::string_view module = moduleOf(original.name);
  std::set<std::string> beside;
  for (const std::string& name : graph.initializerOrder)
    if (!facts.isMadeUp(name) && moduleOf(name) == module)
      beside.insert(origin(name));
  return std::ranges::any_of(graph.initializerOrder, [&](const std::string& name) {
    return !facts.isMadeUp(name) && moduleOf(name) != module && beside.contains(origin(name)) &&
           std::ranges::any_of(facts.usesOf(tensor).uses, [&](const Use& use) {
             return moduleOf(name) == facts.scopeOf(use).module;
           });
  });
}

/// Is its name that of a scope of which no container is known to be left out?
bool isShownByScope(const Facts& facts, const NamedTensor& tensor) {
  return std::ranges::none_of(facts.usesOf(tensor).uses, [&](const Use& use) {
    return facts.scopeOf(use).place == ScopePlace::Guessed ||
           facts.scopeOf(use).place == ScopePlace::Unknown;
  });
}

/// Parameters, in the order in which they are told from each other: what the file has under its own
/// name comes first, then what is used first.
std::vector<NamedTensor*> parametersOf(Naming& naming) {
  const Facts& facts = naming.facts;
  std::vector<NamedTensor*> parameters;
  for (NamedTensor& tensor : naming.table.tensors)
    if (tensor.kind == TensorKind::Parameter && !tensor.isCopy && tensor.pieces.size() <= 1 &&
        !facts.file(tensor).shape.empty() && !naming.projections.contains(tensor.initializer))
      parameters.push_back(&tensor);
  auto order = [&](const NamedTensor* tensor) {
    const std::vector<Use>& uses = facts.usesOf(*tensor).uses;
    return std::tuple(facts.isMadeUp(tensor->initializer),
                      uses.empty() ? SIZE_MAX : uses.front().node,
                      std::string_view(tensor->initializer));
  };
  std::ranges::sort(
      parameters, [&](const NamedTensor* a, const NamedTensor* b) { return order(a) < order(b); });
  return parameters;
}

/// How the folded tensor `tensor` has the values of `other`; nothing where that tells nothing.
std::optional<Dims> equalityOf(const Facts& facts, const NamedTensor& tensor,
                               const NamedTensor& other) {
  const Tensor &file = facts.file(tensor), &original = facts.file(other);
  const Shape &shape = file.shape, &of = original.shape;
  if (shape.size() != of.size())
    return facts.isMadeUp(other.initializer) ? std::nullopt : movementOf(original, file);
  if (shape.size() != 2)
    return std::nullopt;
  if (of == Shape{shape[1], shape[0]} && isMovedBy(original, file, {1, 0}))
    return Dims{1, 0};
  // Copies of a layer are equal as they stand, and the TorchScript exporter writes equal bytes once
  // (EqualTensors.cpp).
  if (!facts.isLegacy() && !facts.isMadeUp(other.initializer) && of == shape &&
      isMovedBy(original, file, {0, 1}))
    return Dims{0, 1};
  return std::nullopt;
}

/// Makes the folded tensor `tensor` a reading of one of `others`, if it is: of its own module's,
/// where copies of a module have equal ones.
bool readAsOneOf(Naming& naming, NamedTensor& tensor, std::vector<NamedTensor*> others) {
  const Facts& facts = naming.facts;
  if (others.empty() || !hasThreeValues(facts.file(tensor)))
    return false;
  auto isOfItsModule = [&](const NamedTensor* other) {
    return std::ranges::any_of(facts.usesOf(tensor).uses, [&](const Use& use) {
      return facts.scopeOf(use).module == moduleOf(other->name);
    });
  };
  if (const auto own = std::ranges::find_if(others, isOfItsModule); own != others.end())
    std::rotate(others.begin(), own, own + 1);
  for (NamedTensor* other : others) {
    std::optional<Dims> moved = equalityOf(facts, tensor, *other);
    if (!moved)
      continue;
    const std::string pair =
        fmt::format("{} and {}", inQuotes(tensor.initializer), inQuotes(other->name));
    if (isOfACopiedLayer(facts, tensor, *other)) {
      naming.table.notes.add(kCopiedLayer, pair);
      continue;
    }
    // A head's name. What else reads a matrix both ways may be a function of it.
    if (other->role == Role::Embedding && !tensor.structural && isShownByScope(facts, tensor))
      other->aliases.push_back(tensor.name);
    tensor.settle();
    readAs(naming, tensor, *other, *moved);
    naming.table.notes.add(kEqualValues, pair);
    return true;
  }
  return false;
}

} // namespace

void readEqualTensors(Naming& naming) {
  const Facts& facts = naming.facts;
  if (!facts.graph.fromPyTorch() || facts.signature().known())
    return;
  const std::vector<NamedTensor*> parameters = parametersOf(naming);
  auto isFolded = [&](const NamedTensor* tensor) { return facts.isMadeUp(tensor->initializer); };
  // Nothing is read where nothing was folded.
  if (std::ranges::none_of(parameters, isFolded))
    return;
  std::map<std::string, std::vector<NamedTensor*>> byKey;
  for (NamedTensor* tensor : parameters) {
    std::optional<std::string> key = movementKey(facts.file(*tensor));
    if (!key)
      continue;
    std::vector<NamedTensor*>& others = byKey[*key];
    if (!isFolded(tensor) || !readAsOneOf(naming, *tensor, others))
      others.push_back(tensor);
  }
}

KeptByMovement keptByMovement(const Naming& naming) {
  KeptByMovement kept;
  for (const NamedTensor& tensor : naming.table.tensors)
    if (naming.isWhole(tensor))
      if (std::optional<std::string> key = movementKey(naming.facts.file(tensor)))
        kept[*key].push_back(&tensor);
  return kept;
}

bool readAsMoved(Naming& naming, NamedTensor& tensor, const KeptByMovement& kept) {
  const Facts& facts = naming.facts;
  std::optional<std::string> key = movementKey(facts.file(tensor));
  auto sameKey = key ? kept.find(*key) : kept.end();
  if (sameKey == kept.end())
    return false;
  struct Equal {
    const NamedTensor* kept;
    Dims moved;
  };
  std::vector<Equal> equal;
  for (const NamedTensor* other : sameKey->second)
    if (auto moved = movementOf(facts.file(*other), facts.file(tensor)))
      equal.push_back({other, *moved});
  // Copies of a module are equal too: then the parameter of the module itself is meant.
  const std::string& module = facts.firstModule(tensor);
  if (equal.size() > 1)
    std::erase_if(equal, [&](const Equal& e) { return moduleOf(e.kept->name) != module; });
  if (equal.size() != 1)
    return false;
  const NamedTensor& one = *equal.front().kept;
  const bool related = areRelated(module, moduleOf(one.name));
  // Where the module has a parameter that is not in the file, it may be a copy.
  for (const SourceTensor* source : naming.lostParameters())
    if (!related && (module.empty() ? moduleOf(source->name).empty()
                                    : encloses(module, moduleOf(source->name))))
      return false;
  if (!related || facts.isConverted)
    naming.table.notes.add(
        kEqual, fmt::format("{} and {}", inQuotes(tensor.initializer), inQuotes(one.name)));
  readAs(naming, tensor, one, equal.front().moved);
  return true;
}

bool readAsTransposed(Naming& naming, NamedTensor& tensor, const std::string& of) {
  const Shape &shape = naming.facts.file(tensor).shape,
              &original = naming.facts.graph.initializers.at(of).shape;
  if (shape.size() != 2 || original != Shape{shape[1], shape[0]})
    return false;
  readAs(naming, tensor, of, {1, 0});
  return true;
}

void settleCopies(Naming& naming) {
  for (NamedTensor& copy : naming.table.tensors)
    if (copy.isCopy)
      copy.rename(naming.table.find(naming.copies.at(copy.initializer))->name);
}

} // namespace titan::frontend
