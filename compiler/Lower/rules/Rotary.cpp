// Lowering of titan.rotary.
#include "compiler/Lower/Rules.h"

using namespace mlir;

namespace titan::lower {

namespace {

struct Rules {
  /// One kernel over [batch, position, head, half, pair]: the other element of a pair lies at a
  /// fixed distance, forwards from the first half and backwards from the second, so that it is an
  /// affine map of its own and vectors run along the pairs. What is not rotated is copied by
  /// another.
  static LogicalResult lower(ir::RotaryOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType(), angles = tensorType(op.getCos());
    ArrayRef<int64_t> shape = type.getShape();
    int64_t pairs = angles.getShape().back(), width = shape[3];
    AffineExpr half = l.dim(3), pair = l.dim(4);
    auto at = [&](AffineExpr which) {
      AffineExpr element = op.getInterleaved() ? pair * 2 + which : which * pairs + pair;
      return l.map(5, {l.dim(0), l.dim(1), l.dim(2), element});
    };
    AffineMap own = at(half), other = at(half * -1 + 1);
    SmallVector<AffineExpr> angle = {l.dim(1), pair};
    if (angles.getRank() == 3)
      angle.insert(angle.begin(),
                   angles.getDimSize(0) == 1 ? getAffineConstantExpr(0, l.context) : l.dim(0));
    AffineMap byPosition = l.map(5, angle);
    LoweringBuilder::Read reads[] = {{op.getOperand(), own},
                                     {op.getOperand(), other},
                                     {op.getCos(), byPosition},
                                     {op.getSin(), byPosition}};
    SmallVector<int64_t> space(shape.take_front(3));
    space.append({2, pairs});
    Value rotated =
        l.fused(space, reads, LoweringBuilder::Write{type, own}, [&](Body& b, ValueRange v) {
          Type compute = v[2].getType();
          Value x = b.narrow(v[0], compute), y = b.narrow(v[1], compute);
          // a cos - b sin for the first, b cos + a sin for the second.
          Value straight = b.mul(x, v[2]), crossed = b.mul(y, v[3]);
          Value isFirst = b.compare(arith::CmpIPredicate::eq, b.index(3), b.indexConstant(0));
          return SmallVector<Value>{b.add(straight, b.select(isFirst, b.neg(crossed), crossed))};
        })[0];
    int64_t rest = width - 2 * pairs;
    if (rest > 0) {
      AffineMap passed = l.map(4, {l.dim(0), l.dim(1), l.dim(2), l.dim(3) + 2 * pairs});
      SmallVector<int64_t> passedSpace(shape.take_front(3));
      passedSpace.push_back(rest);
      rotated = l.fused(passedSpace, LoweringBuilder::Read{op.getOperand(), passed},
                        LoweringBuilder::Write{type, passed, rotated},
                        [](Body&, ValueRange v) { return SmallVector<Value>(v); })[0];
    }
    l.replace(rotated);
    return success();
  }
};

} // namespace

void attachRotaryRules(MLIRContext* context) { attachRules<Rules, ir::RotaryOp>(context); }

} // namespace titan::lower
