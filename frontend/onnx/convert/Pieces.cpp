// Ops that take pieces out of a tensor: slices, splits, elements at known positions, and the
// sequences that torch.export splits into.
#include "frontend/onnx/Conversion.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// `count` elements along `axis` from `begin` on.
Value run(Conversion& c, Value x, int64_t axis, int64_t begin, int64_t count) {
  Shape shape = c.shapeOf(x);
  SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1);
  shape[axis] = count;
  offsets[axis] = begin;
  return c.slice(x, shape, offsets, strides);
}

Status split(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  int64_t axis = TITAN_TRY(c.axis(0, c.rankOf(x)));
  auto given = TITAN_TRY(c.axes(1, "split"));
  auto outputs = static_cast<int64_t>(c.node.outputs.size());
  Shape shape = c.shapeOf(x);
  auto sizes = TITAN_TRY(splitSizes(c.node, shape[axis], given, outputs));
  if (static_cast<int64_t>(sizes.size()) != outputs)
    return c.error("{} pieces for {} outputs", sizes.size(), outputs);
  SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1);
  for (auto [i, size] : llvm::enumerate(sizes)) {
    shape[axis] = size;
    if (c.wants(i) && size == 0)
      return c.error("piece {} is empty", i);
    if (c.wants(i))
      c.results[i] = c.slice(x, shape, offsets, strides);
    offsets[axis] += size;
  }
  return {};
}

Status slice(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  std::vector<int64_t> starts, ends;
  std::optional<std::vector<int64_t>> axes, steps;
  if (c.node.opset < 10) {
    starts = c.node.integers("starts").value_or(std::vector<int64_t>());
    ends = c.node.integers("ends").value_or(std::vector<int64_t>());
    axes = c.node.integers("axes");
  } else {
    starts = TITAN_TRY(c.list(1, "starts"));
    ends = TITAN_TRY(c.list(2, "ends"));
    if (c.has(3))
      axes = TITAN_TRY(c.list(3, "axes"));
    if (c.has(4))
      steps = TITAN_TRY(c.list(4, "steps"));
  }
  auto dims = TITAN_TRY(sliceDims(c.node, c.shapeOf(x), starts, ends, axes, steps));
  SmallVector<int64_t> shape, offsets, strides;
  for (auto [d, dim] : llvm::enumerate(dims)) {
    if (dim.count == 0)
      return c.error("takes nothing of dimension {}", d);
    if (dim.step < 0)
      return c.error("a step of {} is not supported: only positive steps are", dim.step);
    shape.push_back(dim.count);
    offsets.push_back(dim.start);
    strides.push_back(dim.step);
  }
  return c.give(c.slice(x, shape, offsets, strides));
}

/// Indices that are known: runs of consecutive ones are slices.
Status gather(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  int64_t axis = TITAN_TRY(c.axis(0, c.rankOf(x)));
  const HostTensor* indices = c.constant(1);
  if (!indices)
    return c.error("indices that the model computes are not supported");
  constexpr size_t kMostRuns = 256;
  int64_t extent = c.shapeOf(x)[axis];
  SmallVector<Value> runs;
  int64_t begin = 0, count = 0;
  auto flush = [&] {
    if (count > 0)
      runs.push_back(run(c, x, axis, begin, count));
  };
  for (int64_t index : listOf(*indices)) {
    if (index < -extent || index >= extent)
      return c.error("index {} is outside of {}", index, extent);
    index = index < 0 ? index + extent : index;
    if (count > 0 && index == begin + count) {
      ++count;
      continue;
    }
    flush();
    if (runs.size() >= kMostRuns)
      return c.error("more than {} runs of indices", kMostRuns);
    begin = index;
    count = 1;
  }
  flush();
  if (runs.empty())
    return c.error("takes nothing");
  Value joined =
      runs.size() == 1 ? runs.front() : Value(c.create<ConcatOp>(ValueRange(runs), axis));
  Shape from = c.shapeOf(x), shape(from.begin(), from.begin() + axis);
  shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
  shape.insert(shape.end(), from.begin() + axis + 1, from.end());
  return c.give(c.shapeOf(joined) == shape ? joined : c.reshape(joined, shape));
}

/// Pieces of the sizes that `split` lists, of one size (a scalar), or of 1.
Status splitToSequence(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  int64_t axis = TITAN_TRY(c.axis(0, c.rankOf(x))), extent = c.shapeOf(x)[axis];
  std::vector<int64_t> sizes;
  if (c.has(1) && c.constant(1) && !c.constant(1)->shape.empty()) {
    sizes = TITAN_TRY(splitSizes(c.node, extent, TITAN_TRY(c.list(1, "split")), 0));
  } else {
    int64_t piece = c.has(1) ? static_cast<int64_t>(TITAN_TRY(c.scalar(1, "split"))) : 1;
    if (piece <= 0)
      return c.error("pieces of {}", piece);
    for (int64_t left = extent; left > 0; left -= sizes.back())
      sizes.push_back(std::min(piece, left));
  }
  constexpr size_t kMostPieces = 1024;
  if (sizes.size() > kMostPieces)
    return c.error("more than {} pieces", kMostPieces);
  int64_t begin = 0;
  for (int64_t size : sizes) {
    if (size == 0)
      return c.error("piece {} is empty", c.sequenceResult.size());
    Value piece = run(c, x, axis, begin, size);
    if (!c.has(1) && c.node.integer("keepdims", 1) == 0) {
      Shape shape = c.shapeOf(piece);
      shape.erase(shape.begin() + axis);
      piece = c.reshape(piece, shape);
    }
    c.sequenceResult.push_back(piece);
    begin += size;
  }
  return {};
}

Status sequenceAt(Conversion& c) {
  auto elements = TITAN_TRY(c.sequence(0));
  auto position = static_cast<int64_t>(TITAN_TRY(c.scalar(1, "the position")));
  position = TITAN_TRY(normalizeAxis(c.node, position, static_cast<int64_t>(elements.size())));
  return c.give(elements[position]);
}

} // namespace

ArrayRef<ConverterEntry> pieceConverters() {
  static const ConverterEntry table[] = {
      {"Gather", 1, gather, "static indices"},
      {"SequenceAt", 11, sequenceAt, "static position"},
      {"Slice", 1, slice, "static, positive steps"},
      {"Split", 2, split, "static sizes"},
      {"SplitToSequence", 11, splitToSequence, "static sizes"},
  };
  return table;
}

} // namespace titan::frontend
