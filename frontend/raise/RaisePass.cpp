#include "frontend/raise/RaisePass.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace titan::frontend {

namespace {

/// The ops that patterns made and that are still there.
struct Inserted : RewriterBase::Listener {
  void notifyOperationInserted(Operation* op, OpBuilder::InsertPoint) override { ops.insert(op); }
  void notifyOperationErased(Operation* op) override { ops.erase(op); }
  DenseSet<Operation*> ops;
};

} // namespace

LogicalResult applyRaisePatterns(func::FuncOp function, const FrozenRewritePatternSet& patterns,
                                 llvm::function_ref<bool(Operation*)> isRaised) {
  Inserted inserted;
  GreedyRewriteConfig config;
  config.enableFolding(false).enableConstantCSE(false).setListener(&inserted);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  if (failed(applyPatternsGreedily(function, patterns, config)))
    return failure();
  function.walk([&](Operation* op) {
    if (isRaised(op) && inserted.ops.contains(op))
      remarkRaised(op);
  });
  return success();
}

void eraseDeadOps(func::FuncOp function) {
  SmallVector<Operation*> ops =
      llvm::to_vector(llvm::make_pointer_range(function.getBody().front().without_terminator()));
  for (Operation* op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

ArrayAttr joinedPath(Operation* a, Operation* b) {
  ArrayAttr joined = ir::joinPaths(ir::getPath(a), ir::getPath(b));
  return joined && !joined.empty() ? joined : ArrayAttr();
}

void remarkRaised(Operation* op) {
  remark::passed(op->getLoc(), remark::RemarkOpts::name("raise").category("import"))
      << remark::add("'{0}' is one {1}", ir::describePlace(op), op->getName().getStringRef());
}

void remarkNotRaised(Operation* op, StringRef what, const std::string& reason) {
  remark::missed(op->getLoc(), remark::RemarkOpts::name("raise").category("import"))
      << remark::reason("{0}", reason)
      << remark::add("'{0}' looks like {1}", ir::describePlace(op), what);
}

} // namespace titan::frontend
