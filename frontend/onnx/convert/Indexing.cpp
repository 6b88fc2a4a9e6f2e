// Elements by index: rows of a table, picks along an axis, one-hot vectors. Known indices become
// slices and broadcasts where they are regular, so that nothing is looked up at run time.
#include "frontend/onnx/convert/Lookup.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

constexpr size_t kMostRuns = 16;

/// Known indices as runs of consecutive ones, each a slice; nothing where there are too many.
Result<std::optional<Value>> gatherRuns(Conversion& c, Value x, int64_t axis,
                                        const HostTensor& indices) {
  int64_t extent = c.shapeOf(x)[axis];
  std::vector<std::pair<int64_t, int64_t>> runs; // begin, count
  for (int64_t index : listOf(indices)) {
    if (index < -extent || index >= extent)
      return c.error("index {} is outside of {}", index, extent);
    index = index < 0 ? index + extent : index;
    if (!runs.empty() && index == runs.back().first + runs.back().second)
      ++runs.back().second;
    else
      runs.emplace_back(index, 1);
  }
  if (runs.empty())
    return c.error("takes nothing");
  if (runs.size() > kMostRuns)
    return std::optional<Value>();
  SmallVector<Value> pieces;
  for (auto [begin, count] : runs)
    pieces.push_back(c.run(x, axis, begin, count));
  return std::optional(pieces.size() == 1 ? pieces.front()
                                          : Value(c.create<ConcatOp>(ValueRange(pieces), axis)));
}

/// Can `indices` hold a negative number, which counts from the end? Inputs of PyTorch's models
/// cannot: lookups there refuse them, as the job does before it trains.
bool mayBeNegative(Conversion& c, Value indices) {
  while (Operation* op = indices.getDefiningOp()) {
    if (isa<IotaOp>(op))
      return false;
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
      return !elements || llvm::any_of(elements.getValues<APInt>(),
                                       [](const APInt& value) { return value.isNegative(); });
    }
    if (!isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, ReverseOp, ConvertOp>(op))
      return true;
    indices = op->getOperand(0);
  }
  return !c.fromPyTorch;
}

} // namespace

Value countedFromFront(Conversion& c, Value indices, int64_t extent) {
  if (!mayBeNegative(c, indices))
    return indices;
  Value negative = c.compare(ComparePredicate::LT, indices, c.splatLike(indices, 0));
  return c.select(negative, c.shift(indices, static_cast<double>(extent)), indices);
}

namespace {

/// What a lookup makes of `indices` of a dimension of `extent` elements: those of the data are
/// refused where they are out of range, others are the nearest place.
Value placesWithin(Conversion& c, Value indices, int64_t extent) {
  auto type = RankedTensorType::get({extent}, tensorType(indices).getElementType());
  Value places = c.create<IotaOp>(type, c.builder.getI64IntegerAttr(0));
  return c.create<EmbeddingOp>(places, indices);
}

} // namespace

Value tuplePlaces(Conversion& c, Value indices, std::span<const int64_t> extents) {
  const Shape tuples = c.shapeOf(indices), lead(tuples.begin(), tuples.end() - 1);
  const int64_t width = tuples.back();
  Value place;
  for (int64_t k = 0; k < width; ++k) {
    Value component = c.reshape(c.run(indices, static_cast<int64_t>(lead.size()), k, 1), lead);
    component = countedFromFront(c, component, extents[k]);
    // One component is the place, which is looked up itself; known ones are checked.
    if (width > 1 && !indices.getDefiningOp<ConstantOp>())
      component = placesWithin(c, component, extents[k]);
    place = place ? c.add(c.scale(place, static_cast<double>(extents[k])), component) : component;
  }
  return place;
}

Status checkTuples(Conversion& c, const HostTensor& indices, std::span<const int64_t> extents) {
  const auto width = static_cast<int64_t>(extents.size());
  for (int64_t i = 0; i < indices.size(); ++i)
    if (int64_t index = indices.integer(i), extent = extents[i % width];
        index < -extent || index >= extent)
      return c.error("index {} is outside of {}", index, extent);
  return {};
}

namespace {

/// Along axis 0 rows of a table; another axis is brought to the front and its rows back.
Value gatherRows(Conversion& c, Value x, int64_t axis, Value indices) {
  indices = countedFromFront(c, indices, c.shapeOf(x)[axis]);
  if (axis == 0) {
    auto lookup = c.create<EmbeddingOp>(x, indices);
    if (std::optional<int64_t> padding = c.paddingOf(x))
      lookup.setPadding(*padding);
    return lookup;
  }
  int64_t rank = c.rankOf(x), extra = c.rankOf(indices);
  SmallVector<int64_t> front{axis}, back;
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis)
      front.push_back(d);
  Value rows = c.create<EmbeddingOp>(c.transpose(x, front), indices);
  for (int64_t d = 0; d < axis; ++d)
    back.push_back(extra + d);
  llvm::append_range(back, llvm::seq<int64_t>(0, extra));
  for (int64_t d = axis; d < rank - 1; ++d)
    back.push_back(extra + d);
  return c.transpose(rows, back);
}

/// Is `value` `step` times the coordinate along its first dimension?
bool countsSamples(Value value, int64_t step) {
  if (auto repeated = value.getDefiningOp<BroadcastOp>())
    return !repeated.getDims().empty() && repeated.getDims().front() == 0 &&
           countsSamples(repeated.getOperand(), step);
  if (auto shaped = value.getDefiningOp<ReshapeOp>())
    return tensorType(shaped.getOperand()).getShape().take_front() ==
               tensorType(value).getShape().take_front() &&
           countsSamples(shaped.getOperand(), step);
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : nullptr;
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (!elements || shape.empty())
    return false;
  const int64_t slice = elements.getNumElements() / shape.front();
  return llvm::all_of(llvm::enumerate(elements.getValues<APInt>()), [&](const auto& element) {
    return element.value().getSExtValue() == static_cast<int64_t>(element.index()) / slice * step;
  });
}

/// Rows of samples that were joined, each looked up in its own: [batch * rows, ...] at
/// sample * rows + place, as the legacy exporter writes x[arange(batch), places]. Null: it is
/// something else.
Value gatherOfSamples(Conversion& c, Value x, Value indices) {
  auto joined = x.getDefiningOp<ReshapeOp>();
  auto sum = indices.getDefiningOp<AddOp>();
  if (!joined || !sum || !c.fromPyTorch)
    return {};
  const Shape samples = c.shapeOf(joined.getOperand()), flat = c.shapeOf(x),
              lead = c.shapeOf(indices);
  if (samples.size() < 2 || flat.front() != samples[0] * samples[1] || lead.front() != samples[0])
    return {};
  const bool isFirst = countsSamples(sum.getOperand(0), samples[1]);
  if (!isFirst && !countsSamples(sum.getOperand(1), samples[1]))
    return {};
  Shape apart{samples[0], samples[1]};
  apart.insert(apart.end(), flat.begin() + 1, flat.end());
  Value places =
      c.reshaped(sum.getOperand(isFirst ? 1 : 0), {samples[0], elementCount(lead) / samples[0]});
  Value found = c.create<GatherOp>(c.reshaped(joined.getOperand(), apart),
                                   countedFromFront(c, places, samples[1]), 1);
  Shape result = lead;
  result.insert(result.end(), flat.begin() + 1, flat.end());
  return c.reshaped(found, result);
}

/// The first of equal slices of `indices` along its leading dimension: positions that are looked up
/// for every sample. The indices themselves where the slices differ.
HostTensor withoutRepeats(const HostTensor& indices) {
  if (indices.shape.size() < 2 || indices.shape[0] < 2)
    return indices;
  int64_t slice = indices.size() / indices.shape[0];
  for (int64_t i = slice; i < indices.size(); ++i)
    if (indices.integer(i) != indices.integer(i - slice))
      return indices;
  HostTensor first =
      HostTensor::empty(indices.dtype, Shape(indices.shape.begin() + 1, indices.shape.end()));
  for (int64_t i = 0; i < slice; ++i)
    first.pushFrom(indices, i);
  return first;
}

Status gather(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  int64_t axis = TITAN_TRY(c.axis(0, c.rankOf(x)));
  if (const HostTensor* known = c.constant(1); known && !known->isFloat()) {
    HostTensor indices = withoutRepeats(*known);
    if (std::optional<Value> joined = TITAN_TRY(gatherRuns(c, x, axis, indices))) {
      auto shapeFor = [&, from = c.shapeOf(x)](const HostTensor& tensor) {
        Shape shape(from.begin(), from.begin() + axis);
        shape.insert(shape.end(), tensor.shape.begin(), tensor.shape.end());
        shape.insert(shape.end(), from.begin() + axis + 1, from.end());
        return shape;
      };
      Value found = c.reshaped(*joined, shapeFor(indices));
      if (indices.shape == known->shape)
        return c.give(found);
      auto dims = llvm::to_vector(llvm::seq<int64_t>(0, c.rankOf(found)));
      for (int64_t& d : dims)
        d += d >= axis;
      return c.give(c.broadcast(found, shapeFor(*known), dims));
    }
  }
  Value indices = TITAN_TRY(c.integerOperand(1));
  if (Value found = axis == 0 ? gatherOfSamples(c, x, indices) : Value())
    return c.give(found);
  return c.give(gatherRows(c, x, axis, indices));
}

//===----------------------------------------------------------------------===//
// GatherND
//===----------------------------------------------------------------------===//

/// How one component of known index tuples runs: start + step * (coordinate along `dim`); dim < 0:
/// the same everywhere.
struct Run {
  int64_t start = 0, step = 0, dim = -1;
};

/// Component `k` of the tuples in `indices` [I..., K] as a run, or nothing.
std::optional<Run> runOf(const HostTensor& indices, int64_t k) {
  int64_t rank = static_cast<int64_t>(indices.shape.size()) - 1, width = indices.shape.back();
  std::vector<int64_t> strides(rank, width);
  for (int64_t d = rank - 1; d-- > 0;)
    strides[d] = strides[d + 1] * indices.shape[d + 1];
  Run run;
  run.start = indices.integer(k);
  for (int64_t d = 0; d < rank; ++d) {
    if (indices.shape[d] < 2)
      continue;
    int64_t step = indices.integer(strides[d] + k) - run.start;
    if (step == 0)
      continue;
    if (run.dim >= 0 || step < 0)
      return std::nullopt;
    run.dim = d;
    run.step = step;
  }
  for (int64_t i = 0, count = indices.size() / width; i < count; ++i) {
    int64_t coordinate = run.dim < 0 ? 0 : i * width / strides[run.dim] % indices.shape[run.dim];
    if (indices.integer(i * width + k) != run.start + run.step * coordinate)
      return std::nullopt;
  }
  return run;
}

/// Tuples that walk along dimensions: a slice of the data, each of its dimensions put where the
/// tuples have it, the others repeated. Nothing where they do not.
Result<std::optional<Value>> gatherRegular(Conversion& c, Value x, const HostTensor& indices) {
  int64_t width = indices.shape.back(), lead = static_cast<int64_t>(indices.shape.size()) - 1;
  Shape from = c.shapeOf(x);
  SmallVector<int64_t> shape(from.begin(), from.end()), offsets(from.size(), 0);
  SmallVector<int64_t> strides(from.size(), 1), kept, dims;
  Shape result(indices.shape.begin(), indices.shape.end() - 1);
  result.insert(result.end(), from.begin() + width, from.end());
  std::vector<std::pair<int64_t, int64_t>> order; // result dimension, data dimension
  for (int64_t k = 0; k < width; ++k) {
    std::optional<Run> run = runOf(indices, k);
    if (!run)
      return std::optional<Value>();
    int64_t count = run->dim < 0 ? 1 : indices.shape[run->dim];
    int64_t last = run->start + run->step * (count - 1);
    if (last < 0) { // all count from the end
      run->start += from[k];
      last += from[k];
    }
    if (run->start < 0 || last >= from[k])
      return std::optional<Value>();
    shape[k] = count;
    offsets[k] = run->start;
    strides[k] = std::max<int64_t>(run->step, 1);
    if (run->dim < 0)
      continue;
    for (auto [dim, other] : order)
      if (dim == run->dim)
        return std::optional<Value>(); // a diagonal
    order.emplace_back(run->dim, k);
  }
  for (size_t d = width; d < from.size(); ++d)
    order.emplace_back(lead + static_cast<int64_t>(d) - width, static_cast<int64_t>(d));
  Value piece = c.slice(x, shape, offsets, strides);
  // Drop the dimensions that no coordinate walks along, then order the others as the result does.
  for (auto [dim, data] : order)
    kept.push_back(shape[data]);
  piece = c.reshaped(piece, kept);
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(order.size())));
  llvm::sort(permutation, [&](int64_t a, int64_t b) { return order[a].first < order[b].first; });
  for (int64_t position : permutation)
    dims.push_back(order[position].first);
  piece = c.transposed(piece, permutation);
  return std::optional(c.shapeOf(piece) == result ? piece : c.broadcast(piece, result, dims));
}

/// Index tuples that the model computes: elements of the data, in which the dimensions that a tuple
/// is of are one. Leading ones that tuples and data share come before it.
Result<Value> gatherPlaces(Conversion& c, Value x, Value indices, int64_t shared) {
  const Shape tuples = c.shapeOf(indices), from = c.shapeOf(x);
  const int64_t width = tuples.back();
  const auto extents = std::span(from).subspan(shared, width);
  const Shape batch(from.begin(), from.begin() + shared),
      rest(from.begin() + shared + width, from.end()),
      lead(tuples.begin() + shared, tuples.end() - 1);
  const auto joined = [&](const Shape& middle) {
    Shape shape = batch;
    llvm::append_range(shape, middle);
    llvm::append_range(shape, rest);
    return shape;
  };
  Value table = c.reshaped(x, joined({elementCount(extents)}));
  Value places = tuplePlaces(c, indices, extents);
  if (shared == 0)
    return Value(c.create<EmbeddingOp>(table, places));
  Shape flat = batch;
  flat.push_back(elementCount(lead));
  Value found = c.create<GatherOp>(table, c.reshaped(places, flat), shared);
  return c.reshaped(found, joined(lead));
}

/// Is `component`, of tuples [I..., 1], the coordinate of its tuple along `dim`?
bool isPosition(Value component, int64_t dim) {
  auto constant = component.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : nullptr;
  if (!elements)
    return false;
  ArrayRef<int64_t> shape = tensorType(component).getShape();
  int64_t stride = 1;
  for (int64_t extent : shape.drop_front(dim + 1))
    stride *= extent;
  return llvm::all_of(llvm::enumerate(elements.getValues<APInt>()), [&](const auto& element) {
    const auto place = static_cast<int64_t>(element.index()) / stride % shape[dim];
    return element.value().getSExtValue() == place;
  });
}

/// Tuples whose leading components are their own coordinates in dimensions that the data has too,
/// as x[arange(batch), places]: the other components choose in what these dimensions share.
struct SharedTuples {
  Value rest;
  int64_t shared = 0;
};

SharedTuples withoutPositions(Conversion& c, Value tuples, const Shape& from) {
  auto joined = tuples.getDefiningOp<ConcatOp>();
  const int64_t last = c.rankOf(tuples) - 1;
  if (!joined || static_cast<int64_t>(joined.getDim()) != last)
    return {tuples};
  ValueRange components = joined.getOperands();
  const Shape shape = c.shapeOf(tuples);
  int64_t shared = 0;
  while (shared < last && shared + 1 < static_cast<int64_t>(components.size()) &&
         c.shapeOf(components[shared]).back() == 1 && shape[shared] == from[shared] &&
         isPosition(components[shared], shared))
    ++shared;
  if (shared == 0)
    return {tuples};
  ValueRange others = components.drop_front(shared);
  return {others.size() == 1 ? others.front() : Value(c.create<ConcatOp>(others, last)), shared};
}

/// Do `tuples` of the last dimension choose in data of `from`, behind `shared` dimensions?
bool tuplesFit(const Shape& tuples, const Shape& from, int64_t shared) {
  const auto rank = static_cast<int64_t>(from.size());
  if (shared < 0 || static_cast<int64_t>(tuples.size()) <= shared || elementCount(tuples) == 0)
    return false;
  return tuples.back() <= rank - shared &&
         std::equal(from.begin(), from.begin() + shared, tuples.begin());
}

Status gatherND(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  const int64_t shared = c.node.integer("batch_dims", 0);
  const HostTensor* known = c.constant(1);
  Value indices = known && !known->isFloat() ? Value() : TITAN_TRY(c.integerOperand(1));
  const Shape tuples = known ? known->shape : c.shapeOf(indices), from = c.shapeOf(x);
  if (!tuplesFit(tuples, from, shared))
    return c.error("indices of {} for data of {} with batch_dims = {}", toString(tuples),
                   toString(from), shared);
  if (known) {
    TITAN_TRY(checkTuples(c, *known, std::span(from).subspan(shared, tuples.back())));
    if (shared == 0)
      if (std::optional<Value> piece = TITAN_TRY(gatherRegular(c, x, *known)))
        return c.give(*piece);
  }
  indices = TITAN_TRY(c.integerOperand(1));
  if (shared > 0)
    return c.give(TITAN_TRY(gatherPlaces(c, x, indices, shared)));
  const SharedTuples apart = withoutPositions(c, indices, from);
  return c.give(TITAN_TRY(gatherPlaces(c, x, apart.rest, apart.shared)));
}

//===----------------------------------------------------------------------===//
// GatherElements, OneHot
//===----------------------------------------------------------------------===//

/// result[.., j, ..] = data[.., indices[.., j, ..], ..] along `axis`. One pick of log-probabilities
/// per row is a loss.
Status gatherElements(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0)), indices = TITAN_TRY(c.integerOperand(1));
  int64_t rank = c.rankOf(x), axis = TITAN_TRY(c.axis(0, rank));
  Shape from = c.shapeOf(x), shape = c.shapeOf(indices);
  if (shape.size() != from.size())
    return c.error("indices of {} for data of {}", toString(shape), toString(from));
  Shape part = shape;
  part[axis] = from[axis];
  for (int64_t d = 0; d < rank; ++d)
    if (part[d] > from[d])
      return c.error("indices of {} for data of {}", toString(shape), toString(from));
  if (const HostTensor* known = c.constant(1))
    TITAN_TRY(checkTuples(c, *known, std::span(&from[axis], 1)));
  x = c.slice(x, part, SmallVector<int64_t>(rank, 0), SmallVector<int64_t>(rank, 1));
  indices = countedFromFront(c, indices, from[axis]);

  auto logs = x.getDefiningOp<LogSoftmaxOp>();
  if (logs && shape[axis] == 1 && axis == rank - 1 && logs.getDim() == uint64_t(axis)) {
    Value loss = c.pickLoss(logs.getOperand(), c.reshape(indices, ArrayRef(shape).drop_back()));
    Value picked = c.convert(c.neg(loss), tensorType(x).getElementType());
    return c.give(c.reshape(picked, shape));
  }
  return c.give(c.create<GatherOp>(x, indices, axis));
}

/// `values` = [off, on]; indices outside of the depth give no `on`.
Status oneHot(Conversion& c) {
  Value indices = TITAN_TRY(c.operand(0)), values = TITAN_TRY(c.operand(2));
  constexpr double kDeepest = 1 << 30;
  double given = TITAN_TRY(c.scalar(1, "the depth"));
  auto depth = given >= 1 && given <= kDeepest ? static_cast<int64_t>(given) : 0;
  if (c.isFloat(indices))
    indices = c.convert(indices, c.builder.getI64Type());
  if (depth <= 0 || c.shapeOf(values) != Shape{2})
    return c.error("a depth of {} and values of {}", given, toString(c.shapeOf(values)));
  int64_t axis = TITAN_TRY(c.axis(-1, c.rankOf(indices) + 1));
  Shape shape = c.shapeOf(indices);
  shape.push_back(depth);
  TITAN_TRY(checkedElementCount(shape, c.node.shown()));
  indices = countedFromFront(c, indices, depth);
  Value match = c.isIndex(indices, axis, depth);
  auto side = [&](int64_t k) {
    return c.broadcastTo(c.reshape(c.run(values, 0, k, 1), {}), c.shapeOf(match));
  };
  return c.give(c.select(match, side(1), side(0)));
}

} // namespace

ArrayRef<ConverterEntry> indexingConverters() {
  static const ConverterEntry table[] = {
      {"Gather", 1, gather, ""},
      {"GatherElements", 11, gatherElements, ""},
      {"GatherND", 11, gatherND, ""},
      {"OneHot", 9, oneHot, "static depth"},
  };
  return table;
}

} // namespace titan::frontend
