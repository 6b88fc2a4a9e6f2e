// titan-lower-fuse-epilogues: bias, relu and rounding become part of the matrix product before
// them.
#include "compiler/Lower/BiasEpilogue.h"
#include "compiler/Lower/OperandRounding.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Lower/RoundingEpilogue.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/TargetInfo.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FUSEEPILOGUES
#include "compiler/Lower/Passes.h.inc"

namespace {

auto report(Location loc) {
  return remark::passed(loc, remark::RemarkOpts::name("fuse-epilogues").category("lower"));
}

struct FuseEpilogues : impl::FuseEpiloguesBase<FuseEpilogues> {
  void runOnOperation() override {
    FailureOr<MachineModel> machine = getMachine(getOperation());
    if (failed(machine))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (kernel::FusedOp op : collect<kernel::FusedOp>())
      absorbBias(rewriter, op);
    for (kernel::CallOp call : collect<kernel::CallOp>())
      absorbRounding(rewriter, call);
    // Now that products say what they give.
    for (kernel::FusedOp cast : collect<kernel::FusedOp>())
      absorbOperandRounding(rewriter, cast, machine->roundedOperandTileRows);
  }

  /// All of them before any is replaced.
  template <typename Op> SmallVector<Op> collect() {
    SmallVector<Op> ops;
    getOperation().walk([&](Op op) { ops.push_back(op); });
    return ops;
  }

  static void absorbBias(RewriterBase& rewriter, kernel::FusedOp op) {
    std::optional<lower::BiasEpilogue> epilogue = lower::matchBiasEpilogue(op);
    if (!epilogue)
      return;
    if (isCollectiveBetween(epilogue->call, op)) {
      remark::missed(op.getLoc(), remark::RemarkOpts::name("fuse-epilogues").category("lower"))
          << remark::add("the product of '{0}' keeps apart from its bias or relu",
                         ir::describePlace(epilogue->call))
          << remark::reason("a collective starts or is awaited between the two");
      return;
    }
    std::string place = ir::describePlace(epilogue->call);
    kernel::CallOp fused = lower::absorbBiasEpilogue(rewriter, op, *epilogue);
    report(fused.getLoc()) << remark::add("the product of '{0}' adds {1}", place,
                                          !epilogue->bias  ? "relu"
                                          : epilogue->relu ? "bias and relu"
                                                           : "bias");
  }

  static void absorbRounding(RewriterBase& rewriter, kernel::CallOp call) {
    kernel::CallOp rounded = lower::absorbRounding(rewriter, call);
    if (!rounded)
      return;
    kernel::GemmAttr gemm = rounded.getGemm();
    report(rounded.getLoc()) << remark::add(
        "the product of '{0}' {1}rounds to bf16", ir::describePlace(rounded),
        gemm.getBias() && gemm.getRelu() ? "adds bias and relu and "
        : gemm.getBias()                 ? "adds bias and "
        : gemm.getRelu()                 ? "adds relu and "
                                         : "");
  }

  static void absorbOperandRounding(RewriterBase& rewriter, kernel::FusedOp cast,
                                    int64_t mostTileRows) {
    Location loc = cast.getLoc();
    std::string place = ir::describePlace(cast);
    if (lower::absorbOperandRounding(rewriter, cast, mostTileRows))
      report(loc) << remark::add("the products of '{0}' round its weight while they read it",
                                 place);
  }
};

} // namespace
} // namespace titan
