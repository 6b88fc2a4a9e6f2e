// LSTM, GRU and RNN: one titan.recurrence for each direction, behind a product of the inputs of all
// steps. Exporters of PyTorch reorder the gates of each parameter before the node reads them; where
// that is all that happened to a weight, the op takes the parameter as it is and the order as an
// attribute.
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/name/Recurrent.h"
#include "frontend/onnx/name/Scopes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <algorithm>

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

//===----------------------------------------------------------------------===//
// Where the elements of a weight come from
//===----------------------------------------------------------------------===//

/// `count` elements of `source`, from `first` on, in row-major order.
struct Run {
  Value source;
  int64_t first, count;
};

void addRuns(Value value, int64_t first, int64_t count, SmallVectorImpl<Run>& runs);

/// Is dimension `dim` the first that is not 1? What is cut or joined along it are runs.
bool isOutermost(ArrayRef<int64_t> shape, int64_t dim) {
  return llvm::all_of(shape.take_front(dim), [](int64_t extent) { return extent == 1; });
}

bool addRunsOfConcat(ConcatOp op, int64_t first, int64_t count, SmallVectorImpl<Run>& runs) {
  if (!isOutermost(op.getType().getShape(), op.getDim()))
    return false;
  for (Value part : op.getInputs()) {
    const int64_t elements = tensorType(part).getNumElements(), begin = std::max<int64_t>(first, 0),
                  end = std::min(first + count, elements);
    if (begin < end)
      addRuns(part, begin, end - begin, runs);
    first -= elements;
  }
  return true;
}

bool addRunsOfSlice(SliceOp op, int64_t first, int64_t count, SmallVectorImpl<Run>& runs) {
  ArrayRef<int64_t> from = tensorType(op.getOperand()).getShape(), to = op.getType().getShape();
  int64_t outermost = 0;
  while (outermost < static_cast<int64_t>(to.size()) && to[outermost] == 1)
    ++outermost;
  for (int64_t d = outermost + 1; d < static_cast<int64_t>(to.size()); ++d)
    if (from[d] != to[d])
      return false;
  if (llvm::any_of(op.getStrides(), [](int64_t stride) { return stride != 1; }))
    return false;
  addRuns(op.getOperand(), first + linearize(op.getOffsets(), computeStrides(from)), count, runs);
  return true;
}

/// `count` elements of `value`, from `first` on, followed through what only cuts and joins.
void addRuns(Value value, int64_t first, int64_t count, SmallVectorImpl<Run>& runs) {
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    return addRuns(reshape.getOperand(), first, count, runs);
  if (auto concat = value.getDefiningOp<ConcatOp>())
    if (addRunsOfConcat(concat, first, count, runs))
      return;
  if (auto slice = value.getDefiningOp<SliceOp>())
    if (addRunsOfSlice(slice, first, count, runs))
      return;
  runs.push_back({value, first, count});
}

/// A tensor of the row blocks [blocks * H, ...]: block i of an operand of the node is block
/// order[i] of `value`.
struct Blocks {
  Value value;
  SmallVector<int64_t> order;
};

/// The parameter that a weight of `blocks` row blocks and `shape` is made of: the elements of
/// `operand` from `first` on. Nothing: it is made of something else.
std::optional<Blocks> parameterOf(Value operand, int64_t first, const Shape& shape,
                                  int64_t blocks) {
  const int64_t elements = elementCount(shape), block = elements / blocks;
  SmallVector<Run> runs;
  addRuns(operand, first, elements, runs);
  Blocks found = {runs.front().source, {}};
  if (Conversion::shapeOf(found.value) != shape)
    return std::nullopt;
  for (const Run& run : runs) {
    if (run.source != found.value || run.first % block != 0 || run.count % block != 0)
      return std::nullopt;
    for (int64_t i = 0; i < run.count / block; ++i)
      found.order.push_back(run.first / block + i);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// What the three ops differ in.
struct Kind {
  RecurrentCell cell;
  std::vector<std::string> activations; ///< the only ones that the cell computes
  int64_t gates() const { return ir::gatesOf(cell); }
};

class Recurrence {
public:
  Recurrence(Conversion& conversion, Kind kind) : c(conversion), kind(std::move(kind)) {}

  Status convert() {
    TITAN_TRY(checkForm());
    TITAN_TRY(readExtents());
    TITAN_TRY(checkLengths());
    std::vector<Value> results, cells;
    for (int64_t d = 0; d < directions; ++d) {
      auto op = TITAN_TRY(convert(d));
      results.push_back(op.getResult());
      if (kind.cell == RecurrentCell::Lstm)
        cells.push_back(op.getKept().back());
    }
    TITAN_TRY(give(0, allSteps(results)));
    TITAN_TRY(give(1, lastSteps(results)));
    return cells.empty() ? Status() : give(2, lastSteps(cells));
  }

private:
  bool isReverse(int64_t direction) const {
    return direction == 1 || c.node.text("direction", "forward") == "reverse";
  }

  /// X [T, B, I] (layout = 1: [B, T, I]), W [D, G H, I] and R [D, G H, H].
  Status readExtents() {
    x = TITAN_TRY(c.operand(0));
    Value w = TITAN_TRY(c.operand(1)), r = TITAN_TRY(c.operand(2));
    const std::string direction = c.node.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return c.error("direction = '{}'", printable(direction));
    directions = direction == "bidirectional" ? 2 : 1;
    isBatchFirst = c.node.integer("layout", 0) == 1;
    if (c.rankOf(x) != 3 || c.rankOf(w) != 3 || c.rankOf(r) != 3)
      return c.error("X {}, W {} and R {} are of rank 3", toString(c.shapeOf(x)),
                     toString(c.shapeOf(w)), toString(c.shapeOf(r)));
    if (isBatchFirst)
      x = c.transposed(x, {1, 0, 2});
    element = tensorType(x).getElementType();
    if (!c.isFloat(x) || tensorType(w).getElementType() != element ||
        tensorType(r).getElementType() != element)
      return c.error("operands must be floating and of one type");
    steps = c.shapeOf(x)[0];
    batch = c.shapeOf(x)[1];
    inputs = c.shapeOf(x)[2];
    width = c.shapeOf(r)[2];
    const int64_t rows = kind.gates() * width, hidden = c.node.integer("hidden_size", width);
    if (hidden != width || c.shapeOf(w) != Shape{directions, rows, inputs} ||
        c.shapeOf(r) != Shape{directions, rows, width})
      return c.error("W {} and R {} do not fit X {} in {} direction{}, with hidden_size = {}",
                     toString(c.shapeOf(w)), toString(c.shapeOf(r)), toString(c.shapeOf(x)),
                     directions, directions == 1 ? "" : "s", hidden);
    return {};
  }

  /// What a cell of titan does not compute is refused.
  Status checkForm() {
    if (c.has(7))
      return c.error("peepholes (operand P) are not supported");
    // Exporters write the cell without them, on the first rows of each gate.
    for (const FxOperand& operand : scopeOf(c.node).operands)
      if (operand.mangled.find("_weight_hr_l") != std::string::npos)
        return c.error("a projection of the output (proj_size) is not supported: '{}' is not in "
                       "the file",
                       printable(operand.mangled));
    if (c.node.find("clip"))
      return c.error("clip = {} is not supported", c.node.real("clip", 0));
    if (c.node.integer("input_forget", 0) != 0)
      return c.error("input_forget = 1 is not supported");
    if (const ::onnx::AttributeProto* given = c.node.find("activations"))
      for (int i = 0; i < given->strings_size(); ++i)
        if (!StringRef(given->strings(i))
                 .equals_insensitive(kind.activations[i % kind.activations.size()]))
          return c.error("activation '{}' is not supported: only {} {}",
                         printable(given->strings(i)), fmt::join(kind.activations, ", "),
                         kind.activations.size() == 1 ? "is" : "are");
    return {};
  }

  /// Every sample has all steps.
  Status checkLengths() {
    if (!c.has(4))
      return {};
    const std::vector<int64_t> lengths = TITAN_TRY(c.list(4, "sequence_lens"));
    if (llvm::any_of(lengths, [&](int64_t length) { return length != steps; }))
      return c.error("sequences of different lengths are not supported: sequence_lens has "
                     "others than {}",
                     steps);
    return {};
  }

  Result<RecurrenceOp> convert(int64_t direction) {
    const int64_t rows = kind.gates() * width;
    const auto blocks = [&](size_t operand, const Shape& shape, int64_t first) -> Result<Blocks> {
      Value value = TITAN_TRY(c.operand(operand));
      if (auto parameter = parameterOf(value, first, shape, kind.gates()))
        return *parameter;
      // As the file has it.
      Value flat = c.reshaped(value, {tensorType(value).getNumElements()});
      Value part = c.reshaped(c.run(flat, 0, first, elementCount(shape)), shape);
      return Blocks{part, llvm::to_vector(llvm::seq<int64_t>(0, kind.gates()))};
    };
    std::vector<Blocks> weights;
    weights.push_back(TITAN_TRY(blocks(1, {rows, inputs}, direction * rows * inputs)));
    weights.push_back(TITAN_TRY(blocks(2, {rows, width}, direction * rows * width)));
    if (c.has(3)) {
      Value bias = TITAN_TRY(c.operand(3));
      if (c.shapeOf(bias) != Shape{directions, 2 * rows} ||
          tensorType(bias).getElementType() != element)
        return c.error("B {} is not {} of {}", toString(c.shapeOf(bias)),
                       toString(Shape{directions, 2 * rows}), printed(element));
      for (int64_t part = 0; part < 2; ++part)
        weights.push_back(TITAN_TRY(blocks(3, {rows}, (2 * direction + part) * rows)));
    }
    const SmallVector<int64_t> order = inOneOrder(weights);

    Value projected = TITAN_TRY(c.contract(x, weights[0].value, {}, {}, 2, 1));
    Type wide = accumulationType(element);
    Value bias;
    if (weights.size() > 2) {
      projected = c.add(projected, c.broadcast(weights[2].value, {steps, batch, rows}, {2}));
      bias = c.convert(weights[3].value, wide);
    }
    SmallVector<Value> initial;
    for (unsigned state = 0; state < statesOf(kind.cell); ++state)
      initial.push_back(c.convert(TITAN_TRY(firstState(5 + state, direction)), wide));
    return c.create<RecurrenceOp>(kind.cell, projected, weights[1].value, ValueRange(initial), bias,
                                  ArrayRef<int64_t>(order), isReverse(direction));
  }

  /// Where each gate of the cell lies. Weights that do not agree are put in the order of ONNX.
  SmallVector<int64_t> inOneOrder(std::vector<Blocks>& weights) {
    const bool agree = llvm::all_of(
        weights, [&](const Blocks& each) { return each.order == weights.front().order; });
    if (!agree)
      for (Blocks& each : weights) {
        std::vector<Value> parts;
        for (int64_t block : each.order)
          parts.push_back(c.run(each.value, 0, block * width, width));
        each.value = c.create<ConcatOp>(ValueRange(parts), int64_t(0));
      }
    SmallVector<int64_t> order;
    for (int64_t block : frontend::gatesOf(c.node)) // a cell of titan has PyTorch's order
      order.push_back(agree ? weights.front().order[block] : block);
    return order;
  }

  /// [B, H] of the states [D, B, H] (layout = 1: [B, D, H]); zeros where the node has none.
  Result<Value> firstState(size_t operand, int64_t direction) {
    auto type = RankedTensorType::get({batch, width}, element);
    const HostTensor* known = c.has(operand) ? c.constant(operand) : nullptr;
    if (!c.has(operand) || (known && llvm::all_of(known->reals, [](double x) { return x == 0; })))
      return c.splat(type, 0);
    Value states = TITAN_TRY(c.operand(operand));
    const Shape wanted =
        isBatchFirst ? Shape{batch, directions, width} : Shape{directions, batch, width};
    if (c.shapeOf(states) != wanted || tensorType(states).getElementType() != element)
      return c.error("first states of shape {} are not {}", toString(c.shapeOf(states)),
                     toString(wanted));
    return c.reshaped(c.run(states, isBatchFirst ? 1 : 0, direction, 1), {batch, width});
  }

  /// [T, D, B, H] of the states [T, B, H] of each direction (layout = 1: [B, T, D, H]). Joined as
  /// their readers mostly want them, [T, B, D H].
  Result<Value> allSteps(const std::vector<Value>& states) {
    std::vector<Value> parts;
    for (Value state : states)
      parts.push_back(c.convert(state, element));
    Value all = c.reshaped(TITAN_TRY(c.joined(parts, 2)), {steps, batch, directions, width});
    if (isBatchFirst)
      return c.transposed(all, {1, 0, 2, 3});
    // One direction needs no transposition.
    return directions == 1 ? c.reshaped(all, {steps, 1, batch, width})
                           : c.transposed(all, {0, 2, 1, 3});
  }

  /// [D, B, H] of the last step of each direction (layout = 1: [B, D, H]).
  Result<Value> lastSteps(const std::vector<Value>& states) {
    std::vector<Value> parts;
    for (auto [d, state] : llvm::enumerate(states)) {
      const int64_t last = isReverse(static_cast<int64_t>(d)) ? 0 : steps - 1;
      parts.push_back(c.convert(c.run(state, 0, last, 1), element));
    }
    Value all = TITAN_TRY(c.joined(parts, 0));
    return isBatchFirst ? c.transposed(all, {1, 0, 2}) : all;
  }

  Status give(size_t output, Result<Value> value) {
    if (c.wants(output))
      c.results[output] = TITAN_TRY(std::move(value));
    return {};
  }

  static std::string printed(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }

  Conversion& c;
  Kind kind;
  Value x; ///< [T, B, I]
  Type element;
  int64_t directions = 1, steps = 0, batch = 0, inputs = 0, width = 0;
  bool isBatchFirst = false;
};

Status lstm(Conversion& c) {
  return Recurrence(c, {RecurrentCell::Lstm, {"Sigmoid", "Tanh", "Tanh"}}).convert();
}

Status gru(Conversion& c) {
  const bool resetsAfter = c.node.integer("linear_before_reset", 0) != 0;
  return Recurrence(c, {resetsAfter ? RecurrentCell::Gru : RecurrentCell::GruResetBefore,
                        {"Sigmoid", "Tanh"}})
      .convert();
}

Status rnn(Conversion& c) {
  const ::onnx::AttributeProto* given = c.node.find("activations");
  const bool isRelu =
      given && given->strings_size() > 0 && StringRef(given->strings(0)).equals_insensitive("Relu");
  return Recurrence(
             c, {isRelu ? RecurrentCell::Relu : RecurrentCell::Tanh, {isRelu ? "Relu" : "Tanh"}})
      .convert();
}

} // namespace

ArrayRef<ConverterEntry> recurrenceConverters() {
  static const char* notes = "sequences of one length; the usual activations; no clip";
  static const ConverterEntry table[] = {
      {"LSTM", 7, lstm, "sequences of one length; the usual activations; no clip, no peepholes"},
      {"GRU", 7, gru, notes},
      {"RNN", 7, rnn, notes},
  };
  return table;
}

} // namespace titan::frontend
