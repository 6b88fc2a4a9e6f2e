#include "frontend/onnx/name/Uses.h"

#include "frontend/onnx/name/Dataflow.h"
#include "frontend/onnx/name/FxArguments.h"
#include "frontend/onnx/name/NormsOfGroups.h"
#include "frontend/onnx/name/SourceModel.h"

#include <algorithm>

namespace titan::frontend {

static bool isLoss(std::string_view op) {
  return op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss";
}

Role roleOf(const Node& node, size_t operand, size_t rank) {
  const std::string& op = node.opType;
  if (op == "Gemm")
    return operand == 2 ? Role::Bias : Role::Weight;
  if (op == "MatMul")
    return Role::Weight;
  if (op == "Conv" || op == "ConvTranspose")
    return operand == 1 ? Role::Weight : operand == 2 ? Role::Bias : Role::Other;
  if (op == "LayerNormalization" || op == "InstanceNormalization" || op == "GroupNormalization" ||
      op == "RMSNormalization" || op == "BatchNormalization")
    return operand == 1   ? Role::NormScale
           : operand == 2 ? Role::NormBias
           : operand >= 3 ? Role::Statistic
                          : Role::Other;
  if (isLoss(op) && operand == 2)
    return Role::ClassWeight;
  if (op == "Gather" && operand == 0)
    return Role::Embedding;
  if ((op == "Add" || op == "Sum") && rank <= 1)
    return Role::Bias;
  return Role::Other;
}

namespace {

/// Operands through which no gradient flows, by op; an empty list: none of its operands.
const std::map<std::string, std::set<size_t>>& blockedOperands() {
  static const std::map<std::string, std::set<size_t>> table = {
      {"Shape", {}},
      {"Size", {}},
      {"ConstantOfShape", {}},
      {"Range", {}},
      {"ArgMax", {}},
      {"ArgMin", {}},
      {"Equal", {}},
      {"Less", {}},
      {"LessOrEqual", {}},
      {"Greater", {}},
      {"GreaterOrEqual", {}},
      {"Not", {}},
      {"And", {}},
      {"Or", {}},
      {"Xor", {}},
      {"IsNaN", {}},
      {"IsInf", {}},
      {"Floor", {}},
      {"Ceil", {}},
      {"Round", {}},
      {"Sign", {}},
      {"OneHot", {}},
      {"NonZero", {}},
      {"EyeLike", {}},
      {"Gather", {1}},
      {"Reshape", {1}},
      {"Expand", {1}},
      {"Tile", {1}},
      {"Slice", {1, 2, 3, 4}},
      {"Pad", {1, 2, 3}},
      {"Dropout", {1, 2}},
      {"Where", {0}},
      {"Split", {1}},
      {"Squeeze", {1}},
      {"Unsqueeze", {1}},
      {"CastLike", {1}},
      {"TopK", {1}},
      {"Trilu", {1}},
      {"ReduceSum", {1}},
      {"ReduceMean", {1}},
      {"ReduceMax", {1}},
      {"ReduceMin", {1}},
      {"ReduceProd", {1}},
      {"ReduceL1", {1}},
      {"ReduceL2", {1}},
      {"ReduceSumSquare", {1}},
      {"ReduceLogSum", {1}},
      {"ReduceLogSumExp", {1}},
      {"BatchNormalization", {3, 4, kBatchCounter}},
      {"Resize", {1, 2, 3}},
      {"Upsample", {1}},
      {"GatherElements", {1}},
      {"GatherND", {1}},
      {"RotaryEmbedding", {3}},
      {"CumProd", {1}},
      {"CumSum", {1}},
      {"Hardmax", {}},
      {"Scatter", {1}},
      {"ScatterElements", {1}},
      {"ScatterND", {1}},
      {"LSTM", {4}},
      {"GRU", {4}},
      {"RNN", {4}},
      {"SoftmaxCrossEntropyLoss", {2}},
      {"NegativeLogLikelihoodLoss", {1, 2}},
  };
  return table;
}

bool blocks(const Node& node, size_t operand) {
  if (isDetach(node))
    return true;
  auto it = blockedOperands().find(node.opType);
  return it != blockedOperands().end() && (it->second.empty() || it->second.contains(operand));
}

} // namespace

GradientPaths::GradientPaths(const Graph& graph) {
  for (const Port& output : graph.outputs)
    values_.insert(output.name);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
    for (size_t k = 0; k < node->inputs.size(); ++k)
      if (leadThrough(*node, k))
        values_.insert(node->inputs[k]);
}

bool GradientPaths::leadThrough(const Node& node, size_t operand) const {
  return node.hasInput(operand) && !blocks(node, operand) &&
         std::ranges::any_of(node.outputs, [&](const std::string& output) {
           return !output.empty() && values_.contains(output);
         });
}

namespace {

/// Identity and Transpose nodes that a tensor is followed through.
constexpr int kLongestChain = 64;

class UseFinder {
public:
  explicit UseFinder(const Graph& graph) : graph_(graph), dataflow_(graph), gradients_(graph) {
    findData();
    findFromInputs();
    for (const NormOfGroups& norm : normsOfGroups(graph)) {
      if (norm.scale)
        roles_[{*norm.scale, norm.scaleOperand}] = Role::NormScale;
      if (norm.shift)
        roles_[{*norm.shift, norm.shiftOperand}] = Role::NormBias;
    }
  }

  std::map<std::string, TensorUses> run() {
    std::map<std::string, TensorUses> all;
    for (const auto& [name, tensor] : graph_.initializers) {
      TensorUses& uses = all[name];
      uses.differentiable = gradients_.reach(name);
      std::set<std::string> seen;
      uses.onlyAngles = uses.differentiable && extents(tensor.shape) == 1 && onlyAngles(name, seen);
      follow(name, tensor.shape, /*swapped=*/false, kLongestChain, uses);
      std::sort(uses.uses.begin(), uses.uses.end(), [](const Use& a, const Use& b) {
        return std::pair(a.node, a.operand) < std::pair(b.node, b.operand);
      });
    }
    return all;
  }

private:
  /// Dimensions that are more than 1.
  static size_t extents(const Shape& shape) {
    return static_cast<size_t>(
        std::count_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; }));
  }

  /// What floating inputs and matrices are part of: the data that a model computes, as against
  /// positions and the frequencies of rotary embeddings.
  void findData() {
    for (const Port& input : graph_.inputs)
      if (!input.typed || input.dtype == DType::F32 || input.dtype == DType::F64 ||
          input.dtype == DType::F16 || input.dtype == DType::BF16)
        data_.insert(input.name);
    for (const auto& [name, tensor] : graph_.initializers)
      if (extents(tensor.shape) > 1 && gradients_.reach(name))
        data_.insert(name);
    for (const Node& node : graph_.nodes)
      if (node.opType != "Shape" && node.opType != "Size" &&
          std::any_of(node.inputs.begin(), node.inputs.end(),
                      [&](const std::string& input) { return data_.contains(input); }))
        data_.insert(node.outputs.begin(), node.outputs.end());
  }

  /// What values of inputs, not only their shapes, take part in.
  void findFromInputs() {
    for (const Port& input : graph_.inputs)
      fromInputs_.insert(input.name);
    for (const Node& node : graph_.nodes)
      if (node.opType != "Shape" && node.opType != "Size" &&
          std::any_of(node.inputs.begin(), node.inputs.end(),
                      [&](const std::string& input) { return fromInputs_.contains(input); }))
        fromInputs_.insert(node.outputs.begin(), node.outputs.end());
  }

  /// Does all that is done with `value` end in the Cos or Sin of something that is no data?
  bool onlyAngles(const std::string& value, std::set<std::string>& seen) {
    if (!seen.insert(value).second)
      return true;
    const std::vector<Read>& reads = dataflow_.readsOf(value);
    if (reads.empty() || seen.size() > kLongestChain)
      return false;
    for (const Read& read : reads) {
      const Node& node = graph_.nodes[read.node];
      if (node.opType == "Shape" || node.opType == "Cos" || node.opType == "Sin")
        continue;
      for (const std::string& output : node.outputs)
        if (!output.empty() && (data_.contains(output) || !onlyAngles(output, seen)))
          return false;
    }
    return true;
  }

  /// Adds the uses of `value`, the tensor or its transposition, which has `shape`.
  void follow(const std::string& value, const Shape& shape, bool swapped, int steps,
              TensorUses& out) {
    if (steps == 0)
      return;
    for (const auto [index, operand] : dataflow_.readsOf(value)) {
      const Node& node = graph_.nodes[index];
      Use use{index, operand, roleOf(node, operand, shape.size())};
      if (auto known = roles_.find({index, operand}); known != roles_.end())
        use.role = known->second;
      if (use.role == Role::Weight)
        contraction(node, operand, shape, swapped, use);
      if (node.opType.starts_with("Gather") && operand == 0 && node.hasInput(1))
        out.indexedByInput |= fromInputs_.contains(node.inputs[1]);
      if (node.opType == "Identity" && node.outputs.size() == 1) {
        out.identityNames.push_back(node.outputs[0]);
        follow(node.outputs[0], shape, swapped, steps - 1, out);
      } else if (node.opType == "Transpose" && shape.size() == 2 && node.outputs.size() == 1) {
        std::vector<int64_t> permutation =
            node.integers("perm").value_or(std::vector<int64_t>{1, 0});
        bool swaps = permutation == std::vector<int64_t>{1, 0};
        out.uses.push_back(use);
        follow(node.outputs[0], swaps ? Shape{shape[1], shape[0]} : shape, swapped != swaps,
               steps - 1, out);
      } else {
        out.uses.push_back(use);
      }
    }
  }

  void contraction(const Node& node, size_t operand, const Shape& shape, bool swapped, Use& use) {
    if (node.opType == "MatMul" || node.opType == "Gemm") {
      if (shape.size() < 2)
        return;
      // Is the contracted dimension the last but one (of the operand as it is read)?
      bool inFirst = operand == 1;
      if (node.opType == "Gemm" && node.integer(operand == 1 ? "transB" : "transA", 0) != 0)
        inFirst = !inFirst;
      use.fanIn = shape[shape.size() - (inFirst ? 2 : 1)];
      use.transposed = inFirst != swapped;
    } else if (!shape.empty()) {
      use.fanIn = 1;
      for (size_t d = 1; d < shape.size(); ++d)
        use.fanIn *= shape[d];
    }
  }

  const Graph& graph_;
  const Dataflow dataflow_;
  const GradientPaths gradients_;
  std::set<std::string> data_, fromInputs_;
  std::map<std::pair<size_t, size_t>, Role> roles_; ///< that the node alone does not tell
};

} // namespace

std::map<std::string, TensorUses> findUses(const Graph& graph) { return UseFinder(graph).run(); }

} // namespace titan::frontend
