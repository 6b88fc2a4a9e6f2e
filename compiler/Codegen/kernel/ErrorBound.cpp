#include "compiler/Codegen/kernel/ErrorBound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr double roundings = 0x1p-23; ///< of both sides, half a unit in the last place each
constexpr double functions = 0x1p-20; ///< of both sides' polynomials, with their roundings
constexpr double bf16Place = 0x1p-7;  ///< a unit in the last place of bf16, at most
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Writes bounds at the end of a body. A null value is the bound 0.
class BoundWriter {
public:
  BoundWriter(OpBuilder& builder, kernel::FusedOp op)
      : b(builder), loc(op.getLoc()), op(op), f32(builder.getF32Type()) {}

  Value boundOf(Value value) {
    Operation* definition = value.getDefiningOp();
    if (!definition)
      return {};
    auto [slot, isNew] = known.try_emplace(value);
    if (!isNew)
      return slot->second;
    Value bound = evaluate(definition, value);
    return known[value] = bound;
  }
  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value)));
  }

private:
  template <typename Op> Value create(Value a, Value c) { return Op::create(b, loc, a, c); }
  Value add(Value a, Value c) {
    if (!a || !c)
      return a ? a : c;
    return create<arith::AddFOp>(a, c);
  }
  Value mul(Value a, Value c) { return a && c ? create<arith::MulFOp>(a, c) : Value(); }
  Value mul(Value a, double factor) { return mul(a, number(factor)); }
  Value larger(Value a, Value c) {
    if (!a || !c)
      return a ? a : c;
    return create<arith::MaximumFOp>(a, c);
  }
  Value choose(Value condition, Value a, Value c) {
    return arith::SelectOp::create(b, loc, condition, a ? a : number(0), c ? c : number(0));
  }
  Value isAtMost(Value a, Value c) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, a, c);
  }

  /// The value as f32.
  Value toF32(Value value) {
    Type type = value.getType();
    if (type.isF32())
      return value;
    if (isa<FloatType>(type)) {
      if (type.getIntOrFloatBitWidth() > 32)
        return arith::TruncFOp::create(b, loc, f32, value);
      return arith::ExtFOp::create(b, loc, f32, value);
    }
    if (type.isIndex())
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    if (type.isInteger(1))
      return arith::UIToFPOp::create(b, loc, f32, value);
    return arith::SIToFPOp::create(b, loc, f32, value);
  }
  Value magnitude(Value value) { return math::AbsFOp::create(b, loc, toF32(value)); }
  Value distance(Value a, Value c) {
    return math::AbsFOp::create(b, loc, create<arith::SubFOp>(toF32(a), toF32(c)));
  }
  /// `inherited`, of the operands, and the result's own rounding.
  Value rounded(Value inherited, Value result, double unit = roundings) {
    return inherited ? add(inherited, mul(magnitude(result), unit)) : Value();
  }

  int64_t termsOf(kernel::ReduceOp reduce) {
    int64_t terms = 1;
    for (int64_t dim : reduce.getDims())
      terms *= op.getSpace()[dim];
    return terms;
  }
  Value reduced(kernel::ReduceKind kind, Value value, kernel::ReduceOp like) {
    return kernel::ReduceOp::create(b, loc, kind, value, like.getDims());
  }
  Value evaluate(kernel::ReduceOp reduce) {
    Value inherited = boundOf(reduce.getValue());
    const int64_t terms = termsOf(reduce);
    const bool isFloat = isa<FloatType>(reduce.getType());
    if (terms == 1)
      return inherited;
    switch (reduce.getKind()) {
    case kernel::ReduceKind::Add: {
      Value reordered = isFloat ? mul(magnitude(reduce.getValue()), sumTolerance(terms)) : Value();
      Value sum = add(inherited, reordered);
      return sum ? reduced(kernel::ReduceKind::Add, sum, reduce) : Value();
    }
    case kernel::ReduceKind::Max:
    case kernel::ReduceKind::Min:
      return inherited ? reduced(kernel::ReduceKind::Max, inherited, reduce) : Value();
    case kernel::ReduceKind::Mul:
      if (inherited)
        return number(infinity);
      return isFloat ? mul(magnitude(reduce.getResult()), roundings * static_cast<double>(terms))
                     : Value();
    }
    return number(infinity);
  }

  Value evaluate(Operation* definition, Value value) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(definition))
      return evaluate(reduce);
    SmallVector<Value, 3> bounds;
    bool isExact = true;
    for (Value operand : definition->getOperands()) {
      bounds.push_back(boundOf(operand));
      isExact = isExact && !bounds.back();
    }
    if (isExact) // the same arithmetic on the same numbers
      return isFunction(definition) ? mul(magnitude(value), functions) : Value();
    auto operand = [&](unsigned i) { return definition->getOperand(i); };
    // Of a function whose slope is at most `slope`.
    auto smooth = [&](double slope) { return rounded(mul(bounds[0], slope), value, functions); };
    return llvm::TypeSwitch<Operation*, Value>(definition)
        .Case<arith::AddFOp, arith::SubFOp>(
            [&](auto) { return rounded(add(bounds[0], bounds[1]), value); })
        .Case([&](arith::MulFOp) {
          return rounded(ofProduct(operand(0), bounds[0], operand(1), bounds[1]), value);
        })
        .Case([&](math::FmaOp) {
          Value product = ofProduct(operand(0), bounds[0], operand(1), bounds[1]);
          return rounded(add(product, bounds[2]), value);
        })
        .Case([&](arith::DivFOp) {
          Value above = add(bounds[0], mul(magnitude(value), bounds[1]));
          return rounded(quotient(above, operand(1), bounds[1]), value);
        })
        .Case<arith::NegFOp, math::AbsFOp, math::AbsIOp, arith::ExtFOp, arith::ExtSIOp,
              arith::ExtUIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp,
              arith::IndexCastOp>([&](auto) { return bounds[0]; })
        .Case<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
              arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp, arith::AndIOp,
              arith::OrIOp, arith::XOrIOp>([&](auto) { return larger(bounds[0], bounds[1]); })
        .Case([&](arith::TruncFOp) {
          const bool isShort = value.getType().getIntOrFloatBitWidth() == 16;
          return rounded(bounds[0], value, isShort ? bf16Place : roundings);
        })
        .Case<arith::AddIOp, arith::SubIOp>([&](auto) { return add(bounds[0], bounds[1]); })
        .Case<arith::FPToSIOp, arith::FPToUIOp, math::FloorOp, math::CeilOp, math::TruncOp,
              math::RoundEvenOp>([&](auto) { return add(bounds[0], number(1)); })
        .Case<arith::CmpFOp, arith::CmpIOp>(
            [&](auto) { return ofComparison(operand(0), operand(1), add(bounds[0], bounds[1])); })
        .Case([&](arith::SelectOp) { return ofSelect(operand(0), operand(1), operand(2)); })
        .Case([&](math::SqrtOp) { return ofRoot(value, bounds[0]); })
        .Case([&](math::RsqrtOp) {
          return rounded(quotient(mul(magnitude(value), bounds[0]), operand(0), bounds[0]), value,
                         functions);
        })
        .Case<math::ExpOp, math::Exp2Op>([&](auto) { return ofExponential(value, bounds[0]); })
        .Case([&](math::ExpM1Op) {
          Value exponential = create<arith::AddFOp>(toF32(value), number(1));
          return add(ofExponential(exponential, bounds[0]), mul(magnitude(value), functions));
        })
        .Case([&](math::LogOp) {
          return rounded(quotient(bounds[0], operand(0), bounds[0]), value, functions);
        })
        .Case([&](math::Log1pOp) {
          Value shifted = create<arith::AddFOp>(toF32(operand(0)), number(1));
          return rounded(quotient(bounds[0], shifted, bounds[0]), value, functions);
        })
        .Case<math::TanhOp, math::SinOp, math::CosOp, math::AtanOp>([&](auto) { return smooth(1); })
        .Case([&](math::ErfOp) { return smooth(1.2); })
        .Default([&](Operation*) { return number(infinity); });
  }

  /// Do machines have code of their own for it? ExpandMath's polynomials are one, but what their
  /// steps become is the back end's.
  bool isFunction(Operation* definition) {
    return isa<math::MathDialect>(definition->getDialect()) &&
           !isa<math::AbsFOp, math::AbsIOp, math::SqrtOp, math::FmaOp, math::FloorOp, math::CeilOp,
                math::TruncOp, math::RoundEvenOp, math::CopySignOp>(definition);
  }

  Value ofProduct(Value a, Value boundA, Value c, Value boundC) {
    Value first = boundC ? mul(magnitude(a), boundC) : Value();
    Value second = boundA ? mul(magnitude(c), boundA) : Value();
    return add(add(first, second), mul(boundA, boundC));
  }
  /// above / (|divisor| - bound), where that is known to be positive.
  Value quotient(Value above, Value divisor, Value bound) {
    Value below = magnitude(divisor);
    if (!bound)
      return create<arith::DivFOp>(above, below);
    Value least = create<arith::SubFOp>(below, bound);
    return choose(isAtMost(least, number(0)), number(infinity),
                  create<arith::DivFOp>(above, least));
  }
  /// 1 where the two sides may find another answer.
  Value ofComparison(Value a, Value c, Value bound) {
    return choose(isAtMost(distance(a, c), bound), number(1), {});
  }
  Value ofSelect(Value condition, Value a, Value c) {
    Value chosen = boundOf(condition);
    Value boundA = boundOf(a), boundC = boundOf(c);
    Value bound = boundA || boundC ? choose(condition, boundA, boundC) : Value();
    if (!chosen)
      return bound;
    Value either = add(distance(a, c), larger(boundA, boundC));
    return choose(isAtMost(chosen, number(0)), bound, either);
  }
  /// sqrt(x + e) - sqrt(x) is at most e / sqrt(x), and at most sqrt(e).
  Value ofRoot(Value root, Value bound) {
    Value least = arith::MinNumFOp::create(b, loc, create<arith::DivFOp>(bound, toF32(root)),
                                           math::SqrtOp::create(b, loc, bound));
    return rounded(least, root);
  }
  /// v (exp(e) - 1) is at most v e exp(e).
  Value ofExponential(Value value, Value bound) {
    Value growth = math::ExpOp::create(b, loc, bound);
    return rounded(mul(mul(magnitude(value), bound), growth), value, functions);
  }

  OpBuilder& b;
  Location loc;
  kernel::FusedOp op;
  Type f32;
  llvm::DenseMap<Value, Value> known;
};

/// A copy of the op in a function of its own, with `more` outs behind its own.
kernel::FusedOp copyOf(kernel::FusedOp op, ModuleOp module, ArrayRef<unsigned> more) {
  OpBuilder b(op.getContext());
  SmallVector<Type> types(op->getOperandTypes());
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getMaps().getAsValueRange<AffineMapAttr>())
    maps.push_back(map);
  for (unsigned out : more) {
    auto type = cast<MemRefType>(op.getOuts()[out].getType());
    types.push_back(MemRefType::Builder(type).setElementType(b.getF32Type()));
    maps.push_back(op.getOutMap(out));
  }
  b.setInsertionPointToEnd(module.getBody());
  auto function =
      func::FuncOp::create(b, op.getLoc(), "bounds", b.getFunctionType(types, TypeRange()));
  Block* entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  const size_t ins = op.getIns().size(), outs = op.getOuts().size();
  ValueRange arguments = entry->getArguments();
  SmallVector<Value> written(arguments.slice(ins, outs));
  llvm::append_range(written, arguments.take_back(more.size()));
  auto copy = kernel::FusedOp::create(
      b, op.getLoc(), TypeRange(), arguments.take_front(ins), written,
      arguments.slice(ins + outs, op.getScalars().size()), op.getKernelClass(), op.getSpace(),
      b.getAffineMapArrayAttr(maps), op.getPathAttr(), op.getPhaseAttr());
  IRMapping mapping;
  op.getBody().cloneInto(&copy.getBody(), mapping);
  func::ReturnOp::create(b, op.getLoc());
  return copy;
}

} // namespace

double sumTolerance(int64_t terms) {
  constexpr int64_t longestChain = 512;
  const auto chain = static_cast<double>(std::min(terms, longestChain));
  return std::max({0x1p-20, chain * 0x1p-24, static_cast<double>(terms) * 0x1p-32});
}

ErrorBounds boundErrors(kernel::FusedOp op) {
  ErrorBounds bounds;
  bounds.module = ModuleOp::create(op.getLoc());
  // Which outs have a bound is known when all are written: so twice.
  for (bool isKnown : {false, true}) {
    kernel::FusedOp copy = copyOf(op, *bounds.module, bounds.bounded);
    auto yield = cast<kernel::YieldOp>(copy.getBlock().getTerminator());
    OpBuilder b(yield);
    BoundWriter writer(b, copy);
    SmallVector<Value> values(yield.getValues());
    for (auto [out, value] : llvm::enumerate(yield.getValues()))
      if (Value bound = writer.boundOf(value)) {
        if (isKnown)
          values.push_back(bound);
        else
          bounds.bounded.push_back(static_cast<unsigned>(out));
      }
    if (isKnown) {
      yield.getValuesMutable().assign(values);
      bounds.op = copy;
    } else {
      copy->getParentOfType<func::FuncOp>().erase();
      if (bounds.bounded.empty())
        break;
    }
  }
  return bounds;
}

} // namespace titan::codegen
