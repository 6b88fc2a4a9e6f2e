// Reductions and running sums along axes.
#include "frontend/onnx/convert/Conversion.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

struct Reduction {
  Value x;
  SmallVector<int64_t> dims;
  Shape kept; ///< the operand's shape with 1 for what is reduced
  bool keep = true;
  bool isNoOp = false;

  double elements(Conversion& c) const {
    double count = 1;
    for (int64_t d : dims)
      count *= static_cast<double>(c.shapeOf(x)[d]);
    return count;
  }
};

Reduction along(Conversion& c, Value x, SmallVector<int64_t> dims) {
  Reduction r;
  r.x = x;
  r.dims = std::move(dims);
  r.kept = c.shapeOf(x);
  for (int64_t d : r.dims)
    r.kept[d] = 1;
  return r;
}

/// Axes are an attribute up to opset 17 (12 for ReduceSum), then an operand.
Result<Reduction> reductionOf(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (tensorType(x).getElementType().isInteger(1))
    return c.error("operand is boolean");
  int64_t rank = c.rankOf(x);
  auto given = TITAN_TRY(c.axes(1));
  if (given && given->empty())
    given.reset();
  const bool isNoOp = !given && c.node.integer("noop_with_empty_axes", 0) != 0;
  SmallVector<int64_t> dims;
  if (given)
    llvm::append_range(dims, TITAN_TRY(normalizeAxes(c.node, *given, rank)));
  else if (!isNoOp)
    llvm::append_range(dims, llvm::seq<int64_t>(0, rank));
  Reduction r = along(c, x, std::move(dims));
  r.isNoOp = isNoOp;
  r.keep = c.node.integer("keepdims", 1) != 0;
  return r;
}

Value reduced(Conversion& c, const Reduction& r, ReduceKind kind, Value x) {
  return r.dims.empty() ? x : c.reduce(kind, x, r.dims);
}

Status give(Conversion& c, const Reduction& r, Value value) {
  return c.give(r.keep && !r.dims.empty() ? c.reshape(value, r.kept) : value);
}

template <ReduceKind kind> Status reduce(Conversion& c) {
  Reduction r = TITAN_TRY(reductionOf(c));
  return give(c, r, reduced(c, r, kind, r.x));
}

Result<Reduction> floatReduction(Conversion& c) {
  Reduction r = TITAN_TRY(reductionOf(c));
  if (!c.isFloat(r.x))
    return c.error("operand is not floating");
  return r;
}

Status giveMean(Conversion& c, const Reduction& r) {
  Value sum = reduced(c, r, ReduceKind::Sum, r.x);
  return give(c, r, r.dims.empty() ? sum : c.mean(sum, r.elements(c)));
}

Status reduceMean(Conversion& c) { return giveMean(c, TITAN_TRY(floatReduction(c))); }

/// The mean over all dimensions behind sample and channel, which stay with extent 1.
Status globalAveragePool(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  if (c.rankOf(x) < 3)
    return c.error("operand of shape {} has no space dimensions", toString(c.shapeOf(x)));
  return giveMean(c, along(c, x, llvm::to_vector(llvm::seq<int64_t>(2, c.rankOf(x)))));
}

Status reduceL1(Conversion& c) {
  Reduction r = TITAN_TRY(floatReduction(c));
  return give(c, r, reduced(c, r, ReduceKind::Sum, c.create<AbsOp>(r.x)));
}

Status reduceL2(Conversion& c) {
  Reduction r = TITAN_TRY(floatReduction(c));
  return give(c, r, c.create<SqrtOp>(reduced(c, r, ReduceKind::Sum, c.mul(r.x, r.x))));
}

Status reduceSumSquare(Conversion& c) {
  Reduction r = TITAN_TRY(floatReduction(c));
  return give(c, r, reduced(c, r, ReduceKind::Sum, c.mul(r.x, r.x)));
}

Status reduceLogSum(Conversion& c) {
  Reduction r = TITAN_TRY(floatReduction(c));
  return give(c, r, c.create<LogOp>(reduced(c, r, ReduceKind::Sum, r.x)));
}

/// max + log(sum e^(x - max))
Status reduceLogSumExp(Conversion& c) {
  Reduction r = TITAN_TRY(floatReduction(c));
  if (r.dims.empty())
    return c.give(r.x);
  Value peak = reduced(c, r, ReduceKind::Max, r.x);
  Value shifted = c.sub(r.x, c.unreduce(peak, c.shapeOf(r.x), r.dims));
  Value sum = reduced(c, r, ReduceKind::Sum, c.exp(shifted));
  return give(c, r, c.add(peak, c.create<LogOp>(sum)));
}

/// The index of the extreme element, or of NaN where one is: of several the first, or the last with
/// select_last_index.
Status argExtreme(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (tensorType(x).getElementType().isInteger(1))
    return c.error("operand is boolean");
  const bool isLast = c.node.integer("select_last_index", 0) != 0,
             isMin = c.node.opType == "ArgMin";
  const int64_t axis = TITAN_TRY(c.axis(0, c.rankOf(x)));
  const Shape shape = c.shapeOf(x);
  Value index;
  if (!isLast && !(isMin && !c.isFloat(x))) {
    index = c.create<ArgmaxOp>(isMin ? c.neg(x) : x, axis);
  } else {
    Value extreme = c.reduce(isMin ? ReduceKind::Min : ReduceKind::Max, x, axis);
    Value found = c.compare(ComparePredicate::EQ, x, c.unreduce(extreme, shape, axis));
    if (c.isFloat(x))
      found = c.create<OrOp>(found, c.compare(ComparePredicate::NE, x, x));
    auto places = RankedTensorType::get(shape, c.builder.getI64Type());
    Value place = c.create<IotaOp>(places, c.builder.getI64IntegerAttr(axis));
    Value none = c.splat(places, isLast ? -1 : static_cast<double>(shape[axis]));
    index =
        c.reduce(isLast ? ReduceKind::Max : ReduceKind::Min, c.select(found, place, none), axis);
  }
  Shape kept = shape;
  kept[axis] = 1;
  return c.give(c.node.integer("keepdims", 1) != 0 ? c.reshape(index, kept) : index);
}

/// Sums or products of what comes before, in log2(extent) steps: after step k each element holds
/// that of the 2^(k+1) elements up to it (Hillis and Steele, doi:10.1145/7902.7903). No step
/// divides, so that a product's gradient holds at zeros, too.
template <typename Op, int64_t neutral> Status cumulative(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (tensorType(x).getElementType().isInteger(1))
    return c.error("operand is boolean");
  int64_t rank = c.rankOf(x);
  int64_t axis = TITAN_TRY(normalizeAxis(c.node, TITAN_TRY(c.integerScalar(1, "axis")), rank));
  bool reverse = c.node.integer("reverse", 0) != 0;
  int64_t extent = c.shapeOf(x)[axis];
  // The element `distance` before (reverse: behind), `neutral` where there is none.
  auto shifted = [&](Value value, int64_t distance) -> Value {
    Value kept = c.run(value, axis, reverse ? distance : 0, extent - distance);
    SmallVector<int64_t> low(rank, 0), zeros(rank, 0);
    low[axis] = reverse ? 0 : distance;
    return c.create<PadOp>(value.getType(), kept, c.builder.getDenseI64ArrayAttr(low),
                           c.builder.getDenseI64ArrayAttr(zeros),
                           c.builder.getF64FloatAttr(neutral));
  };
  if (c.node.integer("exclusive", 0) != 0)
    x = extent == 1 ? c.splatLike(x, neutral) : shifted(x, 1);
  for (int64_t distance = 1; distance < extent; distance *= 2)
    x = c.create<Op>(x, shifted(x, distance));
  return c.give(x);
}

} // namespace

ArrayRef<ConverterEntry> reductionConverters() {
  static const ConverterEntry table[] = {
      {"ArgMax", 1, argExtreme, ""},
      {"ArgMin", 1, argExtreme, ""},
      {"CumProd", 26, cumulative<MulOp, 1>, "static axis"},
      {"CumSum", 11, cumulative<AddOp, 0>, "static axis"},
      {"GlobalAveragePool", 1, globalAveragePool, ""},
      {"ReduceL1", 1, reduceL1, ""},
      {"ReduceL2", 1, reduceL2, ""},
      {"ReduceLogSum", 1, reduceLogSum, ""},
      {"ReduceLogSumExp", 1, reduceLogSumExp, ""},
      {"ReduceMax", 1, reduce<ReduceKind::Max>, ""},
      {"ReduceMean", 1, reduceMean, ""},
      {"ReduceMin", 1, reduce<ReduceKind::Min>, ""},
      {"ReduceProd", 1, reduce<ReduceKind::Prod>, ""},
      {"ReduceSum", 1, reduce<ReduceKind::Sum>, ""},
      {"ReduceSumSquare", 1, reduceSumSquare, ""},
  };
  return table;
}

} // namespace titan::frontend
