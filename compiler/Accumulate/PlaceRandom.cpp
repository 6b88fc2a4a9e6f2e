#include "compiler/Accumulate/BatchDimension.h"
#include "compiler/Accumulate/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PLACERANDOM
#include "compiler/Accumulate/Passes.h.inc"

namespace {

void place(ir::DropoutOp dropout, accum::LoopOp loop, BatchDimension::Place place) {
  auto type = cast<RankedTensorType>(dropout.getOperand().getType());
  SmallVector<int64_t> global(type.getShape());
  int64_t dim = 0, stride = 0;
  bool batched = place.kind != BatchDimension::Kind::None && type.getRank() > 0;
  if (batched) {
    if (place.kind == BatchDimension::Kind::Dim)
      dim = place.dim;
    else
      remark::missed(dropout.getLoc(),
                     remark::RemarkOpts::name("place-random").category("accumulate"))
          << remark::reason("the batch of {0} cannot be followed: its microbatches draw as if "
                            "stacked along dimension 0",
                            ir::pathString(dropout));
    stride = type.getDimSize(dim);
    global[dim] *= loop.getCount();
  }
  dropout.setWindowAttr(ir::WindowAttr::get(dropout.getContext(), global, dim, stride));
  if (batched)
    dropout.getMicrobatchMutable().assign(loop.getIndex());
}

struct PlaceRandom : impl::PlaceRandomBase<PlaceRandom> {
  void runOnOperation() override {
    getOperation().walk([](accum::LoopOp loop) {
      BatchDimension batch(loop);
      // An adjoint draws what its forward op drew: the ops of one stream share the place of the
      // first. (The adjoint's own operand may be a constant, which says nothing about the batch.)
      llvm::DenseMap<uint64_t, BatchDimension::Place> places;
      for (auto dropout : loop.getBlock().getOps<ir::DropoutOp>())
        place(
            dropout, loop,
            places.try_emplace(dropout.getStream(), batch.of(dropout.getOperand())).first->second);
    });
  }
};

} // namespace

} // namespace titan
