// Lowering of titan.dropout: counter-based, keyed by the element's index in the global tensor.
#include "compiler/Lower/Rules.h"

#include "runtime/program/Random.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// The row-major index in the global tensor of the element at the body's coordinates, counted from
/// the window's first.
Value globalIndex(Body& b, ir::DropoutOp op) {
  auto shape = op.getType().getShape();
  std::optional<ir::WindowAttr> window = op.getWindow();
  ArrayRef<int64_t> global = window ? window->getGlobal() : shape;
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(value); };
  Value element;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    Value coordinate = b.index(d);
    element = element ? b.create<arith::AddIOp>(
                            b.create<arith::MulIOp>(element, constant(global[d])), coordinate)
                      : coordinate;
  }
  return element ? element : constant(0);
}

struct Rules {
  static LogicalResult lower(ir::DropoutOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    unsigned rank = type.getRank();
    double p = op.getP().convertToDouble();
    bool keyed = op.getSeed() != nullptr;
    SmallVector<LoweringBuilder::Read> reads = {{op.getOperand(), l.identity(rank)}};
    if (keyed) {
      reads.push_back({op.getSeed(), l.map(rank, {})});
      reads.push_back({op.getStep(), l.map(rank, {})});
    }
    SmallVector<Value> scalars;
    if (op.getBase())
      scalars.push_back(op.getBase());
    l.replace(l.fused(
        type.getShape(), reads, LoweringBuilder::Write{type, l.identity(rank)},
        [&](Body& b, ValueRange v) {
          Type i64 = b.builder.getI64Type();
          Value seed = keyed ? v[1] : b.integer(i64, 0), step = keyed ? v[2] : b.integer(i64, 0);
          Value base = scalars.empty() ? Value() : v.back();
          Value half = b.create<kernel::RandomHalfOp>(
              b.builder.getI32Type(), seed, step, globalIndex(b, op), base,
              static_cast<int64_t>(op.getStream()), base ? op.getWindow()->getMultiple() : 1);
          Value kept = b.compare(arith::CmpIPredicate::ult, half,
                                 b.integer(half.getType(), keepThreshold(p)));
          Value scaled = b.mul(v[0], b.constantLike(v[0], 1 / (1 - p)));
          return SmallVector<Value>{b.select(kept, scaled, b.constantLike(scaled, 0))};
        },
        scalars));
    return success();
  }
};

} // namespace

void attachRandomRules(MLIRContext* context) { attachRules<Rules, ir::DropoutOp>(context); }

} // namespace titan::lower
