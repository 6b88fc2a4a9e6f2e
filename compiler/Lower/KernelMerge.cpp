#include "compiler/Lower/KernelMerge.h"

#include "compiler/Lower/Address.h"
#include "compiler/Lower/Classify.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

namespace {

/// Clones the bodies of two kernels into one.
class BodyMerger {
public:
  BodyMerger(OpBuilder& builder, const MergedSpace& space) : builder(builder), space(space) {}

  /// False, with `why` set, if a reduction or a coordinate has no counterpart in the merged space.
  bool clone(FusedOp from, AffineMap toOwn, IRMapping& mapping, std::string& why) {
    for (Operation& op : from.getBlock().without_terminator()) {
      if (auto reduce = dyn_cast<kernel::ReduceOp>(op)) {
        SmallVector<int64_t> dims;
        for (int64_t d : reduce.getDims()) {
          auto dim = dyn_cast<AffineDimExpr>(toOwn.getResult(d));
          if (!dim && from.getSpace()[d] == 1)
            continue;
          if (!dim || space.extents[dim.getPosition()] != from.getSpace()[d] ||
              (!dims.empty() && dims.back() >= dim.getPosition())) {
            why = "a reduced dimension is cut up";
            return false;
          }
          dims.push_back(dim.getPosition());
        }
        Value value =
            kernel::ReduceOp::create(builder, op.getLoc(), reduce.getType(), reduce.getKind(),
                                     mapping.lookup(reduce.getValue()), dims);
        mapping.map(reduce.getResult(), value);
        if (isRowReduction(cast<kernel::ReduceOp>(value.getDefiningOp())) !=
            isRowReduction(reduce)) {
          why = "a reduction would change its order";
          return false;
        }
      } else if (auto index = dyn_cast<kernel::IndexOp>(op)) {
        mapping.map(index.getResult(), materialize(toOwn.getResult(index.getDim()), op.getLoc()));
      } else {
        builder.clone(op, mapping);
      }
    }
    return true;
  }

private:
  OpBuilder& builder;
  const MergedSpace& space;

  Value materialize(AffineExpr expr, Location loc) {
    Linear linear = *toLinear(expr, space.extents.size());
    Value sum;
    for (auto [d, stride] : llvm::enumerate(linear.strides)) {
      if (stride == 0)
        continue;
      Value term = kernel::IndexOp::create(builder, loc, d);
      if (stride != 1)
        term = arith::MulIOp::create(builder, loc, term,
                                     arith::ConstantIndexOp::create(builder, loc, stride));
      sum = sum ? arith::AddIOp::create(builder, loc, sum, term).getResult() : term;
    }
    if (!sum || linear.constant != 0) {
      Value constant = arith::ConstantIndexOp::create(builder, loc, linear.constant);
      sum = sum ? arith::AddIOp::create(builder, loc, sum, constant).getResult() : constant;
    }
    return sum;
  }
};

} // namespace

FailureOr<FusedOp> buildMerged(RewriterBase& rewriter, FusedOp producer, FusedOp consumer,
                               const MergedSpace& space, ArrayRef<unsigned> kept,
                               std::string& why) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(consumer);

  // Operands: each (value, map) once; where each body argument finds its own.
  SmallVector<Value> ins, outs, scalars;
  SmallVector<AffineMap> inMaps, outMaps;
  auto addIn = [&](Value value, AffineMap map) -> unsigned {
    // In the shape that it was written in, so that one value is one operand.
    if (Value source = sourceOf(value); source != value)
      if (auto address = addressOf(map, cast<ShapedType>(value.getType()).getShape()))
        if (auto direct = mapOf(*address, space.extents,
                                cast<ShapedType>(source.getType()).getShape(), map.getContext())) {
          value = source;
          map = *direct;
        }
    for (unsigned i = 0; i < ins.size(); ++i)
      if (ins[i] == value && inMaps[i] == map)
        return i;
    ins.push_back(value);
    inMaps.push_back(map);
    return ins.size() - 1;
  };
  auto addScalar = [&](Value value) -> unsigned {
    auto found = llvm::find(scalars, value);
    if (found == scalars.end())
      found = scalars.insert(scalars.end(), value);
    return found - scalars.begin();
  };
  // One spelling of equal maps: an out may lie on an in that has its map.
  auto composed = [&](AffineMap map, AffineMap with) {
    SmallVector<AffineExpr> results;
    for (AffineExpr expr : map.compose(with).getResults())
      results.push_back(toExpr(*toLinear(expr, space.extents.size()), map.getContext()));
    return AffineMap::get(space.extents.size(), 0, results, map.getContext());
  };

  SmallVector<unsigned> producerIns, consumerIns, producerScalars, consumerScalars;
  for (auto [i, in] : llvm::enumerate(producer.getIns()))
    producerIns.push_back(addIn(in, composed(producer.getInMap(i), space.toProducer)));
  for (auto [i, in] : llvm::enumerate(consumer.getIns()))
    consumerIns.push_back(sourceOf(in).getDefiningOp() == producer
                              ? 0
                              : addIn(in, composed(consumer.getInMap(i), space.toConsumer)));
  for (Value scalar : producer.getScalars())
    producerScalars.push_back(addScalar(scalar));
  for (Value scalar : consumer.getScalars())
    consumerScalars.push_back(addScalar(scalar));
  for (auto [j, out] : llvm::enumerate(consumer.getOuts())) {
    outs.push_back(out);
    outMaps.push_back(composed(consumer.getOutMap(j), space.toConsumer));
  }
  for (unsigned j : kept) {
    outs.push_back(producer.getOuts()[j]);
    outMaps.push_back(composed(producer.getOutMap(j), space.toProducer));
  }

  // A constant is nobody's: its paths and phase are those of whoever was first to need it.
  bool isConstant = producer.getIns().empty() && producer.getScalars().empty();
  auto phase = ir::getPhase(consumer);
  ArrayAttr path = ir::getPath(consumer);
  if (!isConstant) {
    phase = std::max(phase, ir::getPhase(producer));
    path = ir::joinPaths(ir::getPath(producer), path);
  }
  SmallVector<AffineMap> maps = inMaps;
  llvm::append_range(maps, outMaps);
  auto merged = FusedOp::create(
      rewriter, rewriter.getFusedLoc({producer.getLoc(), consumer.getLoc()}),
      TypeRange(ValueRange(outs)), ins, outs, scalars, kernel::KernelClass::Flat, space.extents,
      rewriter.getAffineMapArrayAttr(maps), path.empty() ? ArrayAttr() : path, ir::PhaseAttr());
  ir::setPhase(merged, phase);

  Block* block = rewriter.createBlock(&merged.getBody());
  SmallVector<Type> types(ins.size() + scalars.size(), rewriter.getIndexType());
  IRMapping producerMapping, consumerMapping;
  auto bind = [&](FusedOp from, ArrayRef<unsigned> inIndex, ArrayRef<unsigned> scalarIndex,
                  IRMapping& mapping, bool mapNow) {
    for (auto [i, argument] : llvm::enumerate(from.getBlock().getArguments())) {
      bool isIn = i < from.getIns().size();
      if (isIn && from == consumer && sourceOf(from.getIns()[i]).getDefiningOp() == producer)
        continue;
      unsigned position = isIn ? inIndex[i] : ins.size() + scalarIndex[i - from.getIns().size()];
      types[position] = argument.getType();
      if (mapNow)
        mapping.map(argument, block->getArgument(position));
    }
  };
  bind(producer, producerIns, producerScalars, producerMapping, false);
  bind(consumer, consumerIns, consumerScalars, consumerMapping, false);
  block->addArguments(types, SmallVector<Location>(types.size(), merged.getLoc()));
  bind(producer, producerIns, producerScalars, producerMapping, true);
  bind(consumer, consumerIns, consumerScalars, consumerMapping, true);

  auto abandon = [&]() -> FailureOr<FusedOp> {
    // A body without its terminator cannot be walked by listeners; drop it whole.
    rewriter.setInsertionPointToEnd(block);
    if (block->empty() || !block->back().hasTrait<OpTrait::IsTerminator>())
      kernel::YieldOp::create(rewriter, merged.getLoc());
    rewriter.eraseOp(merged);
    return failure();
  };
  rewriter.setInsertionPointToEnd(block);
  BodyMerger merger(rewriter, space);
  if (!merger.clone(producer, space.toProducer, producerMapping, why))
    return abandon();
  auto producerYield = cast<kernel::YieldOp>(producer.getBlock().getTerminator());
  for (auto [i, in] : llvm::enumerate(consumer.getIns()))
    if (auto result = dyn_cast<OpResult>(sourceOf(in)); result && result.getOwner() == producer)
      consumerMapping.map(
          consumer.getBlock().getArgument(i),
          producerMapping.lookup(producerYield.getValues()[result.getResultNumber()]));
  if (!merger.clone(consumer, space.toConsumer, consumerMapping, why))
    return abandon();
  SmallVector<Value> yields;
  for (Value value : cast<kernel::YieldOp>(consumer.getBlock().getTerminator()).getValues())
    yields.push_back(consumerMapping.lookup(value));
  for (unsigned j : kept)
    yields.push_back(producerMapping.lookup(producerYield.getValues()[j]));
  kernel::YieldOp::create(rewriter, merged.getLoc(), yields);

  FailureOr<Loops> loops = classify(merged, &why);
  if (failed(loops))
    return abandon();
  merged.setKernelClass(loops->kernelClass);
  DominanceInfo dominance(merged);
  eliminateCommonSubExpressions(rewriter, dominance, merged);
  return merged;
}

FusedOp dropUnusedResults(RewriterBase& rewriter, FusedOp op) {
  SmallVector<unsigned> used;
  for (OpResult result : op.getResults())
    if (!result.use_empty())
      used.push_back(result.getResultNumber());
  if (used.size() == op.getNumResults())
    return op;
  if (used.empty()) {
    rewriter.eraseOp(op);
    return nullptr;
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  auto yield = cast<kernel::YieldOp>(op.getBlock().getTerminator());
  SmallVector<Value> outs, yields;
  SmallVector<AffineMap> maps;
  for (unsigned i = 0; i < op.getIns().size(); ++i)
    maps.push_back(op.getInMap(i));
  for (unsigned j : used) {
    outs.push_back(op.getOuts()[j]);
    yields.push_back(yield.getValues()[j]);
    maps.push_back(op.getOutMap(j));
  }
  auto smaller =
      FusedOp::create(rewriter, op.getLoc(), TypeRange(ValueRange(outs)), op.getIns(), outs,
                      op.getScalars(), op.getKernelClass(), op.getSpace(),
                      rewriter.getAffineMapArrayAttr(maps), op.getPathAttr(), op.getPhaseAttr());
  smaller.getBody().takeBody(op.getBody());
  yield.getValuesMutable().assign(yields);
  for (Operation& dead : llvm::make_early_inc_range(llvm::reverse(smaller.getBlock())))
    if (isOpTriviallyDead(&dead))
      rewriter.eraseOp(&dead);
  for (auto [i, j] : llvm::enumerate(used))
    rewriter.replaceAllUsesWith(op.getResult(j), smaller.getResult(i));
  rewriter.eraseOp(op);
  return smaller;
}

} // namespace titan::lower
