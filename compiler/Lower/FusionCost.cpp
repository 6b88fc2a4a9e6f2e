#include "compiler/Lower/FusionCost.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

int64_t pointsOf(ArrayRef<int64_t> extents) { return ShapedType::getNumElements(extents); }

namespace {

bool isCheap(Block& body) {
  unsigned operations = 0;
  for (Operation& op : body.without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    if (isa<kernel::ReduceOp, kernel::RandomHalfOp, arith::DivFOp, arith::RemFOp, arith::DivSIOp,
            arith::DivUIOp>(op) ||
        isa<math::MathDialect>(op.getDialect()))
      return false;
    ++operations;
  }
  return operations <= 4;
}

bool rounds(Block& body) {
  return llvm::any_of(cast<kernel::YieldOp>(body.getTerminator()).getValues(), [](Value value) {
    return value.getDefiningOp<arith::TruncFOp>() != nullptr;
  });
}

void countReductions(Block& body, ArrayRef<int64_t> space, KernelFacts& facts) {
  const auto wide = llvm::find_if(llvm::reverse(space), [](int64_t extent) { return extent > 1; });
  if (wide == space.rend())
    return;
  const int64_t innermost = std::distance(wide, space.rend()) - 1;
  for (auto reduce : body.getOps<kernel::ReduceOp>()) {
    if (!llvm::is_contained(reduce.getDims(), innermost)) {
      ++facts.columnReductions;
      continue;
    }
    int64_t length = 1;
    for (int64_t dim : reduce.getDims())
      length *= space[dim];
    facts.rowLength = std::max(facts.rowLength, length);
  }
}

int64_t bytesOf(Value value) {
  auto type = cast<ShapedType>(value.getType());
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

/// Are all readers of what `op` computes, in whatever shape, kernels of which `is` holds?
bool areReaders(FusedOp op, function_ref<bool(FusedOp)> is) {
  SmallVector<Value> pending(op.getResults());
  while (!pending.empty())
    for (Operation* user : pending.pop_back_val().getUsers()) {
      if (isa<kernel::CastShapeOp>(user)) {
        pending.push_back(user->getResult(0));
        continue;
      }
      auto reader = dyn_cast<FusedOp>(user);
      if (!reader || !is(reader))
        return false;
    }
  return true;
}

/// Only kernels read what `op` computes: they can all compute it themselves.
bool isReadByKernels(FusedOp op) {
  return areReaders(op, [](FusedOp) { return true; });
}

bool reduces(FusedOp op) {
  return op.getKernelClass() == kernel::KernelClass::Row ||
         op.getKernelClass() == kernel::KernelClass::Column;
}

} // namespace

KernelFacts factsOf(FusedOp op, Block& body) {
  KernelFacts facts = {};
  facts.isCheap = isCheap(body);
  facts.roundsVector = op.getSpace().size() == 1 && rounds(body);
  countReductions(body, op.getSpace(), facts);
  facts.streams = streamsInto(op);
  for (Value in : op.getIns()) {
    facts.read += bytesOf(in);
    facts.largestRead = std::max(facts.largestRead, bytesOf(in));
  }
  for (Value out : op.getOuts())
    facts.written += bytesOf(out);
  return facts;
}

bool isDuplicable(FusedOp op, const KernelFacts& facts) {
  if (!facts.isCheap || op.getKernelClass() == kernel::KernelClass::Transpose)
    return false;
  if (facts.read * 2 <= facts.written)
    return true;
  return facts.largestRead <= facts.written &&
         (facts.read - facts.largestRead) * 16 <= facts.written && isReadByKernels(op);
}

bool repeatsScalars(FusedOp op, const KernelFacts& facts) {
  return facts.streams == 0 && pointsOf(op.getSpace()) > 1 && isDuplicable(op, facts) &&
         isReadByKernels(op);
}

bool isForReductions(FusedOp op) { return reduces(op) || areReaders(op, reduces); }

bool repeatsAlongShortRows(const MergedSpace& space, FusedOp op) {
  constexpr int64_t shortRow = 32, many = 16;
  SmallVector<unsigned> dims; // of more than one element
  for (auto [d, extent] : llvm::enumerate(op.getSpace()))
    if (extent != 1)
      dims.push_back(static_cast<unsigned>(d));
  if (dims.size() < 2 || op.getSpace()[dims.back()] >= shortRow ||
      pointsOf(op.getSpace()) * many > pointsOf(space.extents))
    return false;
  const unsigned last = dims.pop_back_val();
  return llvm::any_of(llvm::seq<unsigned>(0, op.getIns().size()), [&](unsigned i) {
    AffineMap map = op.getInMap(i);
    return !map.isFunctionOfDim(last) &&
           llvm::any_of(dims, [&](unsigned d) { return map.isFunctionOfDim(d); });
  });
}

size_t streamsInto(FusedOp op) {
  size_t streams = 0;
  for (unsigned i = 0; i < op.getIns().size(); ++i)
    streams += !op.getInMap(i).isConstant() && op.getInMap(i).getNumResults() > 0;
  return streams;
}

int64_t columnSumsOf(const KernelFacts& first, const KernelFacts& second) {
  constexpr int64_t shortestRow = 1024;
  return std::max({first.rowLength, second.rowLength, shortestRow}) *
         (first.columnReductions + second.columnReductions);
}

bool repeatsWork(const MergedSpace& space, FusedOp producer) {
  if (pointsOf(producer.getSpace()) == 1)
    return pointsOf(space.extents) > 1;
  llvm::SmallBitVector used(space.extents.size());
  space.toProducer.walkExprs([&](AffineExpr expr) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      used.set(dim.getPosition());
  });
  int last = used.find_last();
  for (int d = 0; d < last; ++d)
    if (!used.test(d) && space.extents[d] != 1)
      return true;
  return false;
}

} // namespace titan::lower
