#include "compiler/Accumulate/BatchDimension.h"
#include "compiler/Accumulate/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PLACERANDOM
#include "compiler/Accumulate/Passes.h.inc"

namespace {

/// Where the batch is in the tensor that `random` decides on, by the first of its operands that
/// depends on the batch.
BatchDimension::Place placeOf(ir::RandomOpInterface random, const BatchDimension& batch) {
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

void place(ir::RandomOpInterface random, accum::LoopOp loop, BatchDimension::Place place) {
  SmallVector<int64_t> global = random.getDrawnShape();
  int64_t dim = 0, stride = 0;
  bool batched = place.kind != BatchDimension::Kind::None && !global.empty();
  if (batched) {
    if (place.kind == BatchDimension::Kind::Dim)
      dim = place.dim;
    else
      remark::missed(random->getLoc(),
                     remark::RemarkOpts::name("place-random").category("accumulate"))
          << remark::reason("the batch of {0} cannot be followed: its microbatches draw as if "
                            "stacked along dimension 0",
                            ir::pathString(random));
    stride = global[dim];
    global[dim] *= loop.getCount();
  }
  random.place(ir::WindowAttr::get(loop.getContext(), global, dim, stride),
               batched ? Value(loop.getIndex()) : Value());
}

struct PlaceRandom : impl::PlaceRandomBase<PlaceRandom> {
  void runOnOperation() override {
    getOperation().walk([](accum::LoopOp loop) {
      BatchDimension batch(loop);
      // An adjoint draws what its forward op drew: the ops of one stream share the place of the
      // first. (The adjoint's own operand may be a constant, which says nothing about the batch.)
      llvm::DenseMap<uint64_t, BatchDimension::Place> places;
      for (ir::RandomOpInterface random : ir::randomOps(loop)) {
        auto [entry, isNew] = places.try_emplace(random.getStream());
        if (isNew)
          entry->second = placeOf(random, batch);
        place(random, loop, entry->second);
      }
    });
  }
};

} // namespace

} // namespace titan
