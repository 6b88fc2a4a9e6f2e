#include "compiler/Lower/MergedSpace.h"

#include "compiler/Lower/Digits.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

namespace {

/// Does the producer write every element of result `index`?
bool writesAll(FusedOp op, unsigned index) {
  Value out = op.getOuts()[index];
  return out.getDefiningOp<kernel::EmptyOp>() &&
         coversAll(op.getOutMap(index), op.getSpace(), cast<ShapedType>(out.getType()).getShape());
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
  if (!from || !to || from->constant != to->constant)
    return false;
  SmallVector<Digit> writer = digitsOf(*from, writerSpace), reader = digitsOf(*to, readerSpace);
  if (writer.size() != reader.size())
    return false;
  for (auto [w, r] : llvm::zip_equal(writer, reader))
    if (w.stride != r.stride || w.extent != r.extent ||
        !assign(w.dim, getAffineDimExpr(r.dim, read.getContext())))
      return false;
  return true;
}

/// A result of the producer that the consumer reads, perhaps in another shape.
struct ResultRead {
  unsigned result, in;
  std::optional<AffineMap> map; ///< from the consumer's space to the result as it was written
};

SmallVector<ResultRead> readsOf(FusedOp producer, FusedOp consumer) {
  SmallVector<ResultRead> reads;
  for (auto [i, in] : llvm::enumerate(consumer.getIns())) {
    auto result = dyn_cast<OpResult>(sourceOf(in));
    if (!result || result.getOwner() != producer)
      continue;
    std::optional<AffineMap> map = consumer.getInMap(i);
    if (in != result) {
      auto address = addressOf(*map, cast<ShapedType>(in.getType()).getShape());
      map = address ? mapOf(*address, consumer.getSpace(),
                            cast<ShapedType>(result.getType()).getShape(), producer.getContext())
                    : std::nullopt;
    }
    reads.push_back({result.getResultNumber(), static_cast<unsigned>(i), map});
  }
  return reads;
}

/// Matches the dimensions without a solution, which the producer reduces, with the innermost
/// dimensions of the merged space that the others do not use.
bool matchReduced(ArrayRef<int64_t> from, ArrayRef<int64_t> merged,
                  SmallVectorImpl<AffineExpr>& solution, MLIRContext* context) {
  llvm::SmallBitVector used(merged.size());
  for (AffineExpr expr : solution)
    for (unsigned d = 0; expr && d < merged.size(); ++d)
      if (expr.isFunctionOfDim(d))
        used.set(d);
  int64_t next = static_cast<int64_t>(merged.size()) - 1;
  for (int64_t d = static_cast<int64_t>(from.size()) - 1; d >= 0; --d) {
    if (solution[d])
      continue;
    if (from[d] == 1) {
      solution[d] = getAffineConstantExpr(0, context);
      continue;
    }
    while (next >= 0 && merged[next] == 1)
      --next;
    if (next < 0 || used.test(next) || merged[next] != from[d])
      return false;
    solution[d] = getAffineDimExpr(next--, context);
  }
  return true;
}

/// The consumer's space, with the producer's reduced dimensions matched to the consumer's innermost
/// ones.
std::optional<MergedSpace> inConsumerSpace(FusedOp producer, FusedOp consumer,
                                           ArrayRef<ResultRead> reads) {
  MLIRContext* context = producer.getContext();
  ArrayRef<int64_t> from = producer.getSpace(), to = consumer.getSpace();
  SmallVector<AffineExpr> solution(from.size());
  for (const ResultRead& read : reads) {
    if (!read.map)
      return std::nullopt;
    for (auto [written, at] :
         llvm::zip_equal(producer.getOutMap(read.result).getResults(), read.map->getResults()))
      if (!solve(written, from, at, to, solution))
        return std::nullopt;
  }
  if (!matchReduced(from, to, solution, context))
    return std::nullopt;
  return MergedSpace{SmallVector<int64_t>(to), AffineMap::get(to.size(), 0, solution, context),
                     AffineMap::getMultiDimIdentityMap(to.size(), context)};
}

/// The producer's space, where the consumer visits each element of what it reads exactly once.
std::optional<MergedSpace> inProducerSpace(FusedOp producer, FusedOp consumer,
                                           ArrayRef<ResultRead> reads) {
  MLIRContext* context = producer.getContext();
  ArrayRef<int64_t> from = producer.getSpace(), to = consumer.getSpace();
  SmallVector<AffineExpr> solution(to.size());
  for (const ResultRead& read : reads) {
    if (!read.map)
      return std::nullopt;
    for (auto [written, at, extent] :
         llvm::zip_equal(producer.getOutMap(read.result).getResults(), read.map->getResults(),
                         cast<ShapedType>(producer.getResult(read.result).getType()).getShape())) {
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
  }
  for (auto [expr, extent] : llvm::zip_equal(solution, to))
    if (!expr) {
      if (extent != 1)
        return std::nullopt;
      expr = getAffineConstantExpr(0, context);
    }
  // A reader of one value in two places would only visit where both places are one.
  AffineMap toConsumer = AffineMap::get(from.size(), 0, solution, context);
  if (!coversAll(toConsumer, from, to))
    return std::nullopt;
  return MergedSpace{SmallVector<int64_t>(from),
                     AffineMap::getMultiDimIdentityMap(from.size(), context), toConsumer};
}

/// The second kernel's space, its dimensions cut where the address of the element that both kernels
/// use begins or ends a dimension of the first.
std::optional<MergedSpace> cutSpace(ArrayRef<int64_t> firstSpace, const Linear& first,
                                    ArrayRef<int64_t> secondSpace, const Linear& second,
                                    MLIRContext* context) {
  SmallVector<Digit> firstDigits = digitsOf(first, firstSpace),
                     secondDigits = digitsOf(second, secondSpace);
  if (!areDisjoint(first, firstDigits) || !areDisjoint(second, secondDigits))
    return std::nullopt;
  SmallVector<int64_t> bounds;
  for (ArrayRef<Digit> digits : {ArrayRef(firstDigits), ArrayRef(secondDigits)})
    for (const Digit& digit : digits)
      bounds.append({digit.stride, digit.stride * digit.extent});
  llvm::sort(bounds);
  bounds.erase(llvm::unique(bounds), bounds.end());
  for (size_t i = 1; i < bounds.size(); ++i)
    if (bounds[i] % bounds[i - 1] != 0)
      return std::nullopt;
  /// The pieces of [stride, stride * extent), outermost first.
  auto piecesOf = [&](int64_t stride, int64_t extent) {
    SmallVector<std::pair<int64_t, int64_t>> pieces; // (stride, extent)
    for (size_t i = bounds.size() - 1; i > 0; --i)
      if (bounds[i - 1] >= stride && bounds[i] <= stride * extent)
        pieces.push_back({bounds[i - 1], bounds[i] / bounds[i - 1]});
    return pieces;
  };

  MergedSpace merged;
  SmallVector<AffineExpr> toFirst(firstSpace.size()), toSecond;
  llvm::DenseMap<int64_t, AffineExpr> dimOfPiece; // by stride
  auto addDim = [&](int64_t extent) {
    merged.extents.push_back(extent);
    return getAffineDimExpr(merged.extents.size() - 1, context);
  };
  for (auto [extent, stride] : llvm::zip_equal(secondSpace, second.strides)) {
    if (stride == 0 || extent == 1) {
      toSecond.push_back(addDim(extent));
      continue;
    }
    AffineExpr sum = getAffineConstantExpr(0, context);
    for (auto [pieceStride, pieceExtent] : piecesOf(stride, extent)) {
      AffineExpr dim = addDim(pieceExtent);
      dimOfPiece[pieceStride] = dim;
      sum = sum + dim * (pieceStride / stride);
    }
    toSecond.push_back(sum);
  }
  for (const Digit& digit : firstDigits) {
    AffineExpr sum = getAffineConstantExpr(0, context);
    for (auto [pieceStride, pieceExtent] : piecesOf(digit.stride, digit.extent))
      if (AffineExpr dim = dimOfPiece.lookup(pieceStride)) // otherwise it is always 0
        sum = sum + dim * (pieceStride / digit.stride);
    toFirst[digit.dim] = sum;
  }
  if (!matchReduced(firstSpace, merged.extents, toFirst, context))
    return std::nullopt;
  unsigned rank = merged.extents.size();
  merged.toProducer = AffineMap::get(rank, 0, toFirst, context);
  merged.toConsumer = AffineMap::get(rank, 0, toSecond, context);
  return merged;
}

std::optional<Linear> addressIn(AffineMap map, Value operand) {
  return addressOf(map, cast<ShapedType>(operand.getType()).getShape());
}

/// The consumer's space, cut by the producer's dimensions.
std::optional<MergedSpace> inCutSpace(FusedOp producer, FusedOp consumer,
                                      ArrayRef<ResultRead> reads) {
  const ResultRead& first = reads.front();
  auto written = addressIn(producer.getOutMap(first.result), producer.getOuts()[first.result]);
  auto at = addressIn(consumer.getInMap(first.in), consumer.getIns()[first.in]);
  if (!written || !at)
    return std::nullopt;
  std::optional<MergedSpace> space =
      cutSpace(producer.getSpace(), *written, consumer.getSpace(), *at, producer.getContext());
  return space && readsAtSamePoint(*space, producer, consumer) ? space : std::nullopt;
}

} // namespace

bool readsAtSamePoint(const MergedSpace& space, FusedOp producer, FusedOp consumer) {
  for (const ResultRead& read : readsOf(producer, consumer)) {
    auto written = addressIn(producer.getOutMap(read.result).compose(space.toProducer),
                             producer.getOuts()[read.result]);
    auto at =
        addressIn(consumer.getInMap(read.in).compose(space.toConsumer), consumer.getIns()[read.in]);
    if (!written || !at)
      return false;
    // Along a dimension of one point every stride leads to the same element.
    for (auto [d, extent] : llvm::enumerate(space.extents))
      if (extent == 1)
        written->strides[d] = at->strides[d] = 0;
    if (written != at)
      return false;
  }
  return true;
}

SmallVector<MergedSpace> findMergedSpaces(FusedOp producer, FusedOp consumer, std::string& why) {
  SmallVector<ResultRead> reads = readsOf(producer, consumer);
  for (ResultRead read : reads)
    if (!writesAll(producer, read.result)) {
      why = "it writes a part of its result only";
      return {};
    }
  for (Value out : consumer.getOuts())
    if (sourceOf(out).getDefiningOp() == producer) {
      why = "the reader continues its result";
      return {};
    }
  SmallVector<MergedSpace> spaces;
  if (auto space = inConsumerSpace(producer, consumer, reads))
    spaces.push_back(*space);
  if (auto space = inProducerSpace(producer, consumer, reads))
    spaces.push_back(*space);
  if (spaces.empty())
    if (auto space = inCutSpace(producer, consumer, reads))
      spaces.push_back(*space);
  if (spaces.empty())
    why = "no iteration space serves both";
  return spaces;
}

std::optional<MergedSpace> findSharedSpace(FusedOp first, FusedOp second, Value value) {
  auto readIn = [&](FusedOp op) -> std::optional<Linear> {
    for (auto [i, in] : llvm::enumerate(op.getIns()))
      if (sourceOf(in) == value)
        return addressIn(op.getInMap(i), in);
    return std::nullopt;
  };
  auto inFirst = readIn(first), inSecond = readIn(second);
  if (!inFirst || !inSecond)
    return std::nullopt;
  return cutSpace(first.getSpace(), *inFirst, second.getSpace(), *inSecond, first.getContext());
}

bool visitsWholeSpace(const MergedSpace& space, FusedOp producer) {
  return coversAll(space.toProducer, space.extents, producer.getSpace());
}

} // namespace titan::lower
