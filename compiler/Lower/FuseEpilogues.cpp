// titan-lower-fuse-epilogues: bias, relu and rounding become part of the matrix product before
// them.
#include "compiler/Lower/OperandRounding.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Lower/RoundingEpilogue.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FUSEEPILOGUES
#include "compiler/Lower/Passes.h.inc"

namespace {

/// What a kernel does to the product: x, x + bias, max(x, 0) or max(x + bias, 0).
struct Epilogue {
  kernel::CallOp call;
  Value bias;
  bool relu = false;
};

bool isZero(Value value) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.getValue().isPosZero();
}

std::optional<Epilogue> matchEpilogue(kernel::FusedOp op) {
  if (op.getOuts().size() != 1 || op.getIns().empty() || op.getIns().size() > 2 ||
      !op.getScalars().empty() || !op.getOuts()[0].getDefiningOp<kernel::EmptyOp>() ||
      !op.getOutMap(0).isIdentity())
    return std::nullopt;
  Epilogue epilogue;
  Value yielded = cast<kernel::YieldOp>(op.getBlock().getTerminator()).getValues()[0];
  if (auto relu = yielded.getDefiningOp<arith::MaximumFOp>()) {
    if (isZero(relu.getRhs()))
      yielded = relu.getLhs();
    else if (isZero(relu.getLhs()))
      yielded = relu.getRhs();
    else
      return std::nullopt;
    epilogue.relu = true;
  }
  BlockArgument product = dyn_cast<BlockArgument>(yielded), bias;
  if (auto add = yielded.getDefiningOp<arith::AddFOp>()) {
    product = dyn_cast<BlockArgument>(add.getLhs());
    bias = dyn_cast<BlockArgument>(add.getRhs());
    if (!product || !bias || product == bias)
      return std::nullopt;
    // Addition commutes: the product is the operand of full rank.
    if (!op.getInMap(product.getArgNumber()).isIdentity())
      std::swap(product, bias);
  }
  if (!product || (!epilogue.relu && !bias) || op.getIns().size() != (bias ? 2u : 1u) ||
      !op.getInMap(product.getArgNumber()).isIdentity())
    return std::nullopt;

  epilogue.call = op.getIns()[product.getArgNumber()].getDefiningOp<kernel::CallOp>();
  kernel::GemmAttr gemm = epilogue.call ? epilogue.call.getGemm() : kernel::GemmAttr();
  if (!gemm || !epilogue.call->hasOneUse() || epilogue.call->getBlock() != op->getBlock() ||
      gemm.getBias() || gemm.getRelu())
    return std::nullopt;
  // The whole product: a front part of it has an identity map too.
  if (op.getSpace() != cast<ShapedType>(epilogue.call.getResultTypes()[0]).getShape())
    return std::nullopt;
  if (bias) {
    epilogue.bias = op.getIns()[bias.getArgNumber()];
    auto type = cast<ShapedType>(epilogue.bias.getType());
    AffineMap map = op.getInMap(bias.getArgNumber());
    unsigned last = op.getSpace().size() - 1;
    // Columns that are several dimensions of the tensor, [heads, width], have no bias of the last.
    if (type.getRank() != 1 || type.getDimSize(0) != gemm.getN() ||
        op.getSpace()[last] != gemm.getN() || !type.getElementType().isF32() ||
        map.getResult(0) != getAffineDimExpr(last, op.getContext()))
      return std::nullopt;
  }
  return epilogue;
}

struct FuseEpilogues : impl::FuseEpiloguesBase<FuseEpilogues> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<kernel::FusedOp> ops;
    getOperation().walk([&](kernel::FusedOp op) { ops.push_back(op); });
    for (kernel::FusedOp op : ops) {
      std::optional<Epilogue> epilogue = matchEpilogue(op);
      if (!epilogue)
        continue;
      kernel::CallOp call = epilogue->call;
      kernel::GemmAttr gemm = call.getGemm();
      SmallVector<Value> ins(call.getIns());
      if (epilogue->bias)
        ins.push_back(epilogue->bias);
      auto routine = kernel::GemmAttr::get(
          &getContext(), gemm.getBatch(), gemm.getM(), gemm.getN(), gemm.getK(), gemm.getLda(),
          gemm.getLdb(), gemm.getLdc(), gemm.getStrideA(), gemm.getStrideB(), gemm.getStrideC(),
          gemm.getTransposeA(), gemm.getTransposeB(), gemm.getAccumulate(),
          epilogue->bias != nullptr, epilogue->relu, gemm.getTileM(), gemm.getTileN());
      rewriter.setInsertionPoint(op); // where the bias is known
      ArrayAttr path = ir::joinPaths(ir::getPath(call), ir::getPath(op));
      auto fused = kernel::CallOp::create(rewriter, call.getLoc(), call.getResultTypes(), ins,
                                          call.getOuts(), ValueRange(), routine,
                                          path.empty() ? ArrayAttr() : path, call.getPhaseAttr());
      remark::passed(fused.getLoc(), remark::RemarkOpts::name("fuse-epilogues").category("lower"))
          << remark::add("the product of '{0}' adds {1}", ir::describePlace(call),
                         !epilogue->bias  ? "relu"
                         : epilogue->relu ? "bias and relu"
                                          : "bias");
      rewriter.replaceOp(op, fused.getResults());
      rewriter.eraseOp(call);
    }
    SmallVector<kernel::CallOp> calls;
    getOperation().walk([&](kernel::CallOp call) { calls.push_back(call); });
    for (kernel::CallOp call : calls)
      if (kernel::CallOp rounded = lower::absorbRounding(rewriter, call)) {
        kernel::GemmAttr gemm = rounded.getGemm();
        remark::passed(rounded.getLoc(),
                       remark::RemarkOpts::name("fuse-epilogues").category("lower"))
            << remark::add("the product of '{0}' {1}rounds to bf16", ir::describePlace(rounded),
                           gemm.getBias() && gemm.getRelu() ? "adds bias and relu and "
                           : gemm.getBias()                 ? "adds bias and "
                           : gemm.getRelu()                 ? "adds relu and "
                                                            : "");
      }
    // Now that products say what they give.
    SmallVector<kernel::FusedOp> casts;
    getOperation().walk([&](kernel::FusedOp op) { casts.push_back(op); });
    for (kernel::FusedOp cast : casts) {
      Location loc = cast.getLoc();
      std::string place = ir::describePlace(cast);
      if (lower::absorbOperandRounding(rewriter, cast))
        remark::passed(loc, remark::RemarkOpts::name("fuse-epilogues").category("lower"))
            << remark::add("the products of '{0}' round its weight while they read it", place);
    }
  }
};

} // namespace
} // namespace titan
