// Lowering of titan.contract: a (batched) matrix product where the operands' layouts allow it, with
// transposes in front where they do not.
#include "compiler/Lower/Rules.h"
#include "compiler/Lower/TileGrid.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// One dimension for a group of dimensions. A group of one element has no stride of its own.
struct Group {
  int64_t extent = 1;
  int64_t stride = 0;
};

/// The dimensions `dims` (in this order) of a row-major tensor as one; none where their strides do
/// not chain.
std::optional<Group> mergeDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t d = static_cast<int64_t>(shape.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * shape[d + 1];
  Group group;
  for (int64_t d : llvm::reverse(dims)) {
    if (shape[d] == 1)
      continue;
    if (group.extent == 1)
      group.stride = strides[d];
    else if (strides[d] != group.stride * group.extent)
      return std::nullopt;
    group.extent *= shape[d];
  }
  return group;
}

/// A stored matrix: `inner` is contiguous, rows are `leading` elements apart.
struct Layout {
  bool innerIsContracting;
  int64_t leading, batchStride;
};

struct Side {
  Value value;
  SmallVector<int64_t> batch, free, contracting;
};

std::optional<Layout> layoutOf(const Side& side) {
  ArrayRef<int64_t> shape = tensorType(side.value).getShape();
  auto batch = mergeDims(shape, side.batch), free = mergeDims(shape, side.free),
       contracting = mergeDims(shape, side.contracting);
  if (!batch || !free || !contracting)
    return std::nullopt;
  auto stored = [&](const Group& rows, const Group& columns) -> std::optional<int64_t> {
    if (columns.extent > 1 && columns.stride != 1)
      return std::nullopt;
    int64_t leading = rows.extent > 1 ? rows.stride : columns.extent;
    return leading >= columns.extent ? std::optional(leading) : std::nullopt;
  };
  if (auto leading = stored(*free, *contracting))
    return Layout{true, *leading, batch->stride};
  if (auto leading = stored(*contracting, *free))
    return Layout{false, *leading, batch->stride};
  return std::nullopt;
}

/// [batch, free, contracting], contiguous.
Side rearrange(const Side& side, LoweringBuilder& l) {
  SmallVector<int64_t> order;
  Side result;
  auto append = [&](ArrayRef<int64_t> from, SmallVector<int64_t>& to) {
    for (int64_t d : from) {
      to.push_back(order.size());
      order.push_back(d);
    }
  };
  append(side.batch, result.batch);
  append(side.free, result.free);
  append(side.contracting, result.contracting);
  result.value = l.transpose(side.value, order);
  return result;
}

int64_t extentOf(const Side& side, ArrayRef<int64_t> dims) {
  int64_t extent = 1;
  for (int64_t d : dims)
    extent *= tensorType(side.value).getDimSize(d);
  return extent;
}

/// Element types that no library product takes: one kernel that multiplies and sums along the
/// contracting dimensions.
Value lowerToLoops(ir::ContractOp op, const Side& lhs, const Side& rhs, LoweringBuilder& l) {
  RankedTensorType type = op.getType();
  unsigned rank = type.getRank() + lhs.contracting.size();
  SmallVector<int64_t> space(type.getShape()), reduced;
  SmallVector<AffineExpr> lhsMap(tensorType(lhs.value).getRank()),
      rhsMap(tensorType(rhs.value).getRank());
  unsigned next = 0;
  for (auto [a, b] : llvm::zip_equal(lhs.batch, rhs.batch))
    lhsMap[a] = rhsMap[b] = l.dim(next++);
  for (int64_t d : lhs.free)
    lhsMap[d] = l.dim(next++);
  for (int64_t d : rhs.free)
    rhsMap[d] = l.dim(next++);
  for (auto [a, b] : llvm::zip_equal(lhs.contracting, rhs.contracting)) {
    reduced.push_back(next);
    space.push_back(tensorType(lhs.value).getDimSize(a));
    lhsMap[a] = rhsMap[b] = l.dim(next++);
  }
  AffineMap out = l.project(rank, llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())));
  SmallVector<LoweringBuilder::Read> reads = {{lhs.value, l.map(rank, lhsMap)},
                                              {rhs.value, l.map(rank, rhsMap)}};
  if (op.getAcc())
    reads.push_back({op.getAcc(), out});
  return l.fused(space, reads, LoweringBuilder::Write{type, out}, [&](Body& b, ValueRange v) {
    Value product = b.mul(v[0], v[1]);
    Value sum = reduced.empty() ? product : b.reduce(kernel::ReduceKind::Add, product, reduced);
    return SmallVector<Value>{op.getAcc() ? b.add(v[2], sum) : sum};
  })[0];
}

struct Rules {
  static LogicalResult lower(ir::ContractOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    Side lhs = {op.getLhs(), SmallVector<int64_t>(op.getLhsBatch()), op.getLhsFree(),
                SmallVector<int64_t>(op.getLhsContracting())};
    Side rhs = {op.getRhs(), SmallVector<int64_t>(op.getRhsBatch()), op.getRhsFree(),
                SmallVector<int64_t>(op.getRhsContracting())};
    Type element = tensorType(lhs.value).getElementType();
    int64_t batch = extentOf(lhs, lhs.batch), m = extentOf(lhs, lhs.free),
            n = extentOf(rhs, rhs.free), k = extentOf(lhs, lhs.contracting);
    if (!(element.isF32() || element.isBF16()) || batch * m * n * k == 0) {
      l.replace(lowerToLoops(op, lhs, rhs, l));
      return success();
    }

    std::optional<Layout> a = layoutOf(lhs), b = layoutOf(rhs);
    if (!a) {
      lhs = rearrange(lhs, l);
      a = layoutOf(lhs);
    }
    if (!b) {
      rhs = rearrange(rhs, l);
      b = layoutOf(rhs);
    }
    TileGrid grid = chooseTileGrid(l.machine, batch, m, n, k, element.getIntOrFloatBitWidth() / 8);
    auto routine = kernel::GemmAttr::get(
        l.context, batch, m, n, k, a->leading, b->leading, n, batch > 1 ? a->batchStride : 0,
        batch > 1 ? b->batchStride : 0, batch > 1 ? m * n : 0,
        /*transposeA=*/!a->innerIsContracting,
        /*transposeB=*/b->innerIsContracting, /*accumulate=*/op.getAcc() != nullptr, /*bias=*/false,
        /*relu=*/false, grid.tileM, grid.tileN, /*patchesA=*/{}, /*patchesB=*/{});
    Value out = op.getAcc() ? op.getAcc() : l.empty(type);
    l.replace(kernel::CallOp::create(l.builder, l.loc, TypeRange(type),
                                     ValueRange{lhs.value, rhs.value}, ValueRange(out),
                                     ValueRange(), routine, l.path, l.phase)
                  .getResults());
    return success();
  }
};

} // namespace

void attachContractionRules(MLIRContext* context) { attachRules<Rules, ir::ContractOp>(context); }

} // namespace titan::lower
