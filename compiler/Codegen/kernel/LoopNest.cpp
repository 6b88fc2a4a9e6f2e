#include "compiler/Codegen/kernel/LoopNest.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"

#include <bit>

using namespace mlir;

namespace titan::codegen {

SmallVector<unsigned, 4> listOf(DimSet set) {
  SmallVector<unsigned, 4> dims;
  for (; set != 0; set &= set - 1)
    dims.push_back(std::countr_zero(set));
  return dims;
}

unsigned innermost(DimSet set) { return 63 - std::countl_zero(set); }

DimSet Access::dims() const {
  DimSet set = 0;
  for (auto [dim, stride] : llvm::enumerate(strides))
    if (stride != 0)
      set |= bit(dim);
  return set;
}

namespace {

/// Adds factor * expr to `access`, whose strides are those of the original dimensions. The verifier
/// of kernel.fused admits sums of dimensions times constants only.
void addTerm(AffineExpr expr, int64_t factor, Access& access) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    access.offset += factor * constant.getValue();
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    access.strides[dim.getPosition()] += factor;
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    if (expr.getKind() == AffineExprKind::Add) {
      addTerm(binary.getLHS(), factor, access);
      addTerm(binary.getRHS(), factor, access);
    } else {
      addTerm(binary.getLHS(), factor * cast<AffineConstantExpr>(binary.getRHS()).getValue(),
              access);
    }
  }
}

Access accessOf(AffineMap map, MemRefType type, unsigned rank) {
  // Arithmetic knows no signedness: an unsigned element is read as its bits.
  Type element = type.getElementType();
  if (auto integer = dyn_cast<IntegerType>(element))
    element = IntegerType::get(type.getContext(), integer.getWidth());
  Access access{element, 0, SmallVector<int64_t, 4>(rank, 0)};
  int64_t stride = 1;
  for (int64_t i = type.getRank() - 1; i >= 0; --i) {
    addTerm(map.getResult(i), stride, access);
    stride *= type.getDimSize(i);
  }
  return access;
}

} // namespace

LoopNest::LoopNest(kernel::FusedOp fused) : op(fused) {
  unsigned rank = op.getSpace().size();
  for (auto [i, in] : llvm::enumerate(op.getIns()))
    ins.push_back(accessOf(op.getInMap(i), cast<MemRefType>(in.getType()), rank));
  for (auto [i, out] : llvm::enumerate(op.getOuts()))
    outs.push_back(accessOf(op.getOutMap(i), cast<MemRefType>(out.getType()), rank));
  normalise();
  analyseReductions();
}

void LoopNest::normalise() {
  ArrayRef<int64_t> space = op.getSpace();
  DimSet named = 0;
  for (Operation& inner : op.getBlock())
    if (auto index = dyn_cast<kernel::IndexOp>(inner))
      named |= bit(index.getDim());
    else if (auto reduce = dyn_cast<kernel::ReduceOp>(inner))
      for (int64_t dim : reduce.getDims())
        named |= bit(dim);

  SmallVector<Access*> accesses;
  for (Access& access : ins)
    accesses.push_back(&access);
  for (Access& access : outs)
    accesses.push_back(&access);

  // `last` is the original dimension whose strides the newest normalised dimension has.
  normalised.assign(space.size(), -1);
  SmallVector<unsigned> last;
  for (unsigned dim = 0; dim < space.size(); ++dim) {
    if (space[dim] == 1)
      continue;
    bool merges = !last.empty() && !contains(named, dim) && !contains(named, last.back()) &&
                  llvm::all_of(accesses, [&](const Access* access) {
                    return access->strides[last.back()] == access->strides[dim] * space[dim];
                  });
    if (merges) {
      extents.back() *= space[dim];
      last.back() = dim;
    } else {
      extents.push_back(space[dim]);
      last.push_back(dim);
    }
    normalised[dim] = extents.size() - 1;
  }
  for (Access* access : accesses) {
    SmallVector<int64_t, 4> strides;
    for (unsigned dim : last)
      strides.push_back(access->strides[dim]);
    access->strides = strides;
  }
}

/// The reductions that `root` is computed from, without those behind another.
static SmallVector<kernel::ReduceOp> directReductions(Value root) {
  SmallVector<kernel::ReduceOp> found;
  SmallVector<Value> pending = {root};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation* definition = value.getDefiningOp();
    if (!definition || !seen.insert(value).second)
      continue;
    if (auto reduce = dyn_cast<kernel::ReduceOp>(definition))
      found.push_back(reduce);
    else
      llvm::append_range(pending, definition->getOperands());
  }
  return found;
}

void LoopNest::analyseReductions() {
  parallel = rank() == 0 ? 0 : ~DimSet{0} >> (64 - rank());
  for (auto reduce : op.getBlock().getOps<kernel::ReduceOp>()) {
    Reduction reduction{reduce};
    for (int64_t dim : reduce.getDims())
      if (normalised[dim] >= 0)
        reduction.over |= bit(normalised[dim]);
    reductions.push_back(reduction);
    Reduction& added = reductions.back();
    added.space = dependence(reduce.getValue()) | added.over;
    parallel &= ~added.over;
    // Reductions come in body order, so the level of those that this one needs is known.
    for (kernel::ReduceOp earlier : directReductions(reduce.getValue()))
      added.level = std::max(added.level, reductionOf(earlier).level + 1);
  }
}

std::optional<unsigned> LoopNest::dimOf(kernel::IndexOp index) const {
  int dim = normalised[index.getDim()];
  return dim < 0 ? std::nullopt : std::optional<unsigned>(dim);
}

const Reduction& LoopNest::reductionOf(kernel::ReduceOp reduce) const {
  return *llvm::find_if(reductions, [&](const Reduction& r) { return r.op == reduce; });
}

DimSet LoopNest::dependence(Value value) const {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  DimSet dims = 0;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getArgNumber() < ins.size())
      dims = ins[argument.getArgNumber()].dims();
  } else {
    Operation* definition = value.getDefiningOp();
    for (Value operand : definition->getOperands())
      dims |= dependence(operand);
    if (auto index = dyn_cast<kernel::IndexOp>(definition))
      if (auto dim = dimOf(index))
        dims |= bit(*dim);
    if (auto reduce = dyn_cast<kernel::ReduceOp>(definition))
      dims &= ~reductionOf(reduce).over;
  }
  known[value] = dims;
  return dims;
}

std::optional<unsigned> LoopNest::blockDim() const {
  if (rank() == 0 || !contains(parallel, rank() - 1))
    return std::nullopt;
  return rank() - 1;
}

int64_t LoopNest::pointsOf(DimSet dims) const {
  int64_t points = 1;
  for (unsigned dim : listOf(dims))
    points *= extents[dim];
  return points;
}

int64_t LoopNest::bytesOf(const Access& access) const {
  return pointsOf(access.dims()) * ((access.element.getIntOrFloatBitWidth() + 7) / 8);
}

unsigned LoopNest::levels() const {
  unsigned count = 0;
  for (const Reduction& reduction : reductions)
    count = std::max(count, reduction.level + 1);
  return count;
}

bool LoopNest::needs(const Reduction& later, const Reduction& earlier) const {
  return llvm::any_of(directReductions(kernel::ReduceOp(later.op).getValue()),
                      [&](kernel::ReduceOp between) {
                        return between == earlier.op || needs(reductionOf(between), earlier);
                      });
}

} // namespace titan::codegen
