// Lowering of the learning-rate schedule and the optimizer updates.
#include "compiler/Lower/Rules.h"
#include "compiler/Support/KernelKey.h"

#include <numbers>

using namespace mlir;

namespace titan::lower {

namespace {

double valueOf(const APFloat& value) { return value.convertToDouble(); }

/// The reads of an update: tensors at their own element, scalars at every point.
SmallVector<LoweringBuilder::Read> updateReads(LoweringBuilder& l, unsigned rank,
                                               ValueRange tensors, ValueRange scalars) {
  SmallVector<LoweringBuilder::Read> reads;
  for (Value tensor : tensors)
    reads.push_back({tensor, l.identity(rank)});
  for (Value scalar : scalars)
    reads.push_back({scalar, l.map(rank, {})});
  return reads;
}

/// An f32 scalar in the type that the update computes in.
Value scalarAs(Body& b, Value scalar, Value like) {
  return scalar.getType() == like.getType() ? scalar : b.narrow(scalar, like.getType());
}

struct Rules {
  static LogicalResult lower(ir::ScheduleOp op, LoweringBuilder& l) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Value operands[] = {op.getStep(), op.getLr(), op.getWarmup(), op.getSteps(), op.getMinRatio()};
    // In f64 and rounded once: the learning rate is a pure function of the step, whatever computes
    // it.
    l.replace(l.elementwise(type, operands, [&](Body& b, ValueRange v) {
      Type f64 = b.builder.getF64Type();
      auto real = [&](Value x) { return b.create<arith::SIToFPOp>(f64, x); };
      auto number = [&](double x) { return b.constant(f64, x); };
      Value step = v[0], warmup = v[2], one = number(1);
      Value lr = b.narrow(v[1], f64), minRatio = b.narrow(v[4], f64);
      Value span = b.create<arith::MaxSIOp>(b.integer(step.getType(), 1),
                                            b.create<arith::SubIOp>(v[3], warmup));
      Value t = b.div(real(b.create<arith::SubIOp>(step, warmup)), real(span));
      t = b.minimum(b.maximum(t, number(0)), one);
      Value drop = b.sub(one, minRatio), factor;
      switch (op.getKind()) {
      case ir::ScheduleKind::Constant:
        factor = one;
        break;
      case ir::ScheduleKind::Cosine: {
        Value cosine = b.create<math::CosOp>(b.mul(number(std::numbers::pi), t));
        factor = b.add(minRatio, b.mul(drop, b.div(b.add(one, cosine), number(2))));
        break;
      }
      case ir::ScheduleKind::Linear:
        factor = b.sub(one, b.mul(drop, t));
        break;
      case ir::ScheduleKind::Wsd: {
        Value late = b.div(b.sub(t, number(0.8)), number(0.2));
        Value isLate = b.compare(arith::CmpFPredicate::OGT, t, number(0.8));
        factor = b.select(isLate, b.sub(one, b.mul(drop, late)), one);
        break;
      }
      }
      Value warming = b.compare(arith::CmpIPredicate::slt, step, warmup);
      Value next = real(b.create<arith::AddIOp>(step, b.integer(step.getType(), 1)));
      Value rising = b.div(b.mul(lr, next), real(warmup));
      return b.select(warming, rising, b.mul(lr, factor));
    }));
    return success();
  }

  static LogicalResult lower(ir::SgdOp op, LoweringBuilder& l) {
    RankedTensorType type = tensorType(op.getParam());
    unsigned rank = type.getRank();
    bool hasBuffer = op.getMomentumBuffer() != nullptr;
    SmallVector<Value> tensors = {op.getParam(), op.getGradient()};
    if (hasBuffer)
      tensors.push_back(op.getMomentumBuffer());
    auto reads = updateReads(l, rank, tensors,
                             {op.getLr(), op.getWeightDecay(), op.getScale(), op.getApply()});
    SmallVector<LoweringBuilder::Write> writes(hasBuffer ? 2 : 1, {type, l.identity(rank)});
    l.replace(l.fused(type.getShape(), reads, writes, [&](Body& b, ValueRange v) {
      Value p = v[0], buffer = hasBuffer ? v[2] : Value(), apply = v.back();
      ValueRange scalars = v.take_back(4);
      Value lr = scalarAs(b, scalars[0], p), decay = scalarAs(b, scalars[1], p),
            scale = scalarAs(b, scalars[2], p);
      Value g = b.add(b.mul(scale, v[1]), b.mul(decay, p)), newBuffer;
      if (hasBuffer) {
        Value momentum = b.constantLike(p, valueOf(op.getMomentum()));
        newBuffer = b.add(b.mul(momentum, buffer), g);
        g = op.getNesterov() ? b.add(g, b.mul(momentum, newBuffer)) : newBuffer;
      }
      Value rate = b.mul(b.constantLike(p, valueOf(op.getLrScale())), lr);
      SmallVector<Value> yields = {b.select(apply, b.sub(p, b.mul(rate, g)), p)};
      if (hasBuffer)
        yields.push_back(b.select(apply, newBuffer, buffer));
      return yields;
    }));
    return success();
  }

  static LogicalResult lower(ir::AdamOp op, LoweringBuilder& l) {
    RankedTensorType type = tensorType(op.getParam());
    unsigned rank = type.getRank();
    double beta1 = valueOf(op.getBeta1()), beta2 = valueOf(op.getBeta2()),
           lrScale = valueOf(op.getLrScale());

    // What all elements share, once for the parameters of a group and not once per element.
    Value inputs[] = {op.getLr(), op.getWeightDecay(), op.getT()};
    KeyBuilder key;
    for (double number : {beta1, beta2, lrScale})
      key.add(number);
    auto build = [&](LoweringBuilder& shared) -> SmallVector<Value> {
      SmallVector<LoweringBuilder::Write> writes(3, {tensorType(op.getLr()), l.identity(0)});
      return shared.fused(
          {}, updateReads(shared, 0, {}, inputs), writes, [&](Body& b, ValueRange v) {
            Type f64 = b.builder.getF64Type();
            auto number = [&](double x) { return b.constant(f64, x); };
            Value updates = b.create<arith::SIToFPOp>(
                f64, b.create<arith::AddIOp>(v[2], b.integer(v[2].getType(), 1)));
            auto correction = [&](double beta) {
              return b.sub(number(1), b.create<math::PowFOp>(number(beta), updates));
            };
            Value rate = b.mul(number(lrScale), b.narrow(v[0], f64));
            Value keep = b.sub(number(1), b.mul(rate, b.narrow(v[1], f64)));
            return SmallVector<Value>{b.div(rate, correction(beta1)), b.sqrt(correction(beta2)),
                                      keep};
          });
    };
    ValueRange factors = l.shared(inputs, key.str(), build);

    Value scalars[] = {factors[0],          factors[1],    factors[2],
                       op.getWeightDecay(), op.getScale(), op.getApply()};
    auto reads = updateReads(
        l, rank, {op.getParam(), op.getGradient(), op.getExpAvg(), op.getExpAvgSq()}, scalars);
    SmallVector<LoweringBuilder::Write> writes(3, {type, l.identity(rank)});
    l.replace(l.fused(type.getShape(), reads, writes, [&](Body& b, ValueRange v) {
      Value p = v[0], m = v[2], s = v[3], apply = v[9];
      Value stepSize = scalarAs(b, v[4], p), root = scalarAs(b, v[5], p),
            keep = scalarAs(b, v[6], p);
      Value decay = scalarAs(b, v[7], p), scale = scalarAs(b, v[8], p);
      Value g = b.mul(scale, v[1]), decayed = p;
      if (op.getDecoupled())
        decayed = b.mul(p, keep);
      else
        g = b.add(g, b.mul(decay, p));
      Value newM = b.add(m, b.mul(b.constantLike(p, 1 - beta1), b.sub(g, m)));
      Value newS = b.add(b.mul(b.constantLike(p, beta2), s),
                         b.mul(b.mul(b.constantLike(p, 1 - beta2), g), g));
      Value denominator =
          b.add(b.div(b.sqrt(newS), root), b.constantLike(p, valueOf(op.getEpsilon())));
      Value newP = b.sub(decayed, b.div(b.mul(stepSize, newM), denominator));
      return SmallVector<Value>{b.select(apply, newP, p), b.select(apply, newM, m),
                                b.select(apply, newS, s)};
    }));
    return success();
  }
};

} // namespace

void attachOptimizerRules(MLIRContext* context) {
  attachRules<Rules, ir::ScheduleOp, ir::SgdOp, ir::AdamOp>(context);
}

} // namespace titan::lower
