#include "frontend/onnx/States.h"

#include "frontend/onnx/Conversion.h"

#include <cmath>

using namespace mlir;

namespace titan::frontend {

/// Does `glob` match a name of the tensor, or another one that it is tied to?
static bool matchesName(const std::string& glob, const NamedTensor& tensor) {
  auto matches = [&](const std::string& name) { return matchesGlob(glob, name); };
  return matches(tensor.name) || llvm::any_of(tensor.aliases, matches);
}

ir::RuleInitAttr freshInit(MLIRContext* context, const NamedTensor& tensor,
                           const Shape& sourceShape, const Recipe& recipe) {
  auto rule = [&](StringRef distribution, double a, double b) {
    return ir::RuleInitAttr::get(context, distribution, a, b);
  };
  for (const InitRule& entry : recipe.model.initRules) {
    if (!matchesName(entry.match, tensor))
      continue;
    if (entry.dist == "constant")
      return rule("constant", entry.value, 0);
    if (entry.dist == "uniform")
      return rule("uniform", entry.low, entry.high);
    return rule("normal", entry.mean, entry.std);
  }
  std::string_view leaf = leafOf(tensor.name);
  bool vector = sourceShape.size() == 1;
  // A vector that is called `weight` scales: the weight of a normalisation that the exporter took
  // apart.
  if (tensor.role == Role::NormScale || (tensor.role == Role::Other && vector && leaf == "weight"))
    return rule("constant", 1, 0);
  if (tensor.role == Role::Bias || tensor.role == Role::NormBias || leaf == "bias")
    return rule("constant", 0, 0);
  if (tensor.role == Role::Embedding)
    return rule("normal", 0, 0.02);
  int64_t fanIn = tensor.fanIn;
  if (fanIn == 0) {
    fanIn = vector ? sourceShape[0] : 1;
    for (size_t d = 1; d < sourceShape.size(); ++d)
      fanIn *= sourceShape[d];
  }
  return rule("normal", 0, 1 / std::sqrt(static_cast<double>(fanIn)));
}

/// Where `file`'s bytes are, for a state in the source's layout.
static Result<ir::FileInitAttr> fileInit(MLIRContext* context, const NamedTensor& tensor,
                                         const Tensor& file, bool fresh) {
  if (!file.missing.empty() && fresh)
    return Error::badInput("{}: buffer '{}' {} has its values there, which model.init = \"fresh\" "
                           "cannot make up: put the file beside the model or say where it is with "
                           "--weights-dir",
                           file.missing, printable(tensor.name), toString(file.shape));
  if (!file.missing.empty())
    return Error::badInput(
        "{}: put it beside the model or say where it is with --weights-dir, or train from "
        "scratch with model.init = \"fresh\"",
        file.missing);
  if (!file.span)
    return Error::badInput("'{}' is not stored as one piece of raw data: save the model with "
                           "raw_data",
                           printable(tensor.initializer));
  uint64_t digest = TITAN_TRY(file.digest());
  return ir::FileInitAttr::get(context, file.span->path, file.span->offset, file.span->bytes,
                               digest, tensor.layout);
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

/// Functions share the symbol table: a tensor that is called like one of them gets a symbol of its
/// own.
static std::string symbolOf(const std::string& name) {
  for (StringRef reserved :
       {ir::function::model, ir::function::step, ir::function::eval, ir::function::predict})
    if (name == reserved)
      return "state." + name;
  return name;
}

Result<std::vector<ir::StateOp>> addStates(ModuleOp module, const Graph& graph,
                                           const NameTable& names, const Recipe& recipe) {
  MLIRContext* context = module.getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  bool fresh = recipe.model.init == "fresh";
  TITAN_TRY(checkDecided(graph, names));
  std::vector<ir::StateOp> states;
  std::vector<std::string> problems;
  for (const NamedTensor& tensor : names.tensors) {
    if (!tensor.isState())
      continue;
    const Tensor& file = graph.initializers.at(tensor.initializer);
    Shape shape = tensor.sourceShape(file.shape);
    if (elementCount(shape) == 0)
      return Error::badInput("'{}' of shape {} is empty", printable(tensor.name), toString(shape));
    bool parameter = tensor.kind == TensorKind::Parameter;
    Attribute init;
    if (fresh && parameter) {
      init = freshInit(context, tensor, shape, recipe);
    } else if (file.restored) {
      init = ir::RuleInitAttr::get(context, "constant", 0, 0);
    } else if (fresh && !file.missing.empty() && tensor.role == Role::Statistic) {
      bool variance = tensor.name.ends_with("var");
      init = ir::RuleInitAttr::get(context, "constant", variance ? 1 : 0, 0);
    } else {
      Result<ir::FileInitAttr> attribute = fileInit(context, tensor, file, fresh);
      if (!attribute.ok()) {
        problems.push_back(attribute.error().message());
        continue;
      }
      init = *attribute;
    }
    bool frozen = false;
    for (const std::string& glob : recipe.model.frozen)
      frozen |= matchesName(glob, tensor);
    auto state = ir::StateOp::create(
        builder, module.getLoc(), symbolOf(tensor.name),
        RankedTensorType::get(shape, elementTypeOf(context, file.dtype)),
        parameter ? ir::StateKind::Param : ir::StateKind::Buffer, parameter && !frozen, init);
    if (state.getSymName() != tensor.name)
      state.setCanonicalName(tensor.name);
    if (SmallVector<StringRef> aliases(tensor.aliases.begin(), tensor.aliases.end());
        !aliases.empty())
      state.setAliasesAttr(builder.getStrArrayAttr(aliases));
    const std::string& source = file.copyOf.empty() ? tensor.initializer : file.copyOf;
    if (source != tensor.name && !file.restored)
      state.setSourceName(source);
    if (!tensor.layout.empty())
      state.setSourceLayout(tensor.layout);
    states.push_back(state);
  }
  if (!problems.empty()) {
    std::string more =
        problems.size() > 1 ? fmt::format(" (and {} more tensors)", problems.size() - 1) : "";
    return Error::badInput("{}{}", problems.front(), more);
  }
  for (const std::string& glob : recipe.model.frozen) {
    bool matched = false;
    for (const NamedTensor& tensor : names.tensors)
      matched |= tensor.kind == TensorKind::Parameter && matchesName(glob, tensor);
    if (!matched)
      return Error::badInput("model.frozen: '{}' matches no parameter; --check lists them",
                             printable(glob));
  }
  return states;
}

} // namespace titan::frontend
