// Lowering of titan.convert.
#include "compiler/Lower/Rules.h"

#include <cmath>

using namespace mlir;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace titan::lower {

namespace {

/// Truncates toward zero, saturates what is out of range, makes NaN 0. arith.fptosi alone is
/// undefined there.
Value toInteger(Body& b, Value x, IntegerType type, bool isUnsigned) {
  unsigned width = type.getWidth();
  // The bounds are powers of two (or -1), exact in every float that x has been widened to.
  double high = std::ldexp(1.0, isUnsigned ? width : width - 1);
  Value above = b.compare(CmpFPredicate::OGE, x, b.constantLike(x, high));
  Value below = isUnsigned ? b.compare(CmpFPredicate::OLE, x, b.constantLike(x, -1))
                           : b.compare(CmpFPredicate::OLT, x, b.constantLike(x, -high));
  Value isNan = b.compare(CmpFPredicate::UNO, x, x);
  Value outside = b.create<arith::OrIOp>(b.create<arith::OrIOp>(above, below), isNan);
  Value safe = b.select(outside, b.constantLike(x, 0), x);
  Value inside =
      isUnsigned ? b.create<arith::FPToUIOp>(type, safe) : b.create<arith::FPToSIOp>(type, safe);
  auto constant = [&](const APInt& value) {
    return b.constant(b.builder.getIntegerAttr(type, value));
  };
  APInt largest = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  APInt smallest = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  return b.select(above, constant(largest), b.select(below, constant(smallest), inside));
}

struct Rules {
  static LogicalResult lower(ir::ConvertOp op, LoweringBuilder& l) {
    Type from = tensorType(op.getOperand()).getElementType(), to = op.getType().getElementType();
    bool fromUnsigned = from.isUnsignedInteger() || from.isInteger(1);
    l.replace(
        l.elementwise(op.getType(), op.getOperand(), [&](Body& b, ValueRange values) -> Value {
          Value x = values[0];
          if (isa<FloatType>(to)) {
            if (isa<FloatType>(from))
              return x; // the yield rounds
            Type wide = Body::computeType(to);
            return fromUnsigned ? b.create<arith::UIToFPOp>(wide, x)
                                : b.create<arith::SIToFPOp>(wide, x);
          }
          auto type = b.builder.getIntegerType(to.getIntOrFloatBitWidth());
          if (isa<FloatType>(from))
            return to.isInteger(1) ? b.compare(CmpFPredicate::UNE, x, b.constantLike(x, 0))
                                   : toInteger(b, x, type, to.isUnsignedInteger());
          if (to.isInteger(1))
            return from.isInteger(1) ? x
                                     : b.compare(CmpIPredicate::ne, x, b.integer(x.getType(), 0));
          return b.resize(x, type, fromUnsigned);
        }));
    return success();
  }
};

} // namespace

void attachConversionRules(MLIRContext* context) { attachRules<Rules, ir::ConvertOp>(context); }

} // namespace titan::lower
