#include "compiler/Lower/CombineKernels.h"

#include "compiler/Support/KernelKey.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

namespace {

bool isPlain(Operation& op) {
  return op.getNumRegions() == 0 && !op.hasTrait<OpTrait::IsTerminator>() &&
         isMemoryEffectFree(&op);
}

void addOperands(KeyBuilder& key, Operation& op) {
  SmallVector<Value> operands(op.getOperands());
  if (op.hasTrait<OpTrait::IsCommutative>())
    llvm::sort(operands, [](Value a, Value b) {
      return std::less<>()(a.getAsOpaquePointer(), b.getAsOpaquePointer());
    });
  key.add(operands.size());
  for (Value operand : operands)
    key.add(operand);
}

/// Of an op that `isPlain`.
void addPlain(KeyBuilder& key, Operation& op) {
  key.add(op.getName());
  addOperands(key, op);
  key.addTypes(op.getResultTypes());
  key.addAttributes(&op);
}

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
    return isa<FusedOp, kernel::EmptyOp, kernel::CastShapeOp>(op) || isPlain(op); // on tensors
  }

  KeyBuilder keyOf(Operation& op) {
    KeyBuilder key;
    auto fused = dyn_cast<FusedOp>(op);
    if (!fused) {
      addPlain(key, op);
      return key;
    }
    key.add(op.getName());
    addOperands(key, op);
    key.add(kernels.numberOf(fused));
    key.add(fused.getKernelClass());
    key.add(fused.getPathAttr());
    key.add(fused.getPhaseAttr());
    return key;
  }
};

} // namespace

void combineEqual(RewriterBase& rewriter, KnownKernels& kernels, Block& block) {
  Combiner(rewriter, kernels).run(block);
}

void simplifyBody(RewriterBase& rewriter, Block& body) {
  llvm::StringMap<Operation*> seen;
  for (Operation& op : llvm::make_early_inc_range(body)) {
    if (isOpTriviallyDead(&op)) {
      rewriter.eraseOp(&op);
      continue;
    }
    if (!isPlain(op))
      continue;
    KeyBuilder key;
    addPlain(key, op);
    auto [first, isNew] = seen.try_emplace(key.str(), &op);
    if (!isNew)
      rewriter.replaceOp(&op, first->second);
  }
}

} // namespace titan::lower
