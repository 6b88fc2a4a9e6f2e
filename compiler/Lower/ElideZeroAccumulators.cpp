// titan-lower-elide-zero-accumulators: 0 + x is x, in a loop that runs once.
#include "compiler/Lower/Passes.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_ELIDEZEROACCUMULATORS
#include "compiler/Lower/Passes.h.inc"

namespace {

bool isPositiveZero(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return false;
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().isPosZero();
  return splat.getSplatValue<APInt>().isZero();
}

struct ElideZeroAccumulators : impl::ElideZeroAccumulatorsBase<ElideZeroAccumulators> {
  void runOnOperation() override {
    getOperation().walk([](accum::LoopOp loop) {
      if (loop.getCount() != 1 || loop.getOrder() != accum::Order::Running)
        return;
      for (auto [accumulator, operand] :
           llvm::zip_equal(loop.getAccumulators(), loop.getInitsMutable())) {
        if (!isPositiveZero(operand.get()))
          continue;
        for (Operation* user : llvm::make_early_inc_range(accumulator.getUsers())) {
          if (auto contract = dyn_cast<ir::ContractOp>(user)) {
            if (contract.getAcc() == accumulator)
              contract.getAccMutable().clear();
          } else if (auto add = dyn_cast<ir::AddOp>(user)) {
            add.getResult().replaceAllUsesWith(add.getLhs() == accumulator ? add.getRhs()
                                                                           : add.getLhs());
            add.erase();
          }
        }
        // Nobody reads the zeros any more, so nobody writes them.
        if (accumulator.use_empty()) {
          OpBuilder builder(loop);
          operand.set(kernel::EmptyOp::create(builder, loop.getLoc(),
                                              cast<RankedTensorType>(accumulator.getType())));
        }
      }
    });
  }
};

} // namespace
} // namespace titan
