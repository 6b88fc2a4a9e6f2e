// Lowering of random ops: counter-based, keyed by the element's index in the global tensor.
#include "compiler/Lower/Rules.h"

#include "runtime/program/Random.h"

#include <numbers>

using namespace mlir;

namespace titan::lower {

namespace {

/// The row-major index in the global tensor of the element at the body's coordinates, counted from
/// the window's first. All elements along `shared` are one.
Value globalIndex(Body& b, ir::RandomOpInterface op, ArrayRef<int64_t> shared = {}) {
  const SmallVector<int64_t> shape = op.getDrawnShape();
  ArrayRef<int64_t> global = op.isPlaced() ? op.getWindowAttr().getGlobal() : shape;
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(value); };
  Value element;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    const bool isShared = llvm::is_contained(shared, d);
    if (element && (!isShared || global[d] != 1))
      element = b.create<arith::MulIOp>(element, constant(global[d]));
    if (isShared)
      continue;
    Value coordinate = b.index(d);
    element = element ? b.create<arith::AddIOp>(element, coordinate) : coordinate;
  }
  return element ? element : constant(0);
}

/// The seed and the step of a random op, read by a kernel; 0 where it has none.
class Key {
public:
  Key(ir::RandomOpInterface op) : op_(op) {}

  void addReads(LoweringBuilder& l, unsigned rank, SmallVectorImpl<LoweringBuilder::Read>& reads) {
    if (!op_.isSeeded())
      return;
    first_ = reads.size();
    reads.push_back({op_.getSeedMutable()[0].get(), l.map(rank, {})});
    reads.push_back({op_.getStepMutable()[0].get(), l.map(rank, {})});
  }
  /// The half of `element`, an index; `values` are what the kernel reads.
  Value half(Body& b, ValueRange values, Value element, Value base = {}) {
    Type i64 = b.builder.getI64Type();
    Value seed = first_ ? values[*first_] : b.integer(i64, 0),
          step = first_ ? values[*first_ + 1] : b.integer(i64, 0);
    return b.create<kernel::RandomHalfOp>(b.builder.getI32Type(), seed, step, element, base,
                                          static_cast<int64_t>(op_.getStream()),
                                          base ? op_.getWindowAttr().getMultiple() : 1);
  }
  /// The 32-bit word of `element`: its low and its high half are elements of their own.
  Value word(Body& b, ValueRange values, Value element) {
    Type i32 = b.builder.getI32Type();
    Value low = b.create<arith::MulIOp>(element, b.create<arith::ConstantIndexOp>(2)),
          high = b.create<arith::AddIOp>(low, b.create<arith::ConstantIndexOp>(1));
    return b.create<arith::OrIOp>(
        half(b, values, low), b.create<arith::ShLIOp>(half(b, values, high), b.integer(i32, 16)));
  }

private:
  ir::RandomOpInterface op_;
  std::optional<size_t> first_; ///< of the kernel's values: the seed, before the step
};

/// Uniform in [0, 1): the top 24 bits of `word`.
Value uniform(Body& b, Type type, Value word) {
  Value top = b.create<arith::ShRUIOp>(word, b.integer(word.getType(), 8));
  return b.mul(b.create<arith::UIToFPOp>(type, top), b.constant(type, 0x1p-24));
}

/// `normalDraw` of runtime/program/Random.h, of the words of a pair. The logarithm is taken of what
/// is small, u or 1 - u; sine is a cosine a quarter of a turn before.
Value normal(Body& b, Type type, Value first, Value second, Value isOdd) {
  Type i32 = first.getType();
  auto fraction = [&](Value word) {
    return b.mul(b.create<arith::UIToFPOp>(type, word), b.constant(type, 0x1p-32));
  };
  Value above = b.create<arith::AddIOp>(first, b.integer(i32, 1)),
        below = b.create<arith::XOrIOp>(first, b.integer(i32, -1));
  Value isNearOne = b.compare(arith::CmpIPredicate::slt, first, b.integer(i32, 0));
  Value logarithm =
      b.select(isNearOne, b.log1p(b.neg(fraction(below))), b.create<math::LogOp>(fraction(above)));
  Value radius = b.sqrt(b.mul(logarithm, b.constant(type, -2)));
  Value quarter = b.select(isOdd, b.integer(i32, 1 << 30), b.integer(i32, 0));
  Value turn = b.create<arith::SIToFPOp>(type, b.create<arith::SubIOp>(second, quarter));
  Value angle = b.mul(turn, b.constant(type, 2 * std::numbers::pi * 0x1p-32));
  return b.mul(radius, b.create<math::CosOp>(angle));
}

struct Rules {
  static LogicalResult lower(ir::DropoutOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    unsigned rank = type.getRank();
    double p = op.getP().convertToDouble();
    SmallVector<LoweringBuilder::Read> reads = {{op.getOperand(), l.identity(rank)}};
    Key key(op);
    key.addReads(l, rank, reads);
    SmallVector<Value> scalars;
    if (op.getBase())
      scalars.push_back(op.getBase());
    l.replace(l.fused(
        type.getShape(), reads, LoweringBuilder::Write{type, l.identity(rank)},
        [&](Body& b, ValueRange v) {
          Value element = globalIndex(b, op, op.getShared());
          Value half = key.half(b, v, element, scalars.empty() ? Value() : v.back());
          Value kept = b.compare(arith::CmpIPredicate::ult, half,
                                 b.integer(half.getType(), keepThreshold(p)));
          Value scaled = b.mul(v[0], b.constantLike(v[0], 1 / (1 - p)));
          return SmallVector<Value>{b.select(kept, scaled, b.constantLike(scaled, 0))};
        },
        scalars));
    return success();
  }

  static LogicalResult lower(ir::RandomOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    unsigned rank = type.getRank();
    SmallVector<LoweringBuilder::Read> reads;
    Key key(op);
    key.addReads(l, rank, reads);
    SmallVector<Value> scalars;
    if (op.getBase())
      scalars.push_back(op.getBase());
    l.replace(l.fused(
        type.getShape(), reads, LoweringBuilder::Write{type, l.identity(rank)},
        [&](Body& b, ValueRange v) {
          Value element = globalIndex(b, op);
          if (!scalars.empty())
            element = b.create<arith::AddIOp>(element, v.back());
          Type compute = Body::computeType(type.getElementType());
          if (op.getKind() == ir::RandomKind::Uniform)
            return SmallVector<Value>{uniform(b, compute, key.word(b, v, element))};
          auto constant = [&](int64_t value) { return b.create<arith::ConstantIndexOp>(value); };
          Value odd = b.create<arith::RemUIOp>(element, constant(2));
          Value first = b.create<arith::SubIOp>(element, odd),
                second = b.create<arith::AddIOp>(first, constant(1));
          Value isOdd = b.compare(arith::CmpIPredicate::ne, odd, constant(0));
          return SmallVector<Value>{
              normal(b, compute, key.word(b, v, first), key.word(b, v, second), isOdd)};
        },
        scalars));
    return success();
  }
};

} // namespace

void attachRandomRules(MLIRContext* context) {
  attachRules<Rules, ir::DropoutOp, ir::RandomOp>(context);
}

} // namespace titan::lower
