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

bool hasRoutine(Type element) { return element.isF32() || element.isBF16(); }

/// The pairs of a place and a tap that have a position, or would have one in the padding: what a
/// product for each residue of the place modulo the stride multiplies.
int64_t pairsOf(const ir::Windows& w) {
  int64_t pairs = 0;
  for (int64_t residue = 0; residue < w.stride; ++residue) {
    const int64_t places = llvm::divideCeilSigned(w.extent - residue, w.stride);
    for (int64_t tap = 0; tap < w.taps; ++tap)
      pairs += (residue + w.low - tap * w.dilation) % w.stride == 0 ? places : 0;
  }
  return pairs;
}

int64_t flopsOfInputGrad(const ir::ConvolutionShape& shape) {
  int64_t flops = 2 * shape.batch * shape.groups * shape.inputs * shape.outputs;
  for (size_t d = 0; d < shape.rank(); ++d)
    flops *= pairsOf(shape.windows(d));
  return flops;
}

template <typename Op> int64_t convolutionFlops(Op op) {
  const ir::ConvolutionShape shape = op.getConvolutionShape();
  if (!isProduct(shape, ir::tensorType(op->getOperand(0)).getElementType()))
    return 0;
  return isa<ir::ConvolutionInputGradOp>(op) ? flopsOfInputGrad(shape) : shape.flops();
}

} // namespace

bool isProduct(const ir::ConvolutionShape& shape, Type element) {
  const bool isDepthwise = shape.inputs == 1 && shape.outputs == 1 && shape.groups > 1;
  return hasRoutine(element) && !isDepthwise;
}

int64_t productFlopsOf(Operation* op) {
  return llvm::TypeSwitch<Operation*, int64_t>(op)
      .Case([](ir::ContractOp op) {
        return hasRoutine(ir::tensorType(op.getLhs()).getElementType()) ? op.getFlops() : 0;
      })
      .Case<ir::ConvolutionOp, ir::ConvolutionInputGradOp, ir::ConvolutionKernelGradOp>(
          [](auto op) { return convolutionFlops(op); })
      .Case<ir::RecurrenceOp, ir::RecurrenceGradOp>([](auto op) { return op.getFlops(); })
      .Case<ir::AttentionOp, ir::AttentionGradOp>([](auto op) { return attentionFlops(op); })
      .Case([](kernel::CallOp call) { return callFlops(call); })
      .Default([](Operation*) { return int64_t{0}; });
}

/// Of `ops`, which each stand before those in them, what has no effect and only readers that have
/// none either: it goes with the next cleaning.
static llvm::DenseSet<Operation*> findDead(ArrayRef<Operation*> ops) {
  llvm::DenseSet<Operation*> dead;
  for (Operation* op : llvm::reverse(ops))
    if (wouldOpBeTriviallyDead(op) &&
        llvm::all_of(op->getUsers(), [&](Operation* user) { return dead.contains(user); }))
      dead.insert(op);
  return dead;
}

SmallVector<std::pair<Operation*, int64_t>> productsBehindHalves(Operation* root) {
  SmallVector<Operation*> ops;
  root->walk<WalkOrder::PreOrder>([&](Operation* op) { ops.push_back(op); });
  auto isHalf = [](Operation* op) { return isa<dist::StartOp, dist::WaitOp>(op); };
  if (llvm::none_of(ops, isHalf))
    return {};
  SmallVector<std::pair<Operation*, int64_t>> halves;
  const llvm::DenseSet<Operation*> dead = findDead(ops);
  for (Operation* op : ops) {
    if (isHalf(op))
      halves.push_back({op, 0});
    else if (!halves.empty() && !dead.contains(op))
      halves.back().second += productFlopsOf(op);
  }
  return halves;
}

} // namespace titan
