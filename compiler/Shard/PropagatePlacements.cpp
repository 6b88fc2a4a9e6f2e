#include "compiler/Shard/FunctionPlacements.h"
#include "compiler/Shard/Passes.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PROPAGATEPLACEMENTS
#include "compiler/Shard/Passes.h.inc"

namespace {

/// Notes what of the results of `op` is not replicated.
void note(Operation* op, const FunctionPlacements& placements) {
  const dist::MeshAttr mesh = placements.mesh();
  op->removeAttr(dist::placementsTag);
  SmallVector<Attribute> list;
  for (Value result : op->getResults())
    list.push_back(toAttribute(placements[result], mesh));
  if (llvm::any_of(list,
                   [](Attribute on) { return !cast<dist::PlacementAttr>(on).getAxes().empty(); }))
    op->setAttr(dist::placementsTag, ArrayAttr::get(op->getContext(), list));
}

struct PropagatePlacements : impl::PropagatePlacementsBase<PropagatePlacements> {
  void runOnOperation() override {
    if (!dist::meshOf(getOperation()))
      return;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FailureOr<FunctionPlacements> placements =
          FunctionPlacements::of(function, FunctionPlacements::Source::Rules);
      if (failed(placements))
        return signalPassFailure();
      function.getBody().walk([&](Operation* op) { note(op, *placements); });
    }
  }
};

} // namespace

} // namespace titan
