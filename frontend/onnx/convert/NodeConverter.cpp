#include "frontend/onnx/convert/NodeConverter.h"

#include "frontend/onnx/convert/Rows.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Scopes.h"
#include "frontend/onnx/read/Reader.h"
#include "runtime/program/Random.h"

using namespace mlir;

namespace titan::frontend {

namespace {

Result<int64_t> controlOf(const Node& node, const Known& value, const char* what) {
  if (!value.host || value.host->size() != 1)
    return Error::badInput("{}: {} is computed by the model: only one that follows from shapes is "
                           "supported",
                           node.shown(), what);
  return value.host->integer(0);
}

/// A tensor of the type and shape of `known`, without its elements. Nothing: it is a sequence.
std::optional<HostTensor> typeOf(const Known& known) {
  if (known.file)
    return HostTensor::empty(known.file->dtype, known.file->shape);
  if (!known.value)
    return std::nullopt;
  std::optional<DType> dtype = dtypeOf(ir::tensorType(known.value).getElementType());
  if (!dtype)
    return std::nullopt;
  return HostTensor::empty(*dtype, Conversion::shapeOf(known.value));
}

std::string unsupported(const Node& node) {
  if (!node.domain.empty())
    return fmt::format("ops of domain '{}' are not supported", printable(node.domain));
  for (const ConverterEntry& entry : converterTable())
    if (node.opType == entry.opType)
      return fmt::format("opset {} is older than {}, the oldest that is supported", node.opset,
                         entry.since);
  return "the op is not supported";
}

/// The legacy exporter folds a batch norm into the weight and the bias of the convolution before.
/// The file does not say that it did, but what else it folds leaves one of the two as it is.
bool mayHoldNorm(const Node& node, const NameTable& names) {
  if (!node.domain.empty() || node.opType != "Conv" || !node.hasInput(2))
    return false;
  const NamedTensor *weight = names.find(node.inputs[1]), *bias = names.find(node.inputs[2]);
  return weight && weight->isPart && bias && bias->isPart;
}

} // namespace

std::vector<Known> NodeConverter::operandsOf(const Node& node) const {
  std::vector<Known> operands;
  for (const std::string& input : node.inputs) {
    auto it = values_.find(input);
    operands.push_back(input.empty() || it == values_.end() ? Known() : it->second);
  }
  return operands;
}

void NodeConverter::convert(const Node& node) {
  if (isIf(node) || isLoop(node)) {
    if (Status status = isIf(node) ? convertIf(node) : convertLoop(node); !status.ok())
      fail(node, status.takeError());
    return;
  }
  std::vector<Known> operands = operandsOf(node);
  const ConverterEntry* converter = findConverter(node);
  // Operands that failed make this node fail too, silently: its own problem, if it has one, is
  // that nothing knows its op.
  bool complete = true;
  for (auto [i, operand] : llvm::enumerate(operands))
    complete &= !node.hasInput(i) || operand.isKnown();
  if (complete) {
    Result<bool> folded = tryFold(node, operands);
    if (!folded.ok())
      return fail(node, folded.takeError());
    if (*folded)
      return;
  }
  if (!converter && !complete && isOnlyFolded(node))
    return;
  if (!converter)
    return fail(node, Error::badInput("{}: {}", node.shown(), unsupported(node)));
  if (holdsFoldedNorm(node))
    return fail(
        node, Error::badInput("{}: the exporter folded a batch norm into its weights, which are no "
                              "parameters of the source then: export with torch.onnx.export(..., "
                              "dynamo=True, optimize=False)",
                              node.shown()));
  if (recipe_.model.mode == "train" && mayHoldNorm(node, names_))
    return fail(node, Error::badInput(
                          "{}: the exporter computed its weight and bias, as it does of a batch "
                          "norm, which model.mode = \"train\" cannot bring back: export after "
                          "train(), or with do_constant_folding=False",
                          node.shown()));
  if (!complete)
    return;
  std::string path = pathOf(node);
  Conversion conversion(node, builder_, locationOf(node),
                        builder_.getStrArrayAttr(ArrayRef<StringRef>(StringRef(path))),
                        std::move(operands));
  conversion.trainingMode = recipe_.model.mode == "train";
  conversion.fromPyTorch = graph_.fromPyTorch();
  conversion.randomStream = [this, &path] { return randomStream(path, randomOrdinals_[path]++); };
  conversion.paddingOf = [this, &node](Value table) { return paddingOf(node, table); };
  if (conversion.results.empty())
    return;
  Status status = converter->convert(conversion);
  if (!status.ok())
    return fail(node, status.takeError());
  if (conversion.sequenceResult)
    values_[node.outputs[0]].sequence = std::move(conversion.sequenceResult);
  for (auto& [i, nothing] : conversion.empty)
    values_[node.outputs[i]].host = std::move(nothing);
  for (auto [output, value] : llvm::zip_equal(node.outputs, conversion.results)) {
    if (output.empty() || !value)
      continue;
    if (llvm::is_contained(ir::tensorType(value).getShape(), 0))
      return fail(node, Error::badInput("{}: its result is empty", node.shown()));
    values_[output].value = value;
  }
}

Status NodeConverter::convertIf(const Node& node) {
  const std::vector<Known> operands = operandsOf(node);
  if (!operands.front().isKnown())
    return {}; // its operand has failed
  const bool condition = TITAN_TRY(controlOf(node, operands.front(), "its condition")) != 0;
  Subgraph branch = TITAN_TRY(branchOf(node, condition));
  TITAN_TRY(convertSubgraph(branch));
  for (auto [output, inner] : llvm::zip_equal(node.outputs, branch.outputs))
    if (auto value = values_.find(inner); value != values_.end() && !output.empty())
      values_[output] = value->second;
  return {};
}

Status NodeConverter::convertSubgraph(const Subgraph& graph) {
  for (const Node& inner : graph.nodes) {
    for (const std::string& output : inner.outputs)
      TITAN_TRY(reserve(inner, output));
    const bool isConstant = inner.opType == "Constant" && inner.outputs.size() == 1;
    if (std::optional<::onnx::TensorProto> constant =
            isConstant ? constantValue(inner) : std::nullopt) {
      const Tensor tensor = TITAN_TRY(takeTensor(*constant, inner.shown()));
      values_[inner.outputs.front()].host = TITAN_TRY(toHost(tensor));
      continue;
    }
    convert(inner);
  }
  return {};
}

Status NodeConverter::reserve(const Node& node, const std::string& name) {
  if (name.empty())
    return {};
  if (values_.contains(name) && !ofSubgraphs_.contains(name))
    return Error::badInput("{}: '{}' is produced more than once", node.shown(), printable(name));
  ofSubgraphs_.insert(name);
  values_[name] = {};
  return {};
}

Status NodeConverter::convertLoop(const Node& node) {
  std::vector<Known> operands = operandsOf(node);
  for (auto [i, operand] : llvm::enumerate(operands))
    if (node.hasInput(i) && !operand.isKnown())
      return {}; // it has failed
  const Subgraph body = TITAN_TRY(bodyOf(node));
  int64_t iterations = INT64_MAX;
  if (node.hasInput(0))
    iterations = TITAN_TRY(controlOf(node, operands[0], "its number of iterations"));
  bool goesOn = !node.hasInput(1) || TITAN_TRY(controlOf(node, operands[1], "its condition"));
  std::vector<Known> carried(operands.begin() + kLoopControls,
                             operands.begin() + static_cast<long>(body.inputs.size()));
  std::vector<std::vector<Known>> scanned(node.outputs.size() - carried.size());
  for (int64_t i = 0; goesOn && i < iterations; ++i) {
    std::optional<std::vector<Known>> results = TITAN_TRY(iterate(node, body, i, carried));
    if (!results)
      return {};
    goesOn = TITAN_TRY(controlOf(node, results->front(), "its condition"));
    auto next = results->begin() + 1;
    std::copy_n(next, carried.size(), carried.begin());
    next += static_cast<long>(carried.size());
    for (std::vector<Known>& values : scanned)
      values.push_back(*next++);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty())
      values_[node.outputs[i]] =
          i < carried.size() ? carried[i] : TITAN_TRY(stack(node, scanned[i - carried.size()]));
  return {};
}

Result<std::optional<std::vector<Known>>>
NodeConverter::iterate(const Node& node, const Subgraph& body, int64_t i,
                       const std::vector<Known>& carried) {
  unrolled_ += body.nodes.size() + 1;
  if (unrolled_ > kMostNodes)
    return Error::badInput("{}: its iterations have more than {} nodes", node.shown(), kMostNodes);
  for (const std::string& input : body.inputs)
    TITAN_TRY(reserve(node, input));
  values_[body.inputs[0]].host = HostTensor::scalar(i);
  values_[body.inputs[1]].host = HostTensor::scalar(1);
  values_[body.inputs[1]].host->dtype = DType::Bool;
  for (size_t k = 0; k < carried.size(); ++k)
    values_[body.inputs[kLoopControls + k]] = carried[k];
  const size_t problems = problems_.size();
  TITAN_TRY(convertSubgraph(body));
  std::vector<Known> results;
  for (const std::string& output : body.outputs)
    results.push_back(values_[output]);
  const bool complete = problems_.size() == problems &&
                        llvm::all_of(results, [](const Known& known) { return known.isKnown(); });
  return complete ? std::optional(std::move(results)) : std::nullopt;
}

Result<Known> NodeConverter::stack(const Node& node, std::vector<Known> rows) {
  if (rows.empty())
    return Error::badInput("{}: it has no iteration", node.shown());
  Node join;
  join.name = node.name;
  join.opType = node.opType;
  join.inputs.assign(rows.size(), "a result of its body");
  std::string path = pathOf(node);
  Conversion conversion(join, builder_, locationOf(node),
                        builder_.getStrArrayAttr(ArrayRef<StringRef>(StringRef(path))),
                        std::move(rows));
  std::vector<Value> values;
  for (size_t i = 0; i < conversion.count(); ++i)
    values.push_back(TITAN_TRY(conversion.operand(i)));
  Known found;
  found.value = TITAN_TRY(stacked(conversion, values));
  return found;
}

std::optional<int64_t> NodeConverter::paddingOf(const Node& node, Value table) {
  if (auto told = paddings_.find(table); told != paddings_.end()) {
    told->second.isUsed = true;
    return told->second.tensor->paddingIndex;
  }
  std::optional<int64_t> index = scopeOf(node).paddingIndex;
  return index && *index < ir::tensorType(table).getDimSize(0) ? index : std::nullopt;
}

Status NodeConverter::checkPaddings() const {
  for (const NamedTensor& tensor : names_.tensors)
    if (tensor.paddingIndex && !llvm::any_of(paddings_, [&](const auto& entry) {
          return entry.second.tensor == &tensor && entry.second.isUsed;
        }))
      return Error::badInput("names file: '{}': padding_idx = {}, but the model looks no rows of "
                             "it up",
                             printable(tensor.initializer), *tensor.paddingIndex);
  return {};
}

Result<bool> NodeConverter::tryFold(const Node& node, ArrayRef<Known> operands) {
  bool ofShape = node.domain.empty() && (node.opType == "Shape" || node.opType == "Size");
  bool ofType = node.domain.empty() && node.opType == "CastLike";
  std::vector<HostTensor> types;
  types.reserve(operands.size());
  HostInputs inputs;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (!node.hasInput(i)) {
      inputs.push_back(nullptr);
    } else if (operand.host) {
      inputs.push_back(&*operand.host);
    } else if (std::optional<HostTensor> type =
                   ofShape || (ofType && i == 1) ? typeOf(operand) : std::nullopt) {
      types.push_back(std::move(*type));
      inputs.push_back(&types.back());
    } else {
      return false;
    }
  }
  if (inputs.empty())
    return false;
  int64_t largest = folded_ < kMostFolded ? kLargestFolded : kAlwaysFolded;
  std::optional<HostOutputs> outputs = TITAN_TRY(fold(node, inputs, largest));
  if (!outputs)
    return false;
  for (const HostTensor& output : *outputs)
    folded_ += output.size();
  for (auto [output, value] : llvm::zip(node.outputs, *outputs))
    if (!output.empty())
      values_[output].host = std::move(value);
  return true;
}

Location NodeConverter::locationOf(const Node& node) const {
  return NameLoc::get(builder_.getStringAttr(
      node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name));
}

void NodeConverter::fail(const Node& node, const Error& error) {
  const Scope scope = scopeOf(node);
  std::string problem = error.message();
  if (!scope.module.empty())
    problem += ", in module '" + printable(scope.module) + "'";
  if (scope.target.starts_with("aten.embedding_bag."))
    problem += "; where offsets are an input, bags have no size that is known: export with "
               "indices of shape [bags, size], and padding_idx for what a bag lacks";
  problems_.push_back(std::move(problem));
}

Status NodeConverter::reportProblems() const {
  if (problems_.empty())
    return {};
  if (problems_.size() == 1)
    return Error::badInput("{}", problems_.front());
  std::string list = fmt::format("{} nodes cannot be imported:", problems_.size());
  constexpr size_t kMostListed = 50;
  for (size_t i = 0; i < std::min(problems_.size(), kMostListed); ++i)
    list += "\n  " + problems_[i];
  if (problems_.size() > kMostListed)
    list += fmt::format("\n  and {} more", problems_.size() - kMostListed);
  return Error::badInput("{}", list);
}

Status NodeConverter::check() const {
  TITAN_TRY(reportProblems());
  return checkPaddings();
}

} // namespace titan::frontend
