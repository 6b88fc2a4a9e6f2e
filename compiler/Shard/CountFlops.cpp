#include "compiler/Shard/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_COUNTFLOPS
#include "compiler/Shard/Passes.h.inc"

namespace {

/// What the model asks for in `function`; the largest count that an i64 holds where that is more.
int64_t modelFlopsOf(func::FuncOp function) {
  uint64_t total = 0;
  function.walk([&](ir::CostedOpInterface op) {
    if (ir::getPhase(op) == ir::Phase::Update)
      return;
    auto loop = op->getParentOfType<accum::LoopOp>();
    const uint64_t times = loop ? iterationsOf(loop) : 1;
    total = llvm::SaturatingMultiplyAdd<uint64_t>(times, op.getModelFlops(), total);
  });
  return static_cast<int64_t>(std::min<uint64_t>(total, std::numeric_limits<int64_t>::max()));
}

struct CountFlops : impl::CountFlopsBase<CountFlops> {
  void runOnOperation() override {
    Builder builder(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      function->setAttr(ir::tag::modelFlops, builder.getI64IntegerAttr(modelFlopsOf(function)));
  }
};

} // namespace

} // namespace titan
