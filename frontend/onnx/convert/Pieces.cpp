// Ops that take pieces out of a tensor: slices and splits.
#include "frontend/onnx/convert/Conversion.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

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
      c.giveEmpty(i, x, shape);
    else if (c.wants(i))
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
  SmallVector<int64_t> shape, offsets, strides, backward;
  for (const auto& [d, dim] : llvm::enumerate(dims)) {
    const bool isBackward = dim.step < 0;
    if (isBackward)
      backward.push_back(static_cast<int64_t>(d));
    shape.push_back(dim.count);
    offsets.push_back(isBackward ? dim.start + dim.step * (dim.count - 1) : dim.start);
    strides.push_back(isBackward ? -dim.step : dim.step);
  }
  if (llvm::is_contained(shape, 0)) {
    c.giveEmpty(0, x, Shape(shape.begin(), shape.end()));
    return {};
  }
  x = c.slice(x, shape, offsets, strides);
  return c.give(backward.empty() ? x : c.create<ReverseOp>(x, backward));
}

} // namespace

ArrayRef<ConverterEntry> pieceConverters() {
  static const ConverterEntry table[] = {
      {"Slice", 1, slice, "static"},
      {"Split", 2, split, "static sizes"},
  };
  return table;
}

} // namespace titan::frontend
