#include "compiler/Codegen/cpu/KeptValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace titan::codegen {
namespace {

class Chooser {
public:
  Chooser(const LoopNest& nest, DimSet row, const MachineModel& machine)
      : nest(nest), row(row), machine(machine) {}

  /// Everything that `roots` need at a point of the row, as far as it varies along it.
  void collect(Value value, llvm::DenseSet<Value>& needed) const {
    if ((nest.dependence(value) & row) == 0 || isComplete(value) || !needed.insert(value).second)
      return;
    for (Value operand : operandsOf(value))
      collect(operand, needed);
  }

  /// The largest values below `value` that an earlier pass has, too, and that are worth keeping.
  void choose(Value value, ArrayRef<llvm::DenseSet<Value>> earlier,
              SmallVectorImpl<KeptValue>& kept, llvm::DenseSet<Value>& visited) const {
    if ((nest.dependence(value) & row) == 0 || isComplete(value) || !visited.insert(value).second)
      return;
    if (llvm::any_of(kept, [&](const KeptValue& k) { return k.value == value; }))
      return;
    for (auto [pass, needed] : llvm::enumerate(earlier))
      if (needed.contains(value) && (nest.dependence(value) & row) == row &&
          isWorthKeeping(value, kept)) {
        kept.push_back({value, static_cast<unsigned>(pass)});
        return;
      }
    for (Value operand : operandsOf(value))
      choose(operand, earlier, kept, visited);
  }

private:
  const LoopNest& nest;
  DimSet row;
  const MachineModel& machine;

  bool isComplete(Value value) const {
    auto reduce = value.getDefiningOp<kernel::ReduceOp>();
    return reduce && nest.reductionOf(reduce).combines();
  }
  static OperandRange operandsOf(Value value) {
    Operation* definition = value.getDefiningOp();
    return definition ? OperandRange(definition->getOperands()) : OperandRange(nullptr, 0);
  }

  bool isWorthKeeping(Value value, ArrayRef<KeptValue> kept) const {
    llvm::DenseSet<Value> counted;
    Operation* definition = value.getDefiningOp();
    return definition && definition->getNumResults() == 1 &&
           costOf(value, kept, counted) >= machine.keptOps;
  }

  int64_t costOf(Value value, ArrayRef<KeptValue> kept, llvm::DenseSet<Value>& counted) const {
    if ((nest.dependence(value) & row) == 0 || isComplete(value) || !counted.insert(value).second)
      return 0;
    Operation* definition = value.getDefiningOp();
    if (!definition || llvm::any_of(kept, [&](const KeptValue& k) { return k.value == value; }))
      return 1;
    int64_t sum = 1;
    if (isa<kernel::RandomHalfOp>(definition))
      sum = machine.keptRandomOps;
    else if (isa<arith::DivFOp, math::SqrtOp>(definition))
      sum = machine.keptDivisionOps;
    else if (isa<arith::RemFOp>(definition) || (isa<math::MathDialect>(definition->getDialect()) &&
                                                !isa<math::AbsFOp, math::FmaOp>(definition)))
      sum = machine.keptFunctionOps;
    for (Value operand : definition->getOperands())
      sum += costOf(operand, kept, counted);
    return sum;
  }
};

int64_t bytesOf(const LoopNest& nest, DimSet row, Type type) {
  return nest.pointsOf(row) * ((type.isIndex() ? 64 : type.getIntOrFloatBitWidth() + 7) / 8);
}

} // namespace

SmallVector<KeptValue> chooseKeptValues(const LoopNest& nest, ArrayRef<RowPass> passes, DimSet row,
                                        const MachineModel& machine) {
  Chooser chooser(nest, row, machine);
  SmallVector<KeptValue> kept;
  std::vector<llvm::DenseSet<Value>> needed;
  for (const RowPass& pass : passes) {
    llvm::DenseSet<Value> visited;
    for (Value root : pass.roots)
      chooser.choose(root, needed, kept, visited);
    needed.emplace_back();
    // A pass over fewer dimensions does not visit every element of the row.
    if (pass.dims == row)
      for (Value root : pass.roots)
        chooser.collect(root, needed.back());
  }
  int64_t used = 0;
  llvm::erase_if(kept, [&](const KeptValue& k) {
    int64_t bytes = bytesOf(nest, row, k.value.getType());
    if (k.value.getType().isIndex() || used + bytes > machine.keptBytes)
      return true;
    used += bytes;
    return false;
  });
  return kept;
}

} // namespace titan::codegen
