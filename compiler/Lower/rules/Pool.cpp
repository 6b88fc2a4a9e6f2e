// Lowering of titan.pool and titan.max_pool_grad: reductions over a padded copy. The dimensions of
// a window stand in front of those behind it, so that lanes are channels.
#include "compiler/Lower/Rules.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// The space of a reduction over windows: the dimensions of the result, and behind the last of them
/// that has a window one for each window.
class WindowSpace {
public:
  WindowSpace(LoweringBuilder& lowering, ArrayRef<int64_t> result, ArrayRef<int64_t> window)
      : l(lowering), window(window) {
    size_t behind = result.size();
    while (behind > 0 && window[behind - 1] == 1)
      --behind;
    for (auto [d, extent] : llvm::enumerate(result)) {
      placeOf.push_back(static_cast<int64_t>(space.size()));
      space.push_back(extent);
      if (d + 1 == behind)
        addTaps();
    }
    if (behind == 0)
      addTaps();
  }

  /// Dimensions of the space: of a place of the result, of taps, and all of the latter.
  AffineExpr place(size_t d) const { return l.dim(placeOf[d]); }
  AffineExpr tap(size_t d) const { return l.dim(tapOf[d]); }
  ArrayRef<int64_t> taps() const { return tapOf; }
  ArrayRef<int64_t> extents() const { return space; }
  size_t rank() const { return placeOf.size(); }

  AffineMap map(ArrayRef<AffineExpr> results) const { return l.map(space.size(), results); }
  AffineMap places() const { return l.project(space.size(), placeOf); }
  /// place * strides + tap * dilations + first
  AffineMap read(ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                 ArrayRef<int64_t> first) const {
    SmallVector<AffineExpr> results;
    for (size_t d = 0; d < rank(); ++d)
      results.push_back(place(d) * strides[d] + tap(d) * dilations[d] + first[d]);
    return map(results);
  }

  /// The row-major number of the tap in its window, an i32; `backwards`: of the one as far from the
  /// end.
  Value number(Body& b, bool backwards) const {
    Type i64 = b.builder.getI64Type();
    Value number = b.integer(i64, 0);
    for (size_t d = 0; d < rank(); ++d) {
      if (window[d] == 1)
        continue;
      Value index = coordinate(b, tapOf[d]);
      if (backwards)
        index = b.create<arith::SubIOp>(b.integer(i64, window[d] - 1), index);
      number = b.create<arith::AddIOp>(b.create<arith::MulIOp>(number, b.integer(i64, window[d])),
                                       index);
    }
    return b.resize(number, b.builder.getI32Type(), /*isUnsigned=*/false);
  }

  /// Is what the tap reads an element of the operand?
  template <typename Op> Value isInside(Body& b, Op op, ArrayRef<int64_t> operand) const {
    Type i64 = b.builder.getI64Type();
    Value inside;
    const auto require = [&](arith::CmpIPredicate predicate, Value index, int64_t bound) {
      Value holds = b.compare(predicate, index, b.integer(i64, bound));
      inside = inside ? b.create<arith::AndIOp>(inside, holds) : holds;
    };
    for (size_t d = 0; d < rank(); ++d) {
      if (op.getLow()[d] == 0 && op.getHigh()[d] == 0)
        continue;
      Value index = b.create<arith::AddIOp>(
          b.create<arith::MulIOp>(coordinate(b, placeOf[d]), b.integer(i64, op.getStrides()[d])),
          b.create<arith::MulIOp>(coordinate(b, tapOf[d]), b.integer(i64, op.getDilations()[d])));
      require(arith::CmpIPredicate::sge, index, op.getLow()[d]);
      require(arith::CmpIPredicate::slt, index, op.getLow()[d] + operand[d]);
    }
    return inside;
  }

private:
  void addTaps() {
    for (int64_t extent : window) {
      tapOf.push_back(static_cast<int64_t>(space.size()));
      space.push_back(extent);
    }
  }
  static Value coordinate(Body& b, int64_t dim) {
    return b.create<arith::IndexCastOp>(b.builder.getI64Type(), b.index(dim));
  }

  LoweringBuilder& l;
  ArrayRef<int64_t> window;
  SmallVector<int64_t> space, placeOf, tapOf;
};

/// `operand` with the padding of the windows of `op`; what `padding` builds.
template <typename Op>
Value padded(Op op, Value operand, LoweringBuilder& l, llvm::function_ref<Value(Body&)> padding) {
  RankedTensorType type = tensorType(operand);
  SmallVector<int64_t> shape(type.getShape());
  for (size_t d = 0; d < shape.size(); ++d)
    shape[d] += op.getLow()[d] + op.getHigh()[d];
  return l.pad(type.clone(shape), operand, op.getLow(), SmallVector<int64_t>(shape.size(), 0),
               padding);
}

/// The least value of `element`, of which a signless body cannot tell the sign.
Value lowest(Body& b, Type element) {
  if (isa<FloatType>(element))
    return b.constant(Body::computeType(element), -std::numeric_limits<double>::infinity());
  const unsigned width = element.getIntOrFloatBitWidth();
  Type type = b.builder.getIntegerType(width);
  return b.integer(type, element.isUnsignedInteger() ? 0 : llvm::minIntN(width));
}

template <typename Op> Value paddedForMaximum(Op op, LoweringBuilder& l) {
  Value operand = op.getOperand();
  Type element = tensorType(operand).getElementType();
  return padded(op, operand, l, [&](Body& b) { return lowest(b, element); });
}

/// The maximum of each window of `operand`, which has its padding.
template <typename Op>
Value maximum(Op op, Value operand, RankedTensorType type, LoweringBuilder& l) {
  WindowSpace space(l, type.getShape(), op.getWindow());
  const SmallVector<int64_t> none(space.rank(), 0);
  LoweringBuilder::Read read = {operand, space.read(op.getStrides(), op.getDilations(), none)};
  const bool isUnsigned = type.getElementType().isUnsignedInteger();
  return l.fused(space.extents(), read, LoweringBuilder::Write{type, space.places()},
                 [&](Body& b, ValueRange v) {
                   return SmallVector<Value>{
                       reduceElements(b, ir::ReduceKind::Max, v[0], space.taps(), isUnsigned)};
                 })[0];
}

struct Rules {
  static LogicalResult lower(ir::PoolOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    Type element = type.getElementType();
    if (op.getKind() == ir::ReduceKind::Max) {
      l.replace(maximum(op, paddedForMaximum(op, l), type, l));
      return success();
    }
    Value operand = padded(op, op.getOperand(), l, [&](Body& b) {
      return isa<FloatType>(element)
                 ? b.constant(Body::computeType(element), 0)
                 : b.integer(b.builder.getIntegerType(element.getIntOrFloatBitWidth()), 0);
    });
    WindowSpace space(l, type.getShape(), op.getWindow());
    const SmallVector<int64_t> none(space.rank(), 0);
    LoweringBuilder::Read read = {operand, space.read(op.getStrides(), op.getDilations(), none)};
    l.replace(l.fused(space.extents(), read, LoweringBuilder::Write{type, space.places()},
                      [&](Body& b, ValueRange v) {
                        return SmallVector<Value>{reduceElements(b, ir::ReduceKind::Sum, v[0],
                                                                 space.taps(),
                                                                 element.isUnsignedInteger())};
                      }));
    return success();
  }

  /// The number of each window's first maximum; then, for each element, the sum over the windows
  /// that have it and in which it is the first.
  static LogicalResult lower(ir::MaxPoolGradOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType(), dtype = tensorType(op.getDresult());
    const SmallVector<int64_t> none(static_cast<size_t>(type.getRank()), 0);
    Value operand = paddedForMaximum(op, l);
    Value largest = maximum(op, operand, dtype, l);
    Value first = firstMaximum(op, operand, largest, l);

    SmallVector<int64_t> extents, before, interior, start;
    for (size_t d = 0; d < none.size(); ++d) {
      const ir::SpreadGradient spread(op.getWindows(d));
      extents.push_back(spread.extent);
      before.push_back(spread.before);
      interior.push_back(spread.interior);
      start.push_back(spread.first);
    }
    Value gradient = l.pad(dtype.clone(extents), op.getDresult(), before, interior, [&](Body& b) {
      return b.constant(Body::computeType(dtype.getElementType()), 0);
    });
    // No tap has the number -1.
    first = l.pad(tensorType(first).clone(extents), first, before, interior,
                  [&](Body& b) { return b.integer(b.builder.getI32Type(), -1); });
    WindowSpace space(l, type.getShape(), op.getWindow());
    const SmallVector<int64_t> ones(none.size(), 1);
    AffineMap at = space.read(ones, op.getDilations(), start);
    LoweringBuilder::Read reads[] = {{gradient, at}, {first, at}};
    l.replace(l.fused(space.extents(), reads, LoweringBuilder::Write{type, space.places()},
                      [&](Body& b, ValueRange v) {
                        Value isFirst = b.compare(arith::CmpIPredicate::eq, v[1],
                                                  space.number(b, /*backwards=*/true));
                        Value term = b.select(isFirst, v[0], b.constantLike(v[0], 0));
                        return SmallVector<Value>{
                            b.reduce(kernel::ReduceKind::Add, term, space.taps())};
                      }));
    return success();
  }

private:
  /// For each window the number of the first element that equals its maximum, or is NaN where that
  /// is. i32.
  static Value firstMaximum(ir::MaxPoolGradOp op, Value operand, Value largest,
                            LoweringBuilder& l) {
    RankedTensorType type = tensorType(largest);
    WindowSpace space(l, type.getShape(), op.getWindow());
    const SmallVector<int64_t> none(space.rank(), 0);
    LoweringBuilder::Read reads[] = {
        {operand, space.read(op.getStrides(), op.getDilations(), none)}, {largest, space.places()}};
    Type i32 = l.builder.getI32Type();
    LoweringBuilder::Write write = {type.clone(i32), space.places()};
    return l.fused(space.extents(), reads, write, [&](Body& b, ValueRange v) {
      Value found = b.create<arith::OrIOp>(b.compare(arith::CmpFPredicate::OEQ, v[0], v[1]),
                                           b.compare(arith::CmpFPredicate::UNO, v[0], v[0]));
      // Padding may equal a maximum of minus infinity.
      if (Value inside = space.isInside(b, op, tensorType(op.getOperand()).getShape()))
        found = b.create<arith::AndIOp>(found, inside);
      Value candidate = b.select(found, space.number(b, /*backwards=*/false),
                                 b.integer(i32, std::numeric_limits<int32_t>::max()));
      return SmallVector<Value>{b.reduce(kernel::ReduceKind::Min, candidate, space.taps())};
    })[0];
  }
};

} // namespace

void attachPoolRules(MLIRContext* context) {
  attachRules<Rules, ir::PoolOp, ir::MaxPoolGradOp>(context);
}

} // namespace titan::lower
