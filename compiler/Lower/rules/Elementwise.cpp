// Lowering of the elementwise ops: one scalar body each.
#include "compiler/Lower/Rules.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace titan::lower {

namespace {

bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }
bool isUnsigned(Value tensor) {
  Type element = tensorType(tensor).getElementType();
  return element.isUnsignedInteger() || element.isInteger(1);
}

LogicalResult unary(Operation* op, LoweringBuilder& lowering,
                    function_ref<Value(Body&, Value)> body) {
  lowering.replace(lowering.elementwise(cast<RankedTensorType>(op->getResult(0).getType()),
                                        op->getOperands(),
                                        [&](Body& b, ValueRange v) { return body(b, v[0]); }));
  return success();
}

LogicalResult binary(Operation* op, LoweringBuilder& lowering,
                     function_ref<Value(Body&, Value, Value)> body) {
  lowering.replace(
      lowering.elementwise(cast<RankedTensorType>(op->getResult(0).getType()), op->getOperands(),
                           [&](Body& b, ValueRange v) { return body(b, v[0], v[1]); }));
  return success();
}

Value sigmoid(Body& b, Value x) {
  return b.reciprocal(b.add(b.constantLike(x, 1), b.exp(b.neg(x))));
}

Value isPositive(Body& b, Value x) {
  return b.compare(CmpFPredicate::OGT, x, b.constantLike(x, 0));
}

CmpFPredicate floatPredicate(ir::ComparePredicate predicate) {
  switch (predicate) {
  case ir::ComparePredicate::EQ:
    return CmpFPredicate::OEQ;
  case ir::ComparePredicate::NE:
    return CmpFPredicate::UNE;
  case ir::ComparePredicate::LT:
    return CmpFPredicate::OLT;
  case ir::ComparePredicate::LE:
    return CmpFPredicate::OLE;
  case ir::ComparePredicate::GT:
    return CmpFPredicate::OGT;
  case ir::ComparePredicate::GE:
    return CmpFPredicate::OGE;
  }
  llvm_unreachable("all predicates are handled");
}

CmpIPredicate integerPredicate(ir::ComparePredicate predicate, bool isUnsigned) {
  switch (predicate) {
  case ir::ComparePredicate::EQ:
    return CmpIPredicate::eq;
  case ir::ComparePredicate::NE:
    return CmpIPredicate::ne;
  case ir::ComparePredicate::LT:
    return isUnsigned ? CmpIPredicate::ult : CmpIPredicate::slt;
  case ir::ComparePredicate::LE:
    return isUnsigned ? CmpIPredicate::ule : CmpIPredicate::sle;
  case ir::ComparePredicate::GT:
    return isUnsigned ? CmpIPredicate::ugt : CmpIPredicate::sgt;
  case ir::ComparePredicate::GE:
    return isUnsigned ? CmpIPredicate::uge : CmpIPredicate::sge;
  }
  llvm_unreachable("all predicates are handled");
}

/// The float op or the signed or unsigned integer op, by the operands' type.
template <typename FloatOp, typename SignedOp, typename UnsignedOp>
LogicalResult arithmetic(Operation* op, LoweringBuilder& lowering) {
  bool noSign = isUnsigned(op->getOperand(0));
  return binary(op, lowering, [&](Body& b, Value x, Value y) {
    if (isFloat(x))
      return b.create<FloatOp>(x, y);
    return noSign ? b.create<UnsignedOp>(x, y) : b.create<SignedOp>(x, y);
  });
}

/// Of integers: 0 by zero, and the least number by -1 wraps. The instructions trap at both.
Value integerQuotient(Body& b, Value x, Value y, bool noSign) {
  const auto number = [&](int64_t value) { return b.integer(y.getType(), value); };
  const auto isNumber = [&](int64_t value) {
    return b.compare(CmpIPredicate::eq, y, number(value));
  };
  Value isZero = isNumber(0), divisor = b.select(isZero, number(1), y), quotient;
  if (noSign) {
    quotient = b.create<arith::DivUIOp>(x, divisor);
  } else {
    Value isMinusOne = isNumber(-1);
    quotient = b.create<arith::DivSIOp>(x, b.select(isMinusOne, number(1), divisor));
    quotient = b.select(isMinusOne, b.create<arith::SubIOp>(number(0), x), quotient);
  }
  return b.select(isZero, number(0), quotient);
}

template <typename MathOp> LogicalResult function(Operation* op, LoweringBuilder& lowering) {
  return unary(op, lowering, [](Body& b, Value x) { return b.create<MathOp>(x); });
}

struct Rules {
  static LogicalResult lower(ir::NegOp op, LoweringBuilder& l) {
    return unary(op, l, [](Body& b, Value x) {
      return isFloat(x) ? b.neg(x) : b.create<arith::SubIOp>(b.integer(x.getType(), 0), x);
    });
  }
  static LogicalResult lower(ir::AbsOp op, LoweringBuilder& l) {
    bool noSign = isUnsigned(op.getOperand());
    return unary(op, l, [&](Body& b, Value x) {
      return isFloat(x) ? b.abs(x) : noSign ? x : b.create<math::AbsIOp>(x);
    });
  }
  static LogicalResult lower(ir::SignOp op, LoweringBuilder& l) {
    bool noSign = isUnsigned(op.getOperand());
    return unary(op, l, [&](Body& b, Value x) {
      if (isFloat(x)) {
        Value negative = b.compare(CmpFPredicate::OLT, x, b.constantLike(x, 0));
        return b.select(isPositive(b, x), b.constantLike(x, 1),
                        b.select(negative, b.constantLike(x, -1), x));
      }
      Value zero = b.integer(x.getType(), 0);
      Value positive = b.compare(noSign ? CmpIPredicate::ugt : CmpIPredicate::sgt, x, zero);
      Value rest = x;
      if (!noSign)
        rest = b.select(b.compare(CmpIPredicate::slt, x, zero), b.integer(x.getType(), -1), x);
      return b.select(positive, b.integer(x.getType(), 1), rest);
    });
  }
  static LogicalResult lower(ir::FloorOp op, LoweringBuilder& l) {
    return function<math::FloorOp>(op, l);
  }
  static LogicalResult lower(ir::CeilOp op, LoweringBuilder& l) {
    return function<math::CeilOp>(op, l);
  }
  static LogicalResult lower(ir::RoundOp op, LoweringBuilder& l) {
    return function<math::RoundEvenOp>(op, l);
  }
  static LogicalResult lower(ir::ExpOp op, LoweringBuilder& l) {
    return function<math::ExpOp>(op, l);
  }
  static LogicalResult lower(ir::Expm1Op op, LoweringBuilder& l) {
    return function<math::ExpM1Op>(op, l);
  }
  static LogicalResult lower(ir::LogOp op, LoweringBuilder& l) {
    return function<math::LogOp>(op, l);
  }
  static LogicalResult lower(ir::Log1pOp op, LoweringBuilder& l) {
    return function<math::Log1pOp>(op, l);
  }
  static LogicalResult lower(ir::SqrtOp op, LoweringBuilder& l) {
    return function<math::SqrtOp>(op, l);
  }
  static LogicalResult lower(ir::SinOp op, LoweringBuilder& l) {
    return function<math::SinOp>(op, l);
  }
  static LogicalResult lower(ir::CosOp op, LoweringBuilder& l) {
    return function<math::CosOp>(op, l);
  }
  static LogicalResult lower(ir::AtanOp op, LoweringBuilder& l) {
    return function<math::AtanOp>(op, l);
  }
  static LogicalResult lower(ir::TanhOp op, LoweringBuilder& l) {
    return function<math::TanhOp>(op, l);
  }
  static LogicalResult lower(ir::ErfOp op, LoweringBuilder& l) {
    return function<math::ErfOp>(op, l);
  }
  // Not math.rsqrt, which targets approximate: the quotient of the rounded root is the op's
  // definition.
  static LogicalResult lower(ir::RsqrtOp op, LoweringBuilder& l) {
    return unary(op, l, [](Body& b, Value x) { return b.reciprocal(b.sqrt(x)); });
  }
  static LogicalResult lower(ir::SigmoidOp op, LoweringBuilder& l) { return unary(op, l, sigmoid); }
  static LogicalResult lower(ir::ReluOp op, LoweringBuilder& l) {
    return unary(op, l, [](Body& b, Value x) { return b.maximum(x, b.constantLike(x, 0)); });
  }
  static LogicalResult lower(ir::SiluOp op, LoweringBuilder& l) {
    return unary(op, l, [](Body& b, Value x) { return b.mul(x, sigmoid(b, x)); });
  }
  static LogicalResult lower(ir::SoftplusOp op, LoweringBuilder& l) {
    return unary(op, l, [](Body& b, Value x) {
      return b.add(b.maximum(x, b.constantLike(x, 0)), b.log1p(b.exp(b.neg(b.abs(x)))));
    });
  }
  static LogicalResult lower(ir::GeluOp op, LoweringBuilder& l) {
    return unary(op, l, [&](Body& b, Value x) {
      Value inner;
      if (op.getForm() == ir::GeluForm::Erf) {
        inner = b.create<math::ErfOp>(b.mul(x, b.constantLike(x, 1 / std::numbers::sqrt2)));
      } else {
        Value cube = b.mul(b.mul(x, x), x);
        Value sum = b.add(x, b.mul(b.constantLike(x, 0.044715), cube));
        inner =
            b.create<math::TanhOp>(b.mul(b.constantLike(x, std::sqrt(2 / std::numbers::pi)), sum));
      }
      return b.mul(b.mul(x, b.constantLike(x, 0.5)), b.add(b.constantLike(x, 1), inner));
    });
  }
  static LogicalResult lower(ir::LeakyReluOp op, LoweringBuilder& l) {
    return unary(op, l, [&](Body& b, Value x) {
      return b.select(isPositive(b, x), x,
                      b.mul(x, b.constantLike(x, op.getAlpha().convertToDouble())));
    });
  }
  static LogicalResult lower(ir::EluOp op, LoweringBuilder& l) {
    return unary(op, l, [&](Body& b, Value x) {
      Value below =
          b.mul(b.constantLike(x, op.getAlpha().convertToDouble()), b.create<math::ExpM1Op>(x));
      return b.select(isPositive(b, x), x, below);
    });
  }
  static LogicalResult lower(ir::HardSigmoidOp op, LoweringBuilder& l) {
    return unary(op, l, [&](Body& b, Value x) {
      Value line = b.add(b.mul(x, b.constantLike(x, op.getAlpha().convertToDouble())),
                         b.constantLike(x, op.getBeta().convertToDouble()));
      return b.maximum(b.constantLike(x, 0), b.minimum(b.constantLike(x, 1), line));
    });
  }
  static LogicalResult lower(ir::NotOp op, LoweringBuilder& l) {
    return unary(op, l, [](Body& b, Value x) {
      return b.create<arith::XOrIOp>(x, b.integer(x.getType(), 1));
    });
  }
  static LogicalResult lower(ir::IsFiniteOp op, LoweringBuilder& l) {
    return unary(op, l, [](Body& b, Value x) {
      return b.compare(CmpFPredicate::OLT, b.abs(x), b.constantLike(x, HUGE_VAL));
    });
  }

  static LogicalResult lower(ir::AddOp op, LoweringBuilder& l) {
    return arithmetic<arith::AddFOp, arith::AddIOp, arith::AddIOp>(op, l);
  }
  static LogicalResult lower(ir::SubOp op, LoweringBuilder& l) {
    return arithmetic<arith::SubFOp, arith::SubIOp, arith::SubIOp>(op, l);
  }
  static LogicalResult lower(ir::MulOp op, LoweringBuilder& l) {
    return arithmetic<arith::MulFOp, arith::MulIOp, arith::MulIOp>(op, l);
  }
  static LogicalResult lower(ir::DivOp op, LoweringBuilder& l) {
    bool noSign = isUnsigned(op.getLhs());
    return binary(op, l, [&](Body& b, Value x, Value y) {
      return isFloat(x) ? b.div(x, y) : integerQuotient(b, x, y, noSign);
    });
  }
  static LogicalResult lower(ir::MaxOp op, LoweringBuilder& l) {
    return arithmetic<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(op, l);
  }
  static LogicalResult lower(ir::MinOp op, LoweringBuilder& l) {
    return arithmetic<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(op, l);
  }
  static LogicalResult lower(ir::AndOp op, LoweringBuilder& l) {
    return binary(op, l, [](Body& b, Value x, Value y) { return b.create<arith::AndIOp>(x, y); });
  }
  static LogicalResult lower(ir::OrOp op, LoweringBuilder& l) {
    return binary(op, l, [](Body& b, Value x, Value y) { return b.create<arith::OrIOp>(x, y); });
  }
  static LogicalResult lower(ir::PowOp op, LoweringBuilder& l) {
    return binary(op, l, [](Body& b, Value x, Value y) { return b.create<math::PowFOp>(x, y); });
  }
  static LogicalResult lower(ir::RemOp op, LoweringBuilder& l) {
    return binary(op, l, [](Body& b, Value x, Value y) { return b.create<arith::RemFOp>(x, y); });
  }
  static LogicalResult lower(ir::CompareOp op, LoweringBuilder& l) {
    bool noSign = isUnsigned(op.getLhs());
    return binary(op, l, [&](Body& b, Value x, Value y) {
      return isFloat(x) ? b.compare(floatPredicate(op.getPredicate()), x, y)
                        : b.compare(integerPredicate(op.getPredicate(), noSign), x, y);
    });
  }
  static LogicalResult lower(ir::SelectOp op, LoweringBuilder& l) {
    l.replace(l.elementwise(op.getType(), op->getOperands(),
                            [](Body& b, ValueRange v) { return b.select(v[0], v[1], v[2]); }));
    return success();
  }
};

template <typename... Ops> struct OpList {
  static void attach(MLIRContext* context) { attachRules<Rules, Ops...>(context); }
  static bool contains(Operation* op) { return isa<Ops...>(op); }
};
using ElementwiseOps =
    OpList<ir::NegOp, ir::AbsOp, ir::SignOp, ir::FloorOp, ir::CeilOp, ir::RoundOp, ir::ExpOp,
           ir::Expm1Op, ir::LogOp, ir::Log1pOp, ir::SqrtOp, ir::RsqrtOp, ir::SinOp, ir::CosOp,
           ir::AtanOp, ir::TanhOp, ir::SigmoidOp, ir::ErfOp, ir::ReluOp, ir::SiluOp, ir::SoftplusOp,
           ir::NotOp, ir::GeluOp, ir::LeakyReluOp, ir::EluOp, ir::HardSigmoidOp, ir::IsFiniteOp,
           ir::AddOp, ir::SubOp, ir::MulOp, ir::DivOp, ir::MaxOp, ir::MinOp, ir::PowOp, ir::RemOp,
           ir::AndOp, ir::OrOp, ir::CompareOp, ir::SelectOp>;

} // namespace

void attachElementwiseRules(MLIRContext* context) { ElementwiseOps::attach(context); }

bool isElementwise(Operation* op) { return ElementwiseOps::contains(op) || isa<ir::ConvertOp>(op); }

} // namespace titan::lower
