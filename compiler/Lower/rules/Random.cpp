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
  Value element;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    const bool isShared = llvm::is_contained(shared, d);
    if (element && (!isShared || global[d] != 1))
      element = b.create<arith::MulIOp>(element, b.indexConstant(global[d]));
    if (isShared)
      continue;
    Value coordinate = b.index(d);
    element = element ? b.create<arith::AddIOp>(element, coordinate) : coordinate;
  }
  return element ? element : b.indexConstant(0);
}

/// The kernel of a random op: its seed and step, 0 where it has none, and where its window begins.
class RandomKernel {
public:
  RandomKernel(ir::RandomOpInterface op, LoweringBuilder& l) : op_(op), l_(l) {}

  /// Replaces the op by one fused kernel on elements of `operand`, if it has one. `body` makes an
  /// element of what it reads there.
  void replaceOp(Value operand, llvm::function_ref<Value(Body&, ValueRange)> body) {
    auto type = cast<RankedTensorType>(op_->getResult(0).getType());
    const unsigned rank = type.getRank();
    SmallVector<LoweringBuilder::Read> reads;
    if (operand)
      reads.push_back({operand, l_.identity(rank)});
    const size_t key = reads.size();
    if (op_.isSeeded())
      for (Value scalar : {op_.getSeedMutable()[0].get(), op_.getStepMutable()[0].get()})
        reads.push_back({scalar, l_.map(rank, {})});
    SmallVector<Value> scalars;
    for (OpOperand& base : op_.getBaseMutable())
      scalars.push_back(base.get());
    l_.replace(l_.fused(
        type.getShape(), reads, LoweringBuilder::Write{type, l_.identity(rank)},
        [&](Body& b, ValueRange v) {
          Type i64 = b.builder.getI64Type();
          seed_ = op_.isSeeded() ? v[key] : b.integer(i64, 0);
          step_ = op_.isSeeded() ? v[key + 1] : b.integer(i64, 0);
          base_ = scalars.empty() ? Value() : v.back();
          return SmallVector<Value>{body(b, v)};
        },
        scalars));
  }

  /// Of the window's first element; null for 0.
  Value base() const { return base_; }
  /// The half of `element`, an index, counted from `base`.
  Value half(Body& b, Value element, Value base = {}) {
    return b.create<kernel::RandomHalfOp>(b.builder.getI32Type(), seed_, step_, element, base,
                                          static_cast<int64_t>(op_.getStream()),
                                          base ? op_.getWindowAttr().getMultiple() : 1);
  }
  /// The 32-bit word of `element`: its low and its high half are elements of their own.
  Value word(Body& b, Value element) {
    Value low = b.create<arith::MulIOp>(element, b.indexConstant(2)),
          high = b.create<arith::AddIOp>(low, b.indexConstant(1));
    Value sixteen = b.integer(b.builder.getI32Type(), 16);
    return b.create<arith::OrIOp>(half(b, low), b.create<arith::ShLIOp>(half(b, high), sixteen));
  }

private:
  ir::RandomOpInterface op_;
  LoweringBuilder& l_;
  Value seed_, step_, base_; ///< in the body
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
    const double p = op.getP().convertToDouble();
    RandomKernel kernel(op, l);
    kernel.replaceOp(op.getOperand(), [&](Body& b, ValueRange v) {
      Value half = kernel.half(b, globalIndex(b, op, op.getShared()), kernel.base());
      Value kept =
          b.compare(arith::CmpIPredicate::ult, half, b.integer(half.getType(), keepThreshold(p)));
      Value scaled = b.mul(v[0], b.constantLike(v[0], 1 / (1 - p)));
      return b.select(kept, scaled, b.constantLike(scaled, 0));
    });
    return success();
  }

  static LogicalResult lower(ir::RandomOp op, LoweringBuilder& l) {
    RandomKernel kernel(op, l);
    kernel.replaceOp(/*operand=*/{}, [&](Body& b, ValueRange) {
      Value element = globalIndex(b, op);
      if (kernel.base())
        element = b.create<arith::AddIOp>(element, kernel.base());
      Type compute = Body::computeType(op.getType().getElementType());
      if (op.getKind() == ir::RandomKind::Uniform)
        return uniform(b, compute, kernel.word(b, element));
      Value odd = b.create<arith::RemUIOp>(element, b.indexConstant(2));
      Value first = b.create<arith::SubIOp>(element, odd),
            second = b.create<arith::AddIOp>(first, b.indexConstant(1));
      Value isOdd = b.compare(arith::CmpIPredicate::ne, odd, b.indexConstant(0));
      return normal(b, compute, kernel.word(b, first), kernel.word(b, second), isOdd);
    });
    return success();
  }
};

} // namespace

void attachRandomRules(MLIRContext* context) {
  attachRules<Rules, ir::DropoutOp, ir::RandomOp>(context);
}

} // namespace titan::lower
