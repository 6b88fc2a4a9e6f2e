#include "compiler/Autodiff/ReverseMode.h"

#include "dialects/Titan/AdjointBuilder.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace titan::autodiff {

namespace {

bool isFloatValue(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// The values of `ops` that `roots` have a floating-point influence on, roots included.
DenseSet<Value> findInfluenced(ArrayRef<Operation*> ops, ArrayRef<Value> roots) {
  DenseSet<Value> influenced(roots.begin(), roots.end());
  auto isInfluenced = [&](Value value) { return influenced.contains(value); };
  for (Operation* op : ops)
    if (llvm::any_of(op->getOperands(), isInfluenced))
      for (Value result : op->getResults())
        if (isFloatValue(result))
          influenced.insert(result);
  return influenced;
}

/// The values that have a floating-point influence on `loss`, itself included.
DenseSet<Value> findInfluencing(ArrayRef<Operation*> ops, Value loss) {
  DenseSet<Value> influencing = {loss};
  auto isInfluencing = [&](Value value) { return influencing.contains(value); };
  for (Operation* op : llvm::reverse(ops))
    if (llvm::any_of(op->getResults(), isInfluencing))
      for (Value operand : op->getOperands())
        if (isFloatValue(operand))
          influencing.insert(operand);
  return influencing;
}

LogicalResult refuse(Operation* op) {
  InFlightDiagnostic diagnostic = op->emitError() << "'" << op->getName().getStringRef()
                                                  << "' is on the path to the loss and has no "
                                                     "derivative";
  if (std::string path = ir::pathString(op); !path.empty())
    diagnostic << ", module path " << path;
  return diagnostic << ": freeze the parameters before it, or take it out of the training model";
}

} // namespace

FailureOr<SmallVector<Value>> buildGradients(Value loss, ArrayRef<Value> wanted) {
  Block* block = loss.getParentBlock();
  SmallVector<Operation*> ops; // a gradient may pass
  for (Operation& op : block->without_terminator())
    if (!isa<ir::DetachOp>(op))
      ops.push_back(&op);
  DenseSet<Value> influenced = findInfluenced(ops, wanted);
  DenseSet<Value> influencing = findInfluencing(ops, loss);

  OpBuilder builder(block->getTerminator());
  Operation* origin = loss.getDefiningOp() ? loss.getDefiningOp() : block->getParentOp();
  DenseMap<Value, Value> adjoints;
  if (influenced.contains(loss))
    adjoints[loss] = ir::TensorBuilder(builder, origin, ir::Phase::Backward).splatLike(loss, 1);

  for (Operation* op : llvm::reverse(ops)) {
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(adjoints.lookup(result));
    SmallVector<bool> needed;
    for (Value operand : op->getOperands())
      needed.push_back(isFloatValue(operand) && influenced.contains(operand));
    if (llvm::none_of(results, [](Value adjoint) { return bool(adjoint); }) ||
        !llvm::is_contained(needed, true))
      continue;
    auto differentiable = dyn_cast<ir::DifferentiableOpInterface>(op);
    if (!differentiable)
      return refuse(op);
    ir::AdjointBuilder rule(builder, op, results, needed);
    if (failed(differentiable.buildAdjoints(rule)))
      return failure();
    for (auto [operand, adjoint, isNeeded] :
         llvm::zip_equal(op->getOperands(), rule.operands(), needed)) {
      if (!isNeeded || !adjoint)
        continue;
      Value& sum = adjoints[operand];
      sum = sum ? rule.add(sum, adjoint) : adjoint;
    }
  }

  SmallVector<Value> gradients;
  for (Value value : wanted) {
    Value gradient = adjoints.lookup(value);
    if (!gradient && influencing.contains(value))
      gradient = ir::TensorBuilder(builder, origin, ir::Phase::Backward).splatLike(value, 0);
    gradients.push_back(gradient);
  }
  return gradients;
}

} // namespace titan::autodiff
