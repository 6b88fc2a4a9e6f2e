#include "compiler/Lower/MergedSpace.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

std::optional<Linear> toLinear(AffineExpr expr, unsigned rank) {
  if (!expr.isPureAffine())
    return std::nullopt;
  auto at = [&](int64_t which) -> std::optional<int64_t> {
    SmallVector<AffineExpr> point(rank, getAffineConstantExpr(0, expr.getContext()));
    if (which >= 0)
      point[which] = getAffineConstantExpr(1, expr.getContext());
    auto value = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(expr.replaceDims(point), 0, 0));
    return value ? std::optional(value.getValue()) : std::nullopt;
  };
  Linear linear;
  auto base = at(-1);
  if (!base)
    return std::nullopt;
  linear.constant = *base;
  for (unsigned d = 0; d < rank; ++d)
    if (expr.isFunctionOfDim(d))
      linear.terms.push_back({*at(d) - *base, d});
  llvm::sort(linear.terms, [](auto& a, auto& b) { return a > b; });
  return linear;
}

namespace {

/// The digits' values are exactly 0 ... extent - 1, each once.
bool covers(AffineExpr expr, ArrayRef<int64_t> space, int64_t extent) {
  auto linear = toLinear(expr, space.size());
  if (!linear || linear->constant != 0)
    return false;
  int64_t expected = 1;
  for (auto [stride, d] : llvm::reverse(linear->terms)) {
    if (space[d] == 1)
      continue;
    if (stride != expected)
      return false;
    expected *= space[d];
  }
  return expected == extent;
}

/// Does the producer write every element of result `index`?
bool writesAll(FusedOp op, unsigned index) {
  if (!op.getOuts()[index].getDefiningOp<kernel::EmptyOp>())
    return false;
  auto shape = cast<ShapedType>(op.getOuts()[index].getType()).getShape();
  for (auto [expr, extent] : llvm::zip_equal(op.getOutMap(index).getResults(), shape))
    if (!covers(expr, op.getSpace(), extent))
      return false;
  return true;
}

/// Solves written(dims of the writer) = read for the writer's dimensions, as functions of the
/// reader's.
bool solve(AffineExpr written, ArrayRef<int64_t> writerSpace, AffineExpr read,
           ArrayRef<int64_t> readerSpace, SmallVectorImpl<AffineExpr>& solution) {
  auto assign = [&](unsigned d, AffineExpr value) {
    if (solution[d] && solution[d] != value)
      return false;
    solution[d] = value;
    return true;
  };
  if (auto dim = dyn_cast<AffineDimExpr>(written))
    return assign(dim.getPosition(), read);
  if (isa<AffineConstantExpr>(written))
    return true; // an extent of 1
  // The same digits on both sides: chunks of one size.
  auto from = toLinear(written, writerSpace.size()), to = toLinear(read, readerSpace.size());
  if (!from || !to || from->constant != to->constant || from->terms.size() != to->terms.size())
    return false;
  for (auto [w, r] : llvm::zip_equal(from->terms, to->terms))
    if (w.first != r.first || writerSpace[w.second] != readerSpace[r.second] ||
        !assign(w.second, getAffineDimExpr(r.second, read.getContext())))
      return false;
  return true;
}

struct ResultRead {
  unsigned result, in;
};

SmallVector<ResultRead> readsOf(FusedOp producer, FusedOp consumer) {
  SmallVector<ResultRead> reads;
  for (auto [i, in] : llvm::enumerate(consumer.getIns()))
    if (in.getDefiningOp() == producer)
      reads.push_back({cast<OpResult>(in).getResultNumber(), static_cast<unsigned>(i)});
  return reads;
}

/// The consumer's space, with the producer's reduced dimensions matched to the consumer's innermost
/// ones.
std::optional<MergedSpace> inConsumerSpace(FusedOp producer, FusedOp consumer,
                                           ArrayRef<ResultRead> reads) {
  MLIRContext* context = producer.getContext();
  ArrayRef<int64_t> from = producer.getSpace(), to = consumer.getSpace();
  SmallVector<AffineExpr> solution(from.size());
  for (ResultRead read : reads)
    for (auto [written, at] : llvm::zip_equal(producer.getOutMap(read.result).getResults(),
                                              consumer.getInMap(read.in).getResults()))
      if (!solve(written, from, at, to, solution))
        return std::nullopt;

  llvm::SmallBitVector used(to.size());
  for (AffineExpr expr : solution)
    for (unsigned d = 0; expr && d < to.size(); ++d)
      if (expr.isFunctionOfDim(d))
        used.set(d);
  int64_t next = static_cast<int64_t>(to.size()) - 1;
  for (int64_t d = static_cast<int64_t>(from.size()) - 1; d >= 0; --d) {
    if (solution[d])
      continue;
    if (from[d] == 1) {
      solution[d] = getAffineConstantExpr(0, context);
      continue;
    }
    while (next >= 0 && to[next] == 1)
      --next;
    if (next < 0 || used.test(next) || to[next] != from[d])
      return std::nullopt;
    solution[d] = getAffineDimExpr(next--, context);
  }
  return MergedSpace{SmallVector<int64_t>(to), AffineMap::get(to.size(), 0, solution, context),
                     AffineMap::getMultiDimIdentityMap(to.size(), context)};
}

/// The producer's space, where the consumer visits each element of what it reads exactly once.
std::optional<MergedSpace> inProducerSpace(FusedOp producer, FusedOp consumer,
                                           ArrayRef<ResultRead> reads) {
  MLIRContext* context = producer.getContext();
  ArrayRef<int64_t> from = producer.getSpace(), to = consumer.getSpace();
  SmallVector<AffineExpr> solution(to.size());
  for (ResultRead read : reads)
    for (auto [written, at, extent] : llvm::zip_equal(
             producer.getOutMap(read.result).getResults(), consumer.getInMap(read.in).getResults(),
             cast<ShapedType>(consumer.getIns()[read.in].getType()).getShape())) {
      auto dim = dyn_cast<AffineDimExpr>(at);
      if (!dim) {
        if (extent == 1)
          continue;
        return std::nullopt;
      }
      AffineExpr& known = solution[dim.getPosition()];
      if (to[dim.getPosition()] != extent || (known && known != written))
        return std::nullopt;
      known = written;
    }
  for (auto [expr, extent] : llvm::zip_equal(solution, to))
    if (!expr) {
      if (extent != 1)
        return std::nullopt;
      expr = getAffineConstantExpr(0, context);
    }
  return MergedSpace{SmallVector<int64_t>(from),
                     AffineMap::getMultiDimIdentityMap(from.size(), context),
                     AffineMap::get(from.size(), 0, solution, context)};
}

} // namespace

SmallVector<MergedSpace> findMergedSpaces(FusedOp producer, FusedOp consumer, std::string& why) {
  SmallVector<ResultRead> reads = readsOf(producer, consumer);
  for (ResultRead read : reads)
    if (!writesAll(producer, read.result)) {
      why = "it writes a part of its result only";
      return {};
    }
  for (Value out : consumer.getOuts())
    if (out.getDefiningOp() == producer) {
      why = "the reader continues its result";
      return {};
    }
  SmallVector<MergedSpace> spaces;
  if (auto space = inConsumerSpace(producer, consumer, reads))
    spaces.push_back(*space);
  if (auto space = inProducerSpace(producer, consumer, reads))
    spaces.push_back(*space);
  if (spaces.empty())
    why = "no iteration space serves both";
  return spaces;
}

bool visitsWholeSpace(const MergedSpace& space, FusedOp producer) {
  llvm::SmallBitVector used(space.extents.size());
  for (auto [expr, extent] : llvm::zip_equal(space.toProducer.getResults(), producer.getSpace())) {
    if (!covers(expr, space.extents, extent))
      return false;
    for (unsigned d = 0; d < space.extents.size(); ++d)
      if (expr.isFunctionOfDim(d)) {
        if (used.test(d))
          return false;
        used.set(d);
      }
  }
  return true;
}

} // namespace titan::lower
