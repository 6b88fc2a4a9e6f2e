// Updates of elements by index, and the first elements of an order.
#include "frontend/onnx/convert/Lookup.h"
#include "frontend/onnx/name/Scopes.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// torch.export writes a mean of updates, which ONNX has not, as the last one of them.
Result<ScatterKind> kindOf(Conversion& c) {
  if (scopeOf(c.node).scatterReduction == "mean")
    return c.error("the mean of updates (scatter_reduce of the source) is not in the file: "
                   "export their sum, divided by their number");
  std::string reduction = c.node.text("reduction", "none");
  if (std::optional<ScatterKind> kind = symbolizeScatterKind(reduction))
    return *kind;
  return c.error("reduction = '{}' is not known", printable(reduction));
}

/// Operand 0 and the updates, which have its element type.
Result<std::pair<Value, Value>> dataAndUpdates(Conversion& c, ScatterKind kind) {
  Value x = TITAN_TRY(c.operand(0)), updates = TITAN_TRY(c.operand(2));
  Type element = tensorType(x).getElementType();
  if (tensorType(updates).getElementType() != element)
    return c.error("updates must have the element type of the data");
  if (element.isInteger(1) && kind != ScatterKind::None)
    return c.error("booleans are replaced only");
  return std::pair(x, updates);
}

/// The updates may leave elements alone behind their last ones: what is before those is cut out,
/// dimension by dimension from `dim` on, and joined with the rest again.
Result<Value> scatterFront(Conversion& c, ScatterKind kind, Value x, Value indices, Value updates,
                           int64_t axis, int64_t dim = 0) {
  if (dim == c.rankOf(x))
    return Value(c.create<ScatterOp>(kind, x, indices, updates, axis));
  const int64_t extent = c.shapeOf(x)[dim], covered = c.shapeOf(updates)[dim];
  if (dim == axis || covered == extent)
    return scatterFront(c, kind, x, indices, updates, axis, dim + 1);
  Value front =
      TITAN_TRY(scatterFront(c, kind, c.run(x, dim, 0, covered), indices, updates, axis, dim + 1));
  return c.joined({front, c.run(x, dim, covered, extent - covered)}, dim);
}

Status scatterElements(Conversion& c) {
  const ScatterKind kind = TITAN_TRY(kindOf(c));
  auto [x, updates] = TITAN_TRY(dataAndUpdates(c, kind));
  Value indices = TITAN_TRY(c.integerOperand(1));
  const int64_t rank = c.rankOf(x), axis = TITAN_TRY(c.axis(0, rank));
  const Shape shape = c.shapeOf(x), from = c.shapeOf(updates);
  bool fits = c.shapeOf(indices) == from && from.size() == shape.size();
  for (int64_t d = 0; fits && d < rank; ++d)
    fits = d == axis || from[d] <= shape[d];
  if (!fits)
    return c.error("indices of {} and updates of {} for data of {}", toString(c.shapeOf(indices)),
                   toString(from), toString(shape));
  if (const HostTensor* known = c.constant(1))
    TITAN_TRY(checkTuples(c, *known, std::span(&shape[axis], 1)));
  indices = countedFromFront(c, indices, shape[axis]);
  return c.give(TITAN_TRY(scatterFront(c, kind, x, indices, updates, axis)));
}

/// Blocks of the data with its leading dimensions as one.
Status scatterND(Conversion& c) {
  const ScatterKind kind = TITAN_TRY(kindOf(c));
  auto [x, updates] = TITAN_TRY(dataAndUpdates(c, kind));
  Value indices = TITAN_TRY(c.integerOperand(1));
  const Shape tuples = c.shapeOf(indices), shape = c.shapeOf(x), from = c.shapeOf(updates);
  const bool isTuple = !tuples.empty() && tuples.back() >= 1 && tuples.back() <= c.rankOf(x);
  Shape wanted;
  if (isTuple) {
    wanted.assign(tuples.begin(), tuples.end() - 1);
    wanted.insert(wanted.end(), shape.begin() + tuples.back(), shape.end());
  }
  if (!isTuple || from != wanted)
    return c.error("indices of {} and updates of {} for data of {}", toString(tuples),
                   toString(from), toString(shape));
  const int64_t width = tuples.back(),
                rows = elementCount(std::span(tuples).first(tuples.size() - 1));
  const auto extents = std::span(shape).first(width);
  if (const HostTensor* known = c.constant(1))
    TITAN_TRY(checkTuples(c, *known, extents));
  auto flat = [&](Value value, int64_t lead) {
    Shape block{lead};
    block.insert(block.end(), shape.begin() + width, shape.end());
    return c.reshaped(value, block);
  };
  Value places = c.reshaped(tuplePlaces(c, indices, extents), {rows});
  Value result =
      c.create<ScatterOp>(kind, flat(x, elementCount(extents)), places, flat(updates, rows), 0);
  return c.give(c.reshaped(result, shape));
}

/// titan.top_k is along the last dimension; another one is brought there and back.
Status topK(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (tensorType(x).getElementType().isInteger(1))
    return c.error("operand is boolean");
  const int64_t rank = c.rankOf(x), axis = TITAN_TRY(c.axis(-1, rank));
  const int64_t count =
      c.node.opset < 10 ? c.node.integer("k", 0) : TITAN_TRY(c.integerScalar(1, "k"));
  if (count < 1 || count > c.shapeOf(x)[axis])
    return c.error("takes {} elements of {}", count, c.shapeOf(x)[axis]);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[axis], order.back()); // its own inverse
  Value rows = c.transposed(x, order);
  Shape shape = c.shapeOf(rows);
  shape.back() = count;
  Type values = tensorType(x).clone(shape),
       indices = RankedTensorType::get(shape, c.builder.getI64Type());
  const bool isSmallest = c.node.integer("largest", 1) == 0;
  auto first = c.create<TopKOp>(TypeRange{values, indices}, rows,
                                isSmallest ? c.builder.getUnitAttr() : UnitAttr());
  for (size_t i : {0, 1})
    if (c.wants(i))
      c.results[i] = c.transposed(first.getResult(static_cast<unsigned>(i)), order);
  return {};
}

} // namespace

ArrayRef<ConverterEntry> scatterConverters() {
  static const ConverterEntry table[] = {
      {"Scatter", 9, scatterElements, ""},
      {"ScatterElements", 11, scatterElements, ""},
      {"ScatterND", 11, scatterND, ""},
      {"TopK", 1, topK, "static k; always sorted"},
  };
  return table;
}

} // namespace titan::frontend
