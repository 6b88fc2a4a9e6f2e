#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/BatchDimension.h"

#include "compiler/Support/LoopChain.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PLACERANDOM
#include "compiler/Accumulate/Passes.h.inc"

namespace {

/// Where the batch is in values that do not depend on it, by the first of their readers that
/// combines them with what does. None: one is there for all samples.
class PlacesByReaders {
public:
  explicit PlacesByReaders(const BatchDimension& batch) : batch_(batch) {}

  BatchDimension::Place of(Value value) {
    auto [entry, isNew] = places_.try_emplace(value);
    if (!isNew)
      return entry->second;
    BatchDimension::Place place;
    for (OpOperand& use : value.getUses())
      if (place = placeBy(use); place.kind == Kind::Dim)
        break;
    return places_[value] = place;
  }

private:
  using Kind = BatchDimension::Kind;

  BatchDimension::Place placeBy(OpOperand& use) {
    auto reader = dyn_cast<ir::ShardableOpInterface>(use.getOwner());
    if (!reader)
      return {};
    const ir::ShardingRule rule = reader.getShardingRule();
    std::optional<int64_t> factor;
    const auto take = [&](BatchDimension::Place place, ArrayRef<ir::ShardingRule::Dims> values,
                          size_t i) {
      if (place.kind == Kind::Dim && !values[i][place.dim].empty())
        factor = values[i][place.dim].front();
    };
    for (auto [i, operand] : llvm::enumerate(reader->getOperands()))
      take(batch_.of(operand), rule.operands, i);
    if (!factor)
      for (auto [i, result] : llvm::enumerate(reader->getResults()))
        if (batch_.of(result).kind == Kind::None)
          take(of(result), rule.results, i);
    const int64_t dim =
        factor ? ir::ShardingRule::findDim(rule.operands[use.getOperandNumber()], *factor) : -1;
    return dim < 0 ? BatchDimension::Place() : BatchDimension::Place{Kind::Dim, dim};
  }

  const BatchDimension& batch_;
  llvm::DenseMap<Value, BatchDimension::Place> places_;
};

/// Where the batch is in the tensor that `random` decides on, by the first of its operands that
/// depends on the batch; of numbers that have no operand by their readers.
BatchDimension::Place placeOf(ir::RandomOpInterface random, const BatchDimension& batch,
                              PlacesByReaders& byReaders) {
  if (auto numbers = dyn_cast<ir::RandomOp>(*random)) {
    // Of numbers that all samples share each microbatch has its own, stacked along the first
    // dimension.
    BatchDimension::Place place = byReaders.of(numbers.getResult());
    return {BatchDimension::Kind::Dim, std::max<int64_t>(place.dim, 0)};
  }
  for (auto [i, operand] : llvm::enumerate(random->getOperands())) {
    SmallVector<int64_t> dims = random.getDrawnDims(i);
    BatchDimension::Place place = batch.of(operand);
    if (dims.empty() || place.kind == BatchDimension::Kind::None)
      continue;
    if (place.kind == BatchDimension::Kind::Dim && dims[place.dim] >= 0)
      return {BatchDimension::Kind::Dim, dims[place.dim]};
    return {BatchDimension::Kind::Unknown, -1};
  }
  return {};
}

/// Bases of the windows of one loop's random ops, at the start of its body.
class Bases {
public:
  explicit Bases(accum::LoopOp loop)
      : loop_(loop), builder_(OpBuilder::atBlockBegin(&loop.getBlock())) {}

  /// The number of the microbatch, in the order in which the loops run them, times `elements`.
  Value of(int64_t elements) {
    Value& base = bases_[elements];
    if (base)
      return base;
    int64_t stride = elements;
    for (accum::LoopOp loop = loop_; loop; loop = loop.getOuter()) {
      Value constant = arith::ConstantIndexOp::create(builder_, loop_.getLoc(), stride);
      Value term = arith::MulIOp::create(builder_, loop_.getLoc(), loop.getIndex(), constant);
      base = base ? arith::AddIOp::create(builder_, loop_.getLoc(), base, term).getResult() : term;
      stride *= static_cast<int64_t>(loop.getCount());
    }
    return base;
  }

private:
  accum::LoopOp loop_;
  OpBuilder builder_;
  llvm::DenseMap<int64_t, Value> bases_;
};

void place(ir::RandomOpInterface random, accum::LoopOp loop, BatchDimension::Place place,
           Bases& bases) {
  SmallVector<int64_t> global = random.getDrawnShape();
  if (place.kind == BatchDimension::Kind::None || global.empty())
    return random.place(ir::WindowAttr::get(loop.getContext(), global, /*multiple=*/1), Value());
  int64_t dim = 0;
  if (place.kind == BatchDimension::Kind::Dim)
    dim = place.dim;
  else
    remark::missed(random->getLoc(),
                   remark::RemarkOpts::name("place-random").category("accumulate"))
        << remark::reason("the batch of {0} cannot be followed: its microbatches draw as if "
                          "stacked along dimension 0",
                          ir::pathString(random));
  int64_t elements = 1; // from a microbatch's first element to the next one's
  for (int64_t extent : ArrayRef(global).drop_front(dim))
    elements *= extent;
  global[dim] *= iterationsOf(loop);
  random.place(ir::WindowAttr::get(loop.getContext(), global, elements), bases.of(elements));
}

struct PlaceRandom : impl::PlaceRandomBase<PlaceRandom> {
  void runOnOperation() override {
    getOperation().walk([](accum::LoopOp loop) {
      if (!loop.getBlock().getOps<accum::LoopOp>().empty())
        return; // the innermost is the one over microbatches
      BatchDimension batch(loop.getBlock(), loop.getSlices());
      PlacesByReaders byReaders(batch);
      Bases bases(loop);
      // An adjoint draws what its forward op drew: the ops of one stream share the place of the
      // first. (The adjoint's own operand may be a constant, which says nothing about the batch.)
      llvm::DenseMap<uint64_t, BatchDimension::Place> places;
      for (ir::RandomOpInterface random : ir::randomOps(loop)) {
        auto [entry, isNew] = places.try_emplace(random.getStream());
        if (isNew)
          entry->second = placeOf(random, batch, byReaders);
        place(random, loop, entry->second, bases);
      }
    });
  }
};

} // namespace

} // namespace titan
