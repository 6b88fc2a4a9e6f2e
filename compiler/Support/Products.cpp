#include "compiler/Support/Products.h"

#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/TensorBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan {

namespace {

/// The two products of attention, the four of its gradient.
int64_t attentionFlops(int64_t heads, int64_t queries, int64_t keys, bool isCausal, int64_t widths,
                       bool isGradient) {
  int64_t pairs = queries * keys;
  if (isCausal) {
    const int64_t rising = std::min(queries, keys);
    pairs = rising * (rising + 1) / 2 + (queries - rising) * keys;
  }
  return (isGradient ? 4 : 2) * heads * pairs * widths;
}

/// Query is [batch, queries, heads, width], value [batch, keys, heads, width].
template <typename Op> int64_t attentionFlops(Op op) {
  ArrayRef<int64_t> query = ir::tensorType(op.getQuery()).getShape(),
                    value = ir::tensorType(op.getValue()).getShape();
  return attentionFlops(query[0] * query[2], query[1], value[1], op.getCausal(),
                        query[3] + value[3], isa<ir::AttentionGradOp>(op));
}

int64_t callFlops(kernel::CallOp call) {
  if (kernel::GemmAttr gemm = call.getGemm())
    return 2 * gemm.getBatch() * gemm.getM() * gemm.getN() * gemm.getK();
  if (auto recurrence = dyn_cast<kernel::RecurrenceAttr>(call.getRoutine()))
    return recurrence.getShape().flops();
  auto attention = dyn_cast<kernel::AttentionAttr>(call.getRoutine());
  return attention
             ? attentionFlops(attention.getBatch() * attention.getHeads(), attention.getQueries(),
                              attention.getKeys(), attention.getCausal(),
                              attention.getWidth() + attention.getValueWidth(),
                              static_cast<bool>(attention.getGradient()))
             : 0;
}

/// Of a contraction or a convolution. Products of other types are kernels like any other.
template <typename Op> int64_t sumOfProductsFlops(Op op) {
  Type element = ir::tensorType(op->getOperand(0)).getElementType();
  return element.isF32() || element.isBF16() ? op.getFlops() : 0;
}

} // namespace

int64_t productFlopsOf(Operation* op) {
  return llvm::TypeSwitch<Operation*, int64_t>(op)
      .Case<ir::ContractOp, ir::ConvolutionOp, ir::ConvolutionInputGradOp,
            ir::ConvolutionKernelGradOp, ir::RecurrenceOp, ir::RecurrenceGradOp>(
          [](auto op) { return sumOfProductsFlops(op); })
      .Case<ir::AttentionOp, ir::AttentionGradOp>([](auto op) { return attentionFlops(op); })
      .Case([](kernel::CallOp call) { return callFlops(call); })
      .Default([](Operation*) { return int64_t{0}; });
}

/// What has no effect and only readers that have none either: it goes with the next cleaning.
static llvm::DenseSet<Operation*> findDead(Operation* root) {
  SmallVector<Operation*> ops;
  root->walk<WalkOrder::PreOrder>([&](Operation* op) { ops.push_back(op); });
  llvm::DenseSet<Operation*> dead;
  for (Operation* op : llvm::reverse(ops))
    if (wouldOpBeTriviallyDead(op) &&
        llvm::all_of(op->getUsers(), [&](Operation* user) { return dead.contains(user); }))
      dead.insert(op);
  return dead;
}

SmallVector<std::pair<Operation*, int64_t>> productsBehindHalves(Operation* root) {
  SmallVector<std::pair<Operation*, int64_t>> halves;
  const llvm::DenseSet<Operation*> dead = findDead(root);
  root->walk<WalkOrder::PreOrder>([&](Operation* op) {
    if (isa<dist::StartOp, dist::WaitOp>(op))
      halves.push_back({op, 0});
    else if (!halves.empty() && !dead.contains(op))
      halves.back().second += productFlopsOf(op);
  });
  return halves;
}

} // namespace titan
