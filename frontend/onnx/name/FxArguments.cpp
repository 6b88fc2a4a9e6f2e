#include "frontend/onnx/name/FxArguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace titan::frontend {

namespace {

/// Positions of an ATen op's parameters among its arguments; -1: it has none.
struct Layout {
  std::string_view target; ///< what its name starts with
  Reading reading = Reading::AsIs;
  int weight = -1, bias = -1, mean = -1, variance = -1;
};

constexpr Layout kLayers[] = {
    {"aten.linear.", Reading::AsIs, 1, 2},
    {"aten.addmm.", Reading::AsIs, 2, 0},
    {"aten.embedding.", Reading::AsIs, 0},
    {"aten.conv", Reading::AsIs, 1, 2},
    {"aten.layer_norm.", Reading::AsIs, 2, 3},
    {"aten.native_layer_norm.", Reading::AsIs, 2, 3},
    {"aten.rms_norm.", Reading::AsIs, 2},
    {"aten._fused_rms_norm.", Reading::AsIs, 2},
    {"aten.group_norm.", Reading::Vector, 2, 3},
    {"aten.native_group_norm.", Reading::Vector, 1, 2},
    {"aten.instance_norm.", Reading::Vector, 1, 2, 3, 4},
    {"aten.batch_norm.", Reading::Vector, 1, 2, 3, 4},
    {"aten._native_batch_norm_legit", Reading::Vector, 1, 2, 3, 4},
    {"aten.prelu.", Reading::Vector, 1},
};

/// ATen ops that read all their operands as they are, and those that read the first one so.
constexpr std::string_view kPlain[] = {"add.",     "sub.",     "rsub.",  "mul.",    "div.",  "pow.",
                                       "maximum.", "minimum.", "where.", "matmul.", "mm.",   "bmm.",
                                       "mv.",      "dot.",     "cat.",   "concat.", "stack."};
constexpr std::string_view kOfFirst[] = {
    "t.",         "slice.", "select.", "permute.", "view.", "reshape.", "expand",   "gather.",
    "transpose.", "exp.",   "neg.",    "sigmoid.", "tanh.", "softmax.", "softplus."};

/// ATen ops that become one ONNX op of the same operands. What PyTorch calls `alpha` multiplies one
/// of them before.
struct Same {
  std::string_view target, opType;
  int scaled = -1;      ///< the position of the argument that `alpha` multiplies
  bool swapped = false; ///< the operands are in the opposite order
};
constexpr Same kSame[] = {
    {"add.", "Add", 1},  {"sub.", "Sub", 1},    {"rsub.", "Sub", 0, true}, {"mul.", "Mul"},
    {"div.", "Div"},     {"pow.", "Pow"},       {"maximum.", "Max"},       {"minimum.", "Min"},
    {"where.", "Where"}, {"matmul.", "MatMul"}, {"mm.", "MatMul"},
};

/// Ops whose value holds numbers of the program, and nothing of a parameter.
constexpr std::string_view kNumbers[] = {
    "arange",          "eye",           "full",          "full_like",
    "hann_window",     "lifted_tensor", "linspace",      "logspace",
    "new_full",        "new_ones",      "new_zeros",     "ones",
    "ones_like",       "zeros_like",    "scalar_tensor", "scalar_tensor_default",
    "lift_fresh_copy", "zeros"};

int positionOf(const Layout& layout, const Node& node, size_t k, size_t rank) {
  const Role role = roleOf(node, k, rank);
  if (role == Role::Statistic)
    return k == 3 ? layout.mean : layout.variance;
  // What a layer that was taken apart adds is its bias: a vector. Else it is the folded product.
  const bool isLinear = layout.target == "aten.linear." || layout.target == "aten.addmm.";
  if (isLinear && node.opType == "Add" && rank > 1)
    return -1;
  bool bias = role == Role::Bias || role == Role::NormBias || node.opType == "Add";
  return bias ? layout.bias : layout.weight;
}

/// Operand `k` of a node that is the fx op itself. False: the node is another one.
bool placeAlike(const Node& node, const Scope& scope, std::string_view op, size_t k,
                FxArgument& argument) {
  auto same = std::ranges::find_if(kSame, [&](const Same& entry) {
    return op.starts_with(entry.target) && node.opType == entry.opType;
  });
  if (same == std::end(kSame) || node.inputs.size() > 3)
    return false;
  const int position = static_cast<int>(same->swapped ? 1 - k : k);
  auto isElsewhere = [&](const FxOperand& operand) { return operand.position != position; };
  std::erase_if(argument.lifted, isElsewhere);
  std::erase_if(argument.values, isElsewhere);
  argument.reading = scope.scales && position == same->scaled ? Reading::Scaled : Reading::AsIs;
  argument.isSole = true;
  return true;
}

} // namespace

FxArgument argumentOf(const Node& node, const Scope& scope, size_t k, size_t rank) {
  std::string_view target = scope.target;
  FxArgument argument;
  argument.lifted = scope.operands;
  argument.values = scope.values;
  for (const Layout& layout : kLayers) {
    if (!target.starts_with(layout.target))
      continue;
    int position = positionOf(layout, node, k, rank);
    auto isElsewhere = [&](const FxOperand& operand) { return operand.position != position; };
    std::erase_if(argument.lifted, isElsewhere);
    std::erase_if(argument.values, isElsewhere);
    argument.reading = layout.reading;
    argument.isPlaced = true;
    // A norm of groups is written as one of instances, which has ones and zeros.
    if (node.opType == "InstanceNormalization" && target.find("group_norm.") != target.npos &&
        k > 0) {
      argument.lifted.clear();
      argument.values.clear();
    }
    argument.isNone =
        scope.readsFx() && position >= 0 && argument.lifted.empty() && argument.values.empty();
    return argument;
  }
  target.remove_prefix(target.starts_with("aten.") ? 5 : 0);
  if (placeAlike(node, scope, target, k, argument))
    return argument;
  // Of other ops, and where the op is not known, the name of a parameter tells weights from biases.
  auto isTarget = [&](std::string_view op) { return target.starts_with(op); };
  bool plain = target.empty() || std::ranges::any_of(kPlain, isTarget) ||
               (k == 0 && std::ranges::any_of(kOfFirst, isTarget));
  argument.reading = plain && !scope.scales ? Reading::AsIs : Reading::Other;
  if (target.empty() && argument.lifted.size() > 1) {
    Role role = roleOf(node, k, rank);
    bool bias = role == Role::Bias || role == Role::NormBias;
    std::erase_if(argument.lifted, [&](const FxOperand& operand) {
      return !operand.mangled.ends_with(bias ? "bias" : "weight");
    });
  }
  return argument;
}

bool isDetach(const Node& node) {
  return node.opType == "Identity" && scopeOf(node).target.starts_with("aten.detach.");
}

std::string_view opOfValue(std::string_view name) {
  size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == name.size() || name[end] != '_' || end == 0)
    return name;
  return name.substr(0, end);
}

bool namesNumbers(std::string_view name) {
  return std::ranges::find(kNumbers, opOfValue(name)) != std::end(kNumbers);
}

bool isLayer(std::string_view op) {
  const std::string target = fmt::format("aten.{}.", op);
  return std::ranges::any_of(
      kLayers, [&](const Layout& layout) { return target.starts_with(layout.target); });
}

} // namespace titan::frontend
