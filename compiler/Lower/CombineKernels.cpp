#include "compiler/Lower/CombineKernels.h"

#include "compiler/Support/KernelKey.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

namespace {

class Combiner {
public:
  Combiner(RewriterBase& rewriter, KnownKernels& kernels) : rewriter(rewriter), kernels(kernels) {}

  void run(Block& block) {
    SmallVector<StringRef> own; // keys of ops that only this block sees
    for (Operation& op : llvm::make_early_inc_range(block)) {
      if (!isa<FusedOp>(op))
        for (Region& region : op.getRegions())
          for (Block& inner : region)
            run(inner);
      if (!isCandidate(op))
        continue;
      auto [first, isNew] = seen.try_emplace(keyOf(op).str(), &op);
      if (isNew)
        own.push_back(first->getKey());
      else
        rewriter.replaceOp(&op, first->second);
    }
    for (StringRef key : own)
      seen.erase(key);
  }

private:
  RewriterBase& rewriter;
  KnownKernels& kernels;
  llvm::StringMap<Operation*> seen; ///< by key

  static bool isCandidate(Operation& op) {
    if (isa<FusedOp, kernel::EmptyOp, kernel::CastShapeOp>(op))
      return true; // on tensors
    return op.getNumRegions() == 0 && !op.hasTrait<OpTrait::IsTerminator>() &&
           isMemoryEffectFree(&op);
  }

  KeyBuilder keyOf(Operation& op) {
    KeyBuilder key;
    key.add(op.getName());
    key.add(op.getNumOperands());
    for (Value operand : op.getOperands())
      key.add(operand);
    if (auto fused = dyn_cast<FusedOp>(op)) {
      key.add(kernels.numberOf(fused));
      key.add(fused.getKernelClass());
      key.add(fused.getPathAttr());
      key.add(fused.getPhaseAttr());
    } else {
      key.addTypes(op.getResultTypes());
      key.addAttributes(&op);
    }
    return key;
  }
};

} // namespace

void combineEqual(RewriterBase& rewriter, KnownKernels& kernels, Block& block) {
  Combiner(rewriter, kernels).run(block);
}

} // namespace titan::lower
