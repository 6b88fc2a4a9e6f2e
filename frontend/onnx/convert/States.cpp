#include "frontend/onnx/convert/States.h"

#include "frontend/onnx/convert/Conversion.h"
#include "frontend/state/InitRules.h"

#include "mlir/IR/Threading.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

using namespace mlir;

namespace titan::frontend {

static StateNames namesOf(const NamedTensor& tensor) { return {tensor.name, tensor.aliases}; }

/// Initializers that are slopes of a PRelu, in whatever shape it reads them.
static std::set<std::string> slopesOf(const Graph& graph) {
  std::map<std::string, std::string> reshaped; // result to operand
  std::set<std::string> slopes;
  for (const Node& node : graph.nodes) {
    if (node.hasInput(0) && !node.outputs.empty() &&
        (node.opType == "Identity" || node.opType == "Unsqueeze" || node.opType == "Reshape"))
      reshaped[node.outputs[0]] = node.inputs[0];
    if (node.opType != "PRelu" || !node.hasInput(1))
      continue;
    std::string slope = node.inputs[1];
    for (auto found = reshaped.find(slope); found != reshaped.end(); found = reshaped.find(slope))
      slope = found->second;
    slopes.insert(slope);
  }
  return slopes;
}

/// A vector `bias`, or one of the two of a recurrent layer, `bias_ih_l0` and `bias_hh_l0`.
static bool isCalledBias(std::string_view leaf, const Shape& shape) {
  return leaf == "bias" || (shape.size() == 1 && leaf.starts_with("bias_"));
}

/// Norm weights 1, biases 0, slopes 0.25, embeddings normal(0, 0.02), other weights normal(0,
/// 1/sqrt(fan_in)); the first matching `[[model.init_rule]]` comes before these.
static ir::RuleInitAttr freshInit(MLIRContext* context, const NamedTensor& tensor,
                                  const Shape& sourceShape, const std::set<std::string>& slopes,
                                  const Recipe& recipe) {
  if (ir::RuleInitAttr rule = initByRecipe(context, namesOf(tensor), recipe))
    return rule;
  std::string_view leaf = leafOf(tensor.name);
  bool vector = sourceShape.size() == 1;
  if (slopes.contains(tensor.initializer))
    return defaultInit(context, DefaultInit::Slope);
  // A vector that is called `weight` scales: the weight of a normalisation that the exporter took
  // apart.
  if (tensor.role == Role::NormScale || (tensor.role == Role::Other && vector && leaf == "weight"))
    return defaultInit(context, DefaultInit::One);
  if (tensor.role == Role::Bias || tensor.role == Role::NormBias || isCalledBias(leaf, sourceShape))
    return defaultInit(context, DefaultInit::Zero);
  if (tensor.role == Role::Embedding)
    return defaultInit(context, DefaultInit::Table);
  int64_t fanIn = tensor.fanIn;
  if (fanIn == 0) {
    fanIn = vector ? sourceShape[0] : 1;
    for (size_t d = 1; d < sourceShape.size(); ++d)
      fanIn *= sourceShape[d];
  }
  return defaultInit(context, DefaultInit::FanIn, fanIn);
}

/// Of a running statistic, by what it is to its norm: names differ by source.
static bool isVariance(const TensorUses& statistic) {
  return llvm::any_of(statistic.uses, [](const Use& use) {
    return use.role == Role::Statistic && use.operand == 4;
  });
}

/// The tensor whose bytes the file has for `tensor`.
static const Tensor& storedOf(const Tensor& tensor) {
  return tensor.stored ? *tensor.stored : tensor;
}

/// Do the file's bytes count? Else a rule gives the first value of `tensor`.
static bool startsFromFile(const NamedTensor& tensor, const Tensor& file, bool fresh) {
  const bool drawn = tensor.kind == TensorKind::Parameter || tensor.role == Role::Statistic;
  return !file.restored && !(fresh && drawn);
}

/// Of stored tensors.
using Digests = std::map<const Tensor*, Result<uint64_t>>;

/// The digests of all tensors in one piece that states of `names` start from. Weights are most of
/// what an import reads, so the threads of `context` read a tensor each.
static Digests digestsOf(MLIRContext* context, const Graph& graph, const NameTable& names,
                         bool fresh) {
  Digests digests;
  std::vector<Digests::value_type*> order;
  for (const NamedState& named : names.states) {
    const NamedTensor& tensor = names.tensors[named.tensor];
    if (!startsFromFile(tensor, graph.initializers.at(tensor.initializer), fresh))
      continue;
    for (const auto& [initializer, piece] : named.sources)
      if (const Tensor& file = storedOf(graph.initializers.at(initializer)); file.span)
        if (auto [digest, isNew] = digests.try_emplace(&file, uint64_t{0}); isNew)
          order.push_back(&*digest);
  }
  // The largest first, so that the threads end together.
  std::ranges::sort(order, std::greater(), [](const auto* one) { return one->first->byteCount(); });
  parallelForEach(context, order, [](auto* one) { one->second = one->first->digest(); });
  return digests;
}

/// Where `file`'s bytes are; `name` is the state's.
static Result<ir::StoredRangeAttr> storedRange(MLIRContext* context, const std::string& name,
                                               const Tensor& file, const Digests& digests,
                                               bool fresh) {
  if (!file.missing.empty() && fresh)
    return Error::badInput("{}: buffer '{}' {} has its values there, which model.init = \"fresh\" "
                           "cannot make up: put the file beside the model or say where it is with "
                           "--weights-dir",
                           file.missing, printable(name), toString(file.shape));
  if (!file.missing.empty())
    return Error::badInput(
        "{}: put it beside the model or say where it is with --weights-dir, or train from "
        "scratch with model.init = \"fresh\"",
        file.missing);
  if (!file.span)
    return Error::badInput("'{}' is not stored as one piece of raw data: save the model with "
                           "raw_data",
                           printable(file.name));
  uint64_t digest = TITAN_TRY(digests.at(&file));
  return ir::StoredRangeAttr::get(context, file.span->path, file.span->offset, file.span->bytes,
                                  digest, file.shape);
}

/// What the source framework has of `state` in the file. Several tensors may be copies of one.
static std::vector<TensorSource> sourcesInFile(const Graph& graph, const NamedState& state) {
  std::vector<TensorSource> sources;
  for (const auto& [initializer, piece] : state.sources) {
    const std::string& copyOf = graph.initializers.at(initializer).copyOf;
    sources.push_back({copyOf.empty() ? initializer : copyOf, shortened(piece, state.shape)});
  }
  return sources;
}

/// The bytes of the tensors that `state` is made of.
static Result<ir::FileInitAttr> fileInit(MLIRContext* context, const Graph& graph,
                                         const NamedState& state, const Digests& digests,
                                         bool fresh) {
  const std::vector<TensorSource> sources = sourcesInFile(graph, state);
  std::vector<ir::StoredRangeAttr> stored;
  std::vector<std::string> known;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (llvm::is_contained(known, sources[i].initializer))
      continue;
    known.push_back(sources[i].initializer);
    const Tensor& file = storedOf(graph.initializers.at(state.sources[i].initializer));
    ir::StoredRangeAttr range = TITAN_TRY(storedRange(context, state.name, file, digests, fresh));
    if (file.shape == state.shape) // no need to repeat it
      range = ir::StoredRangeAttr::get(context, range.getPath(), range.getOffset(),
                                       range.getBytes(), range.getDigest(), {});
    stored.push_back(range);
  }
  return ir::FileInitAttr::get(context, stored);
}

/// Nothing for a state that the file has under its own name and as it is.
static ArrayAttr sourcesAttr(MLIRContext* context, const Graph& graph, const NamedState& state) {
  std::vector<TensorSource> sources = sourcesInFile(graph, state);
  const Shape& file = storedOf(graph.initializers.at(state.sources[0].initializer)).shape;
  if (sources.size() == 1 && sources[0].initializer == state.name && sources[0].piece.isInPlace() &&
      file == state.shape)
    return {};
  SmallVector<Attribute> list;
  for (const auto& [initializer, piece] : sources)
    list.push_back(
        ir::SourceAttr::get(context, initializer, piece.at, piece.from, piece.extent, piece.dims));
  return ArrayAttr::get(context, list);
}

/// Masks or trained tensors: the file does not tell which.
static Status checkDecided(const Graph& graph, const NameTable& names) {
  std::vector<std::string> open;
  for (const NamedTensor& tensor : names.tensors)
    if (const Tensor& file = graph.initializers.at(tensor.initializer); file.perhapsMask)
      open.push_back(fmt::format("'{}' {}", printable(tensor.initializer), toString(file.shape)));
  if (open.empty())
    return {};
  return Error::badInput("without data, and added to attention scores: {}: a mask or a trained "
                         "tensor; say which in a names file (--names), with kind = "
                         "\"causal_mask\" or kind = \"parameter\"",
                         fmt::join(open, ", "));
}

Result<std::vector<ir::StateOp>> addStates(ModuleOp module, const Graph& graph,
                                           const NameTable& names, const Recipe& recipe) {
  MLIRContext* context = module.getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  bool fresh = recipe.model.init == "fresh";
  const std::map<std::string, TensorUses> uses = fresh ? findUses(graph) : decltype(uses)();
  const std::set<std::string> slopes = fresh ? slopesOf(graph) : decltype(slopes)();
  TITAN_TRY(checkDecided(graph, names));
  const Digests digests = digestsOf(context, graph, names, fresh);
  std::vector<ir::StateOp> states;
  std::vector<StateNames> parameters;
  std::vector<std::string> problems;
  for (const NamedState& named : names.states) {
    NamedTensor tensor = names.tensors[named.tensor];
    tensor.name = named.name;
    const Tensor& file = graph.initializers.at(tensor.initializer);
    const Shape& shape = named.shape;
    if (elementCount(shape) == 0)
      return Error::badInput("'{}' of shape {} is empty", printable(tensor.name), toString(shape));
    bool parameter = tensor.kind == TensorKind::Parameter;
    Attribute init;
    if (startsFromFile(tensor, file, fresh)) {
      Result<ir::FileInitAttr> attribute = fileInit(context, graph, named, digests, fresh);
      if (!attribute.ok()) {
        problems.push_back(attribute.error().message());
        continue;
      }
      init = *attribute;
    } else if (file.restored && !(fresh && parameter)) {
      init = ir::RuleInitAttr::get(context, "constant", 0, 0);
    } else if (parameter) {
      init = freshInit(context, tensor, shape, slopes, recipe);
    } else { // a statistic: the file's are those of its weights
      const bool variance = isVariance(uses.at(tensor.initializer));
      init = ir::RuleInitAttr::get(context, "constant", variance ? 1 : 0, 0);
    }
    const bool frozen = isFrozen(namesOf(tensor), recipe);
    if (parameter)
      parameters.push_back(namesOf(tensor));
    auto state = ir::StateOp::create(
        builder, module.getLoc(), symbolOf(tensor.name),
        RankedTensorType::get(shape, elementTypeOf(context, file.dtype)),
        parameter ? ir::StateKind::Param : ir::StateKind::Buffer, parameter && !frozen, init);
    if (state.getSymName() != tensor.name)
      state.setCanonicalName(tensor.name);
    if (SmallVector<StringRef> aliases(tensor.aliases.begin(), tensor.aliases.end());
        !aliases.empty())
      state.setAliasesAttr(builder.getStrArrayAttr(aliases));
    if (ArrayAttr sources = file.restored ? ArrayAttr() : sourcesAttr(context, graph, named))
      state.setSourcesAttr(sources);
    states.push_back(state);
  }
  if (!problems.empty()) {
    std::string more =
        problems.size() > 1 ? fmt::format(" (and {} more tensors)", problems.size() - 1) : "";
    return Error::badInput("{}{}", problems.front(), more);
  }
  TITAN_TRY(checkPatterns(parameters, recipe, "--check"));
  return states;
}

} // namespace titan::frontend
