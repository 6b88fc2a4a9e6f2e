#include "compiler/Lower/KernelMerge.h"

#include "compiler/Lower/Address.h"
#include "compiler/Lower/BodyMerger.h"
#include "compiler/Lower/Classify.h"
#include "compiler/Lower/CombineKernels.h"
#include "compiler/Support/KernelKey.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

namespace {

/// Which operands that the two do not read from each other are one value, and which are shown in
/// another shape.
void addOtherOperands(KeyBuilder& key, FusedOp producer, FusedOp consumer) {
  SmallVector<Value> values;
  auto numberOf = [&](Value value) {
    auto found = llvm::find(values, value);
    const int64_t number = found - values.begin();
    if (found == values.end())
      values.push_back(value);
    return number;
  };
  for (FusedOp op : {producer, consumer}) {
    for (Value in : op.getIns()) {
      const Value source = sourceOf(in);
      if (source.getDefiningOp() == producer)
        continue;
      const bool isView = source != in;
      key.add(2 * numberOf(source) + isView);
      if (isView)
        key.add(source.getType());
    }
    for (Value scalar : op.getScalars())
      key.add(numberOf(scalar));
  }
}

void addSpace(KeyBuilder& key, const MergedSpace& space) {
  key.add(space.toProducer);
  key.add(space.toConsumer);
  for (int64_t extent : space.extents)
    key.add(extent);
}

class KernelMerger {
public:
  KernelMerger(PairRewriter& rewriter, KernelPair& pair, FusedOp producer, FusedOp consumer,
               const MergedSpace& space, ArrayRef<unsigned> kept)
      : rewriter(rewriter), pair(pair), space(space),
        producer{producer, rewriter.kernels.bodyOf(producer), space.toProducer},
        consumer{consumer, rewriter.kernels.bodyOf(consumer), space.toConsumer,
                 /*isConsumer=*/true},
        kept(kept) {}

  /// What keeps the two apart, whatever operands they have besides.
  std::string reasonApart() {
    std::string why;
    BodyMerger merger(rewriter, space);
    for (const MergedPart* part : {&producer, &consumer})
      if (!merger.keepsReductions(*part, why))
        return why;
    return reducesColumnSums() ? "a reduction of a column reduction's result" : "";
  }

  FailureOr<FusedOp> build(std::string& why) {
    auto [slot, isNew] = pair.merges.try_emplace(key().str());
    MergeResult& result = slot->second;
    if (!isNew) {
      why = result.why;
      if (!result.kernel)
        return failure();
      FusedOp merged = repeat(result);
      rewriter.kernels.addEqual(merged, *result.kernel);
      return merged;
    }
    FailureOr<FusedOp> merged = buildFirst(why);
    if (failed(merged)) {
      result.why = why;
      return failure();
    }
    result.ins = std::move(ins);
    result.scalars = std::move(scalars);
    result.maps = merged->getMaps();
    result.kernelClass = merged->getKernelClass();
    result.kernel = rewriter.kernels.addNew(*merged);
    return merged;
  }

private:
  using Operand = MergeResult::Operand;

  /// All but the pair that decides how the two are merged.
  KeyBuilder key() {
    KeyBuilder key;
    addSpace(key, space);
    key.add(kept.size());
    for (unsigned number : kept)
      key.add(number);
    addOtherOperands(key, producer.op, consumer.op);
    return key;
  }

  /// Builds the kernel, but for its body, from what came of an equal pair.
  FusedOp repeat(const MergeResult& result) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(consumer.op);
    ins = result.ins;
    scalars = result.scalars;
    return createKernel(result.maps, result.kernelClass);
  }

  FailureOr<FusedOp> buildFirst(std::string& why) {
    BodyMerger merger(rewriter, space);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(consumer.op);
    for (MergedPart* part : {&producer, &consumer})
      addOperands(*part);
    SmallVector<AffineMap> maps = inMaps;
    for (unsigned j = 0; j < consumer.op.getOuts().size(); ++j)
      maps.push_back(composed(consumer.op.getOutMap(j), consumer.toOwn));
    for (unsigned j : kept)
      maps.push_back(composed(producer.op.getOutMap(j), producer.toOwn));
    FusedOp merged = createKernel(rewriter.getAffineMapArrayAttr(maps), kernel::KernelClass::Flat);
    createBlock(merged);
    fillBody(merger, merged);
    FailureOr<Loops> loops = classify(merged, &why);
    if (failed(loops)) {
      rewriter.eraseOp(merged);
      return failure();
    }
    merged.setKernelClass(loops->kernelClass);
    simplifyBody(rewriter, merged.getBlock());
    return merged;
  }

  /// The result of the producer that `in` of the consumer shows, in whatever shape.
  OpResult producedBy(Value in) {
    auto result = dyn_cast<OpResult>(sourceOf(in));
    return result && result.getOwner() == producer.op ? result : OpResult();
  }
  bool isProduced(const MergedPart& part, Value in) { return &part == &consumer && producedBy(in); }

  void addOperands(MergedPart& part) {
    for (auto [i, in] : llvm::enumerate(part.op.getIns()))
      part.ins.push_back(isProduced(part, in) ? 0
                                              : addIn({part.isConsumer, static_cast<unsigned>(i)},
                                                      composed(part.op.getInMap(i), part.toOwn)));
    for (auto [i, scalar] : llvm::enumerate(part.op.getScalars())) {
      auto found = llvm::find_if(
          scalars, [&, &scalar = scalar](Operand known) { return scalarOf(known) == scalar; });
      if (found == scalars.end())
        found = scalars.insert(scalars.end(), {part.isConsumer, static_cast<unsigned>(i)});
      part.scalars.push_back(found - scalars.begin());
    }
  }

  FusedOp ownerOf(Operand operand) const { return operand.isConsumers ? consumer.op : producer.op; }
  Value inOf(Operand operand) const {
    Value in = ownerOf(operand).getIns()[operand.number];
    return operand.isSource ? sourceOf(in) : in;
  }
  Value scalarOf(Operand operand) const { return ownerOf(operand).getScalars()[operand.number]; }

  /// Each (value, map) is one operand.
  unsigned addIn(Operand operand, AffineMap map) {
    Value value = inOf(operand);
    // In the shape that it was written in, so that one value is one operand.
    if (Value source = sourceOf(value); source != value)
      if (auto address = addressOf(map, cast<ShapedType>(value.getType()).getShape()))
        if (auto direct = mapOf(*address, space.extents,
                                cast<ShapedType>(source.getType()).getShape(), map.getContext())) {
          value = source;
          operand.isSource = true;
          map = *direct;
        }
    for (unsigned i = 0; i < ins.size(); ++i)
      if (inOf(ins[i]) == value && inMaps[i] == map)
        return i;
    ins.push_back(operand);
    inMaps.push_back(map);
    return ins.size() - 1;
  }

  /// One spelling of equal maps: an out may lie on an in that has its map.
  AffineMap composed(AffineMap map, AffineMap with) {
    SmallVector<AffineExpr> results;
    for (AffineExpr expr : map.compose(with).getResults())
      results.push_back(toExpr(*toLinear(expr, space.extents.size()), map.getContext()));
    return AffineMap::get(space.extents.size(), 0, results, map.getContext());
  }

  FusedOp createKernel(ArrayAttr maps, kernel::KernelClass kernelClass) {
    auto phase = ir::getPhase(consumer.op);
    ArrayAttr path = ir::getPath(consumer.op);
    // A constant is nobody's: its paths and phase are those of whoever was first to need it.
    if (!producer.op.getIns().empty() || !producer.op.getScalars().empty()) {
      phase = std::max(phase, ir::getPhase(producer.op));
      path = ir::joinPaths(ir::getPath(producer.op), path);
    }
    SmallVector<Value> inputs, outs(consumer.op.getOuts()), counts;
    for (Operand operand : ins)
      inputs.push_back(inOf(operand));
    for (unsigned j : kept)
      outs.push_back(producer.op.getOuts()[j]);
    for (Operand operand : scalars)
      counts.push_back(scalarOf(operand));
    return FusedOp::create(
        rewriter, rewriter.getFusedLoc({producer.op.getLoc(), consumer.op.getLoc()}),
        TypeRange(ValueRange(outs)), inputs, outs, counts, kernelClass, space.extents, maps,
        path.empty() ? ArrayAttr() : path,
        phase == ir::Phase::Forward ? ir::PhaseAttr()
                                    : ir::PhaseAttr::get(rewriter.getContext(), phase));
  }

  /// The merged body with its arguments, which those of both kernels are mapped to.
  void createBlock(FusedOp merged) {
    Block* block = rewriter.createBlock(&merged.getBody());
    SmallVector<Type> types(ins.size() + scalars.size(), rewriter.getIndexType());
    for (const MergedPart* part : {&producer, &consumer})
      forEachArgument(*part, [&](BlockArgument argument, unsigned position) {
        types[position] = argument.getType();
      });
    block->addArguments(types, SmallVector<Location>(types.size(), merged.getLoc()));
    for (MergedPart* part : {&producer, &consumer})
      forEachArgument(*part, [&](BlockArgument argument, unsigned position) {
        part->body.map(argument, block->getArgument(position));
      });
  }

  /// Calls `visit` on each argument of the part's body that the merged body has too, with its
  /// number there.
  void forEachArgument(const MergedPart& part,
                       llvm::function_ref<void(BlockArgument, unsigned)> visit) {
    FusedOp op = part.op;
    size_t inCount = op.getIns().size();
    for (auto [i, argument] : llvm::enumerate(part.block.getArguments())) {
      if (i >= inCount)
        visit(argument, ins.size() + part.scalars[i - inCount]);
      else if (!isProduced(part, op.getIns()[i]))
        visit(argument, part.ins[i]);
    }
  }

  /// Does a reduction of the consumer take in what comes from a column reduction of the producer?
  /// One sweep (`classify`) has no place for it.
  bool reducesColumnSums() {
    llvm::SmallPtrSet<Operation*, 16> afterSweep;
    llvm::DenseSet<Value> late; // of the consumer's arguments
    auto readsLate = [&](Operation& op) {
      return llvm::any_of(op.getOperands(), [&](Value value) {
        return late.contains(value) || afterSweep.contains(value.getDefiningOp());
      });
    };
    for (Operation& op : producer.block.without_terminator()) {
      auto reduce = dyn_cast<kernel::ReduceOp>(op);
      if (readsLate(op) || (reduce && !isRowReduction(reduce.getDims(), producer.space())))
        afterSweep.insert(&op);
    }
    if (afterSweep.empty())
      return false;
    for (auto [in, argument] : llvm::zip(consumer.op.getIns(), consumer.block.getArguments()))
      if (OpResult result = producedBy(in))
        if (afterSweep.contains(yieldedBy(producer)[result.getResultNumber()].getDefiningOp()))
          late.insert(argument);
    for (Operation& op : consumer.block.without_terminator())
      if (readsLate(op)) {
        if (isa<kernel::ReduceOp>(op))
          return true;
        afterSweep.insert(&op);
      }
    return false;
  }

  /// Clones both bodies, the consumer's reading what the producer's yields.
  void fillBody(BodyMerger& merger, FusedOp merged) {
    merger.clone(producer);
    ValueRange produced = yieldedBy(producer);
    for (auto [i, in] : llvm::enumerate(consumer.op.getIns()))
      if (OpResult result = producedBy(in))
        consumer.body.map(consumer.block.getArgument(i),
                          producer.body.lookup(produced[result.getResultNumber()]));
    merger.clone(consumer);
    SmallVector<Value> yields;
    for (Value value : yieldedBy(consumer))
      yields.push_back(consumer.body.lookup(value));
    for (unsigned j : kept)
      yields.push_back(producer.body.lookup(produced[j]));
    kernel::YieldOp::create(rewriter, merged.getLoc(), yields);
  }

  static ValueRange yieldedBy(const MergedPart& part) {
    return cast<kernel::YieldOp>(part.block.getTerminator()).getValues();
  }

  PairRewriter& rewriter;
  KernelPair& pair;
  const MergedSpace& space;
  MergedPart producer, consumer;
  ArrayRef<unsigned> kept; ///< the producer's results that the merged kernel gives as well
  SmallVector<Operand> ins, scalars; ///< of the merged kernel
  SmallVector<AffineMap> inMaps;
};

} // namespace

KernelPair& PairRewriter::pairOf(FusedOp producer, FusedOp consumer) {
  KeyBuilder key;
  key.add(kernels.numberOf(producer));
  key.add(kernels.numberOf(consumer));
  for (Value in : consumer.getIns()) {
    const Value source = sourceOf(in);
    key.add(source.getDefiningOp() == producer ? cast<OpResult>(source).getResultNumber() : ~0u);
  }
  for (Value out : producer.getOuts())
    key.add(out.getDefiningOp<kernel::EmptyOp>() != nullptr);
  for (Value out : consumer.getOuts())
    key.add(sourceOf(out).getDefiningOp() == producer);
  return pairs[key.str()];
}

ArrayRef<KnownSpace> findKnownSpaces(KernelPair& pair, FusedOp producer, FusedOp consumer,
                                     std::string& why) {
  if (!pair.spaces) {
    pair.spaces.emplace();
    for (const MergedSpace& space : findMergedSpaces(producer, consumer, pair.why))
      pair.spaces->push_back({space, repeatsWork(space, producer),
                              repeatsAlongShortRows(space, producer),
                              visitsWholeSpace(space, producer)});
  }
  why = pair.why;
  return *pair.spaces;
}

StringRef findReasonApart(PairRewriter& rewriter, KernelPair& pair, FusedOp producer,
                          FusedOp consumer, const MergedSpace& space) {
  KeyBuilder key;
  addSpace(key, space);
  auto [reason, isNew] = pair.reasonsApart.try_emplace(key.str());
  if (isNew)
    reason->second = KernelMerger(rewriter, pair, producer, consumer, space, {}).reasonApart();
  return reason->second;
}

FailureOr<FusedOp> buildMerged(PairRewriter& rewriter, KernelPair& pair, FusedOp producer,
                               FusedOp consumer, const MergedSpace& space, ArrayRef<unsigned> kept,
                               std::string& why) {
  return KernelMerger(rewriter, pair, producer, consumer, space, kept).build(why);
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
