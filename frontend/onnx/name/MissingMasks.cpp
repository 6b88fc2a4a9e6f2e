#include "frontend/onnx/name/MissingMasks.h"

#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/name/Dataflow.h"

#include <algorithm>
#include <limits>
#include <set>

namespace titan::frontend {

namespace {

constexpr NoteCause kTakenForMask = {
    "{} has no data and masks attention scores: it is taken for a causal mask",
    "{} tensors have no data and mask attention scores: they are taken for causal masks: {}"};

/// What an element of the mask means.
enum class Meaning {
  Attended, ///< not zero: attended to
  Masked,   ///< not zero: not attended to
  Added,    ///< added to the score
};

/// What became of the mask on the way to where it is used.
struct Form {
  bool truth = false;    ///< only zero or not zero counts
  bool boolean = false;  ///< of that element type
  bool inverted = false; ///< true where the mask is zero
};

class MaskReader {
public:
  explicit MaskReader(const Graph& graph) : graph_(graph), dataflow_(graph) {
    for (const Port& output : graph.outputs)
      outputs_.insert(output.name);
  }

  /// The one meaning that all uses of `mask` agree on.
  std::optional<Meaning> meaningOf(const std::string& mask) {
    bool boolean = graph_.initializers.at(mask).dtype == DType::Bool;
    std::vector<std::pair<std::string, Form>> open = {{mask, {boolean, boolean, false}}};
    std::set<std::string> seen = {mask};
    std::set<Meaning> meanings;
    while (!open.empty()) {
      auto [value, form] = open.back();
      open.pop_back();
      const std::vector<Read>& reads = dataflow_.readsOf(value);
      if (outputs_.contains(value) || reads.empty())
        return std::nullopt;
      for (const Read& read : reads) {
        const Node& node = graph_.nodes[read.node];
        if (node.opType == "Shape")
          continue;
        if (std::optional<Meaning> meaning = meaningAt(node, value, form))
          meanings.insert(*meaning);
        else if (std::optional<Form> next = formAfter(node, value, form);
                 next && seen.insert(node.outputs[0]).second)
          open.emplace_back(node.outputs[0], *next);
        else
          return std::nullopt;
      }
    }
    return meanings.size() == 1 ? std::optional(*meanings.begin()) : std::nullopt;
  }

private:
  static bool movesOnly(const std::string& op) {
    static const std::set<std::string> ops = {"Slice",   "Cast",   "CastLike", "Unsqueeze",
                                              "Squeeze", "Expand", "Identity", "Reshape"};
    return ops.contains(op);
  }

  /// Ops between a masked score and its softmax.
  static bool keepsScores(const std::string& op) {
    static const std::set<std::string> ops = {"Add", "Sub", "Mul",  "Div",       "Where",
                                              "Max", "Min", "Clip", "ReduceMax", "Transpose"};
    return movesOnly(op) || ops.contains(op);
  }

  /// What `node`, which reads `value`, does with the mask; nothing: no use that ends it.
  std::optional<Meaning> meaningAt(const Node& node, const std::string& value, Form form) {
    Meaning truth = form.inverted ? Meaning::Masked : Meaning::Attended;
    if (node.opType == "Where" && node.inputs.size() == 3 && node.inputs[0] == value) {
      bool whenTrue = isMasking(node.inputs[1]);
      if (whenTrue == isMasking(node.inputs[2]))
        return std::nullopt;
      return whenTrue != form.inverted ? Meaning::Masked : Meaning::Attended;
    }
    if (node.opType == "Add" && !form.truth && meetsSoftmax(node.outputs[0]))
      return Meaning::Added;
    // Attention adds what is no boolean.
    if (node.opType == "Attention" && node.inputs.size() > 3 && node.inputs[3] == value &&
        form.truth == form.boolean)
      return form.boolean ? truth : Meaning::Added;
    return std::nullopt;
  }

  /// The mask as `node` passes it on; nothing: `node` does something else with it.
  std::optional<Form> formAfter(const Node& node, const std::string& value, Form form) {
    if (node.outputs.empty() || node.inputs.empty())
      return std::nullopt;
    bool first = node.inputs[0] == value;
    if (node.opType == "Not")
      return Form{true, true, !form.inverted};
    if (node.opType == "Equal" && node.inputs.size() == 2) {
      std::optional<double> number = scalar(node.inputs[first ? 1 : 0]);
      if (!number || (*number != 0 && *number != 1))
        return std::nullopt;
      return Form{true, true, form.inverted != (*number == 0)};
    }
    if (!movesOnly(node.opType) || !first)
      return std::nullopt;
    if (node.opType == "Cast" || node.opType == "CastLike") {
      // A model's values are floats, where the file does not say.
      auto like = node.inputs.size() > 1 ? graph_.initializers.find(node.inputs[1])
                                         : graph_.initializers.end();
      form.boolean = node.opType == "Cast"
                         ? elementType(node.integer("to", 0)) == DType::Bool
                         : like != graph_.initializers.end() && like->second.dtype == DType::Bool;
      form.truth |= form.boolean;
    }
    return form;
  }

  /// Does each path from `value`, masked scores, go through steps of attention to a softmax?
  bool meetsSoftmax(const std::string& scores) {
    constexpr size_t kMostValues = 64;
    std::vector<std::string> open = {scores};
    std::set<std::string> seen = {scores};
    while (!open.empty()) {
      std::string value = open.back();
      open.pop_back();
      const std::vector<Read>& reads = dataflow_.readsOf(value);
      if (outputs_.contains(value) || reads.empty() || seen.size() > kMostValues)
        return false;
      for (const Read& read : reads) {
        const Node& node = graph_.nodes[read.node];
        bool isMask =
            node.opType == "Attention" && node.inputs.size() > 3 && node.inputs[3] == value;
        if (node.opType == "Shape" || node.opType == "Softmax" || isMask || isExponential(node))
          continue;
        if (!keepsScores(node.opType) || node.outputs.empty())
          return false;
        if (seen.insert(node.outputs[0]).second)
          open.push_back(node.outputs[0]);
      }
    }
    return true;
  }

  /// e^x that is divided by its sum: a softmax in the open.
  bool isExponential(const Node& node) {
    return node.opType == "Exp" && !node.outputs.empty() &&
           std::ranges::any_of(dataflow_.readsOf(node.outputs[0]), [&](const Read& read) {
             return graph_.nodes[read.node].opType == "ReduceSum";
           });
  }

  /// The one element of a constant, also behind casts.
  std::optional<double> scalar(std::string value) const {
    for (int steps = 0; steps < 8; ++steps) {
      auto tensor = graph_.initializers.find(value);
      if (tensor != graph_.initializers.end()) {
        if (elementCount(tensor->second.shape) != 1 || !tensor->second.missing.empty())
          return std::nullopt;
        Result<HostTensor> host = toHost(tensor->second);
        return host.ok() ? std::optional(host->real(0)) : std::nullopt;
      }
      const std::optional<size_t> node = dataflow_.producerOf(value);
      if (!node || !movesOnly(graph_.nodes[*node].opType))
        return std::nullopt;
      value = graph_.nodes[*node].inputs[0];
    }
    return std::nullopt;
  }

  bool isMasking(const std::string& value) const {
    std::optional<double> number = scalar(value);
    return number && *number <= -1e4;
  }

  const Graph& graph_;
  const Dataflow dataflow_;
  std::set<std::string> outputs_;
};

/// What the exporter says that tensors are: `p` for a parameter, `b` for a buffer, `c` for a tensor
/// that is neither.
class SourceKinds {
public:
  explicit SourceKinds(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes)
      for (const FxOperand& operand : scopeOf(node).operands)
        fx_.emplace(operand.mangled, operand.kind);
  }
  bool known() const { return graph_.signature.known() || !fx_.empty(); }
  std::optional<char> of(const Tensor& tensor) const {
    const std::string& name = tensor.copyOf.empty() ? tensor.name : tensor.copyOf;
    if (const SourceTensor* source = graph_.signature.byName(name))
      return source->parameter ? 'p' : 'b';
    auto fx = fx_.find(mangled(name));
    return fx == fx_.end() ? std::nullopt : std::optional(fx->second);
  }

private:
  const Graph& graph_;
  std::map<std::string, char> fx_;
};

bool isSquare(const Shape& shape) {
  size_t rank = shape.size();
  return rank >= 2 && shape[rank - 1] == shape[rank - 2] && shape[rank - 1] > 1 &&
         elementCount(shape) == shape[rank - 1] * shape[rank - 1] &&
         elementCount(shape) <= kLargestFolded;
}

void makeCausal(Tensor& tensor, Meaning meaning) {
  HostTensor mask = HostTensor::empty(tensor.dtype, tensor.shape);
  int64_t size = tensor.shape.back();
  for (int64_t i = 0; i < size * size; ++i) {
    bool attended = i % size <= i / size;
    double added = attended ? 0 : -std::numeric_limits<double>::infinity();
    bool set = attended == (meaning == Meaning::Attended);
    if (mask.isFloat())
      mask.push(meaning == Meaning::Added ? added : static_cast<double>(set));
    else
      mask.push(static_cast<int64_t>(set));
  }
  tensor.inlineBytes = std::make_shared<const std::string>(toBytes(mask));
  tensor.missing.clear();
  tensor.span.reset();
  tensor.assumed = true;
}

} // namespace

Status completeMasks(Graph& graph, const NameOverrides& overrides, bool fresh) {
  MaskReader reader(graph);
  SourceKinds kinds(graph);
  for (auto& [name, tensor] : graph.initializers) {
    auto entry = overrides.find(name);
    bool stated = entry != overrides.end() && entry->second.causalMask;
    if (stated && tensor.missing.empty())
      return Error::badInput("names file: '{}' has data: kind = \"causal_mask\" is for tensors "
                             "without, kind = \"constant\" keeps the data",
                             printable(name));
    if (tensor.missing.empty() || (!stated && (!fresh || !isSquare(tensor.shape))))
      continue;
    std::optional<Meaning> meaning = isSquare(tensor.shape) ? reader.meaningOf(name) : std::nullopt;
    if (meaning == Meaning::Added && !HostTensor::empty(tensor.dtype, {}).isFloat())
      meaning.reset();
    if (stated && !meaning)
      return Error::badInput("names file: '{}' {} is no causal mask: it is not one square matrix "
                             "that does nothing but mask attention scores",
                             printable(name), toString(tensor.shape));
    if (!meaning)
      continue;
    if (!stated) {
      std::optional<char> kind = kinds.of(tensor);
      bool decided = entry != overrides.end() && entry->second.kind;
      if (decided || kind == 'p' || (*meaning == Meaning::Added && kinds.known() && !kind))
        continue;
      if (*meaning == Meaning::Added && !kind) {
        tensor.perhapsMask = true;
        continue;
      }
    }
    makeCausal(tensor, *meaning);
    graph.notes.add(kTakenForMask, fmt::format("{} {}", inQuotes(name), toString(tensor.shape)));
  }
  return {};
}

} // namespace titan::frontend
