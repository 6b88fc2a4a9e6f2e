// titan-schedule-note-products: what runs while bytes travel, for *lower* to keep.
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/Products.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_NOTEPRODUCTS
#include "compiler/Schedule/Passes.h.inc"

namespace {

struct NoteProducts : impl::NoteProductsBase<NoteProducts> {
  void runOnOperation() override {
    Builder builder(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (auto [half, flops] : productsBehindHalves(function))
        half->setAttr(productsTag, builder.getI64IntegerAttr(flops));
  }
};

} // namespace

} // namespace titan
