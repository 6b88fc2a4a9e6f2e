#include "compiler/Lower/BiasEpilogue.h"

#include "dialects/Titan/Titan.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace titan::lower {

namespace {

bool isZero(Value value) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.getValue().isPosZero();
}

/// A body that is an epilogue: which of its arguments are what.
struct EpilogueBody {
  BlockArgument product, bias; ///< bias: null if there is none
  bool relu = false;
};

std::optional<EpilogueBody> matchBody(kernel::FusedOp op) {
  EpilogueBody body;
  Value yielded = cast<kernel::YieldOp>(op.getBlock().getTerminator()).getValues()[0];
  if (auto relu = yielded.getDefiningOp<arith::MaximumFOp>()) {
    if (isZero(relu.getRhs()))
      yielded = relu.getLhs();
    else if (isZero(relu.getLhs()))
      yielded = relu.getRhs();
    else
      return std::nullopt;
    body.relu = true;
  }
  body.product = dyn_cast<BlockArgument>(yielded);
  if (auto add = yielded.getDefiningOp<arith::AddFOp>()) {
    body.product = dyn_cast<BlockArgument>(add.getLhs());
    body.bias = dyn_cast<BlockArgument>(add.getRhs());
    if (!body.product || !body.bias || body.product == body.bias)
      return std::nullopt;
    // Addition commutes: the product is the operand of full rank.
    if (!op.getInMap(body.product.getArgNumber()).isIdentity())
      std::swap(body.product, body.bias);
  }
  if (!body.product || (!body.relu && !body.bias) || op.getIns().size() != (body.bias ? 2u : 1u) ||
      !op.getInMap(body.product.getArgNumber()).isIdentity())
    return std::nullopt;
  return body;
}

/// Is operand `in` of `op` a vector of `columns` elements, one for each index of the last
/// dimension? Of f32, as the product is: one that a layer of bf16 adds goes with the rounding.
bool isBias(kernel::FusedOp op, unsigned in, int64_t columns) {
  auto type = cast<ShapedType>(op.getIns()[in].getType());
  unsigned last = op.getSpace().size() - 1;
  // Columns that are several dimensions of the tensor, [heads, width], have no bias of the last.
  return type.getRank() == 1 && type.getDimSize(0) == columns && op.getSpace()[last] == columns &&
         type.getElementType().isF32() &&
         op.getInMap(in).getResult(0) == getAffineDimExpr(last, op.getContext());
}

} // namespace

std::optional<BiasEpilogue> matchBiasEpilogue(kernel::FusedOp op) {
  if (op.getOuts().size() != 1 || op.getIns().empty() || op.getIns().size() > 2 ||
      !op.getScalars().empty() || !op.getOuts()[0].getDefiningOp<kernel::EmptyOp>() ||
      !op.getOutMap(0).isIdentity())
    return std::nullopt;
  std::optional<EpilogueBody> body = matchBody(op);
  if (!body)
    return std::nullopt;
  auto call = op.getIns()[body->product.getArgNumber()].getDefiningOp<kernel::CallOp>();
  kernel::GemmAttr gemm = call ? call.getGemm() : kernel::GemmAttr();
  if (!gemm || !call->hasOneUse() || call->getBlock() != op->getBlock() || gemm.getBias() ||
      gemm.getRelu())
    return std::nullopt;
  // The whole product, into all of what is written: a front part of either has an identity map too.
  if (op.getSpace() != cast<ShapedType>(call.getResultTypes()[0]).getShape() ||
      op.getResultTypes()[0] != call.getResultTypes()[0])
    return std::nullopt;
  BiasEpilogue epilogue = {call, Value(), body->relu};
  if (body->bias) {
    unsigned in = body->bias.getArgNumber();
    if (!isBias(op, in, gemm.getN()))
      return std::nullopt;
    epilogue.bias = op.getIns()[in];
  }
  return epilogue;
}

kernel::CallOp absorbBiasEpilogue(RewriterBase& rewriter, kernel::FusedOp op,
                                  const BiasEpilogue& epilogue) {
  kernel::CallOp call = epilogue.call;
  SmallVector<Value> ins(call.getIns());
  if (epilogue.bias)
    ins.push_back(epilogue.bias);
  rewriter.setInsertionPoint(op); // where the bias is known
  ArrayAttr path = ir::joinPaths(ir::getPath(call), ir::getPath(op));
  auto fused = kernel::CallOp::create(
      rewriter, call.getLoc(), call.getResultTypes(), ins, call.getOuts(), ValueRange(),
      withEpilogue(call.getGemm(), epilogue.bias != nullptr, epilogue.relu),
      path.empty() ? ArrayAttr() : path, call.getPhaseAttr());
  rewriter.replaceOp(op, fused.getResults());
  rewriter.eraseOp(call);
  return fused;
}

kernel::GemmAttr withEpilogue(kernel::GemmAttr gemm, bool bias, bool relu) {
  return kernel::GemmAttr::get(
      gemm.getContext(), gemm.getBatch(), gemm.getM(), gemm.getN(), gemm.getK(), gemm.getLda(),
      gemm.getLdb(), gemm.getLdc(), gemm.getStrideA(), gemm.getStrideB(), gemm.getStrideC(),
      gemm.getTransposeA(), gemm.getTransposeB(), gemm.getAccumulate(), bias, relu, gemm.getTileM(),
      gemm.getTileN(), gemm.getPatchesA(), gemm.getPatchesB());
}

} // namespace titan::lower
