// Updates of elements by index, and the first elements of an order.
#include "frontend/Strides.h"
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

/// Component `k` of known `tuples` [I..., K], where it depends on one coordinate of the tuple at
/// most: its values along dimension `dim`; -1: there is one.
struct Walk {
  int64_t dim = -1;
  Shape places;
};

std::optional<Walk> walkOf(const HostTensor& tuples, int64_t k) {
  const int64_t width = tuples.shape.back(), count = tuples.size() / width;
  const Shape strides = rowMajorStrides(Shape(tuples.shape.begin(), tuples.shape.end() - 1));
  const auto at = [&](int64_t tuple) { return tuples.integer(tuple * width + k); };
  Walk walk{-1, {at(0)}};
  for (size_t d = 0; d < strides.size(); ++d) {
    Shape places;
    for (int64_t i = 0; i < tuples.shape[d]; ++i)
      places.push_back(at(i * strides[d]));
    if (llvm::all_equal(places))
      continue;
    if (walk.dim >= 0)
      return std::nullopt;
    walk = {static_cast<int64_t>(d), std::move(places)};
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t coordinate = walk.dim < 0 ? 0 : i / strides[walk.dim] % tuples.shape[walk.dim];
    if (at(i) != walk.places[coordinate])
      return std::nullopt;
  }
  return walk;
}

/// Where known tuples are all combinations of some places in each dimension, in order, as those of
/// x[:, 1:4:2]: these places. Nothing where they are not, or make many pieces.
std::optional<std::vector<Shape>> gridOf(const HostTensor& tuples,
                                         std::span<const int64_t> extents) {
  constexpr int64_t kMostPieces = 32;
  std::vector<Shape> grid;
  int64_t last = -1, count = 1, pieces = 1;
  for (size_t k = 0; k < extents.size(); ++k) {
    std::optional<Walk> walk = walkOf(tuples, static_cast<int64_t>(k));
    if (!walk || (walk->dim >= 0 && walk->dim <= last))
      return std::nullopt;
    last = std::max(last, walk->dim);
    int64_t runs = 1;
    for (size_t i = 0; i < walk->places.size(); ++i) {
      walk->places[i] += walk->places[i] < 0 ? extents[k] : 0;
      const int64_t step = i == 0 ? 1 : walk->places[i] - walk->places[i - 1];
      if (step < 1)
        return std::nullopt;
      runs += step > 1;
    }
    if ((pieces *= runs) > kMostPieces)
      return std::nullopt;
    count *= static_cast<int64_t>(walk->places.size());
    grid.push_back(std::move(walk->places));
  }
  // Fewer: some element is met twice.
  return count * tuples.shape.back() == tuples.size() ? std::optional(grid) : std::nullopt;
}

/// `x` with the elements of `box` at the places of `grid`, in the dimensions from `dim` on.
Result<Value> withBox(Conversion& c, Value x, Value box, const std::vector<Shape>& grid,
                      size_t dim = 0) {
  if (dim == grid.size())
    return box;
  const auto axis = static_cast<int64_t>(dim);
  const Shape& places = grid[dim];
  const auto all = static_cast<int64_t>(places.size());
  SmallVector<Value> parts;
  int64_t kept = 0; // elements of x that stand in `parts`, or are replaced there
  const auto keepTo = [&](int64_t end) {
    if (end > kept)
      parts.push_back(c.run(x, axis, kept, end - kept));
  };
  for (int64_t i = 0, end = 0; i < all; i = end) {
    for (end = i + 1; end < all && places[end] == places[end - 1] + 1;)
      ++end;
    keepTo(places[i]);
    kept = places[end - 1] + 1;
    parts.push_back(TITAN_TRY(withBox(c, c.run(x, axis, places[i], end - i),
                                      c.run(box, axis, i, end - i), grid, dim + 1)));
  }
  keepTo(c.shapeOf(x)[dim]);
  return parts.size() == 1 ? Result<Value>(parts.front()) : c.joined(parts, axis);
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
  if (const HostTensor* known = c.constant(1)) {
    TITAN_TRY(checkTuples(c, *known, extents));
    if (auto grid = kind == ScatterKind::None ? gridOf(*known, extents) : std::nullopt) {
      Shape box;
      for (const Shape& places : *grid)
        box.push_back(static_cast<int64_t>(places.size()));
      box.insert(box.end(), shape.begin() + width, shape.end());
      return c.give(TITAN_TRY(withBox(c, x, c.reshaped(updates, box), *grid)));
    }
  }
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
