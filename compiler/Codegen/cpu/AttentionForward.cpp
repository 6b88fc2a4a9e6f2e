#include "compiler/Codegen/cpu/AttentionForward.h"

#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Below every score but -inf, so that score - maximum is no NaN where nothing is attended to.
double lowest(FloatType type) {
  return type.isF64() ? std::numeric_limits<double>::lowest()
                      : double(std::numeric_limits<float>::lowest());
}

} // namespace

AttentionForward::AttentionForward(FloatBuilder& builder, kernel::AttentionAttr attention,
                                   const AttentionTypes& types, func::FuncOp function)
    : b(builder), attention(attention), types(types), block(builder, attention, types, function) {
  int64_t tileElements = block.keyBlock * block.queryBlock;
  packedQuery = b.stack(block.transposedElements(attention.getWidth()), types.packed);
  if (!types.readsInPlace())
    packedKey = b.stack(block.rowsElements(block.keyBlock, attention.getWidth()), types.packed);
  packedValue =
      b.stack(block.rowsElements(block.keyBlock, attention.getValueWidth()), types.packed);
  tile = b.stack(tileElements);
  if (types.pair == 2)
    pairs = b.stack(tileElements, types.packed);
  if (block.drops())
    factors = b.stack(tileElements);
  sums = b.stack(block.queryBlock * block.wholeVectors(attention.getValueWidth()));
  for (Value* each : {&maxima, &totals, &scales})
    *each = b.stack(block.queryBlock);
}

void AttentionForward::emitUnit(Value unit) {
  int64_t rows = attention.getBlocks().getRows();
  int64_t rowBlocks = llvm::divideCeilSigned(attention.getQueries(), rows);
  Place place;
  Value row = b.divide(unit, rowBlocks);
  place.batch = b.divide(row, attention.getHeads());
  place.head = b.remainder(row, attention.getHeads());
  place.query = b.mul(b.remainder(unit, rowBlocks), rows);
  place.queries =
      b.smaller(b.sub(b.index(attention.getQueries()), place.query), b.index(block.queryBlock));

  kernel::ViewAttr view = attention.getQuery();
  Factor queries =
      block.packTransposed(block.address(view, false, place.batch, place.query, place.head),
                           view.getRow(), place.queries, attention.getWidth(), packedQuery);
  b.loop(0, block.queryBlock, types.width, [&](Value query) {
    b.store(b.numbers(lowest(types.scalar)), b.at(maxima, query));
    b.store(b.numbers(0), b.at(totals, query));
  });
  block.forKeyBlocks(place, [&](const Place& at) { emitKeyBlock(at, queries); });
  finish(place);
}

void AttentionForward::emitKeyBlock(const Place& place, const Factor& queries) {
  kernel::ViewAttr keyView = attention.getKey(), valueView = attention.getValue();
  Value keyHead = block.keyHead(place.head);
  Value keyRows = block.address(keyView, false, place.batch, place.key, keyHead);
  Factor packed;
  if (!types.readsInPlace())
    packed = block.packRows(keyRows, keyView.getRow(), place.keys, attention.getWidth(), packedKey);
  block.scores(place, tile, block.leftRows(keyRows, keyView.getRow(), packed), queries,
               attention.getWidth(), block.aheadOfKeys(keyView, place));
  block.maskScores(place, tile);
  if (block.drops())
    block.dropoutFactors(place, factors);
  // An odd number of keys: a last one that is not attended to.
  if (types.pair == 2)
    b.when(b.less(b.index(0), b.remainder(place.keys, 2)), [&] {
      b.loop(0, block.queryBlock, types.width, [&](Value query) {
        b.store(b.numbers(-infinity), block.slot(tile, place.keys, query));
      });
    });
  block.forQueryVectors([&](Value first, int64_t vectors) {
    updateMaxima(place, first, vectors);
    exponentials(place, first, vectors);
  });

  Factor values =
      block.packRows(block.address(valueView, false, place.batch, place.key, keyHead),
                     valueView.getRow(), place.keys, attention.getValueWidth(), packedValue);
  int64_t columns = block.wholeVectors(attention.getValueWidth());
  Value probabilities = types.pair == 2 ? pairs : tile;
  block.product({.left = {.pointer = probabilities,
                          .row = b.index(types.pair),
                          .step = b.index(block.queryBlock * types.pair),
                          .inColumns = true},
                 .right = values,
                 .sums = {sums, b.index(columns)},
                 .rows = place.queries,
                 .columns = columns,
                 .depth = place.keys,
                 .highSkew = place.skew,
                 .continues = b.less(b.index(0), place.key),
                 .scales = scales,
                 .ahead = block.aheadOfKeys(valueView, place)});
}

/// The new maximum, and by what sums over earlier keys shrink.
void AttentionForward::updateMaxima(const Place& place, Value first, int64_t vectors) {
  SmallVector<Value> before;
  for (int64_t v = 0; v < vectors; ++v)
    before.push_back(b.load(b.at(maxima, b.add(first, v * types.width))));
  SmallVector<Value> after = emitLoop(
      b.builder, b.loc, b.index(0), place.keys, 1, before, [&](Value key, ValueRange carried) {
        SmallVector<Value> next;
        for (int64_t v = 0; v < vectors; ++v)
          next.push_back(
              b.maximum(b.load(block.slot(tile, key, b.add(first, v * types.width))), carried[v]));
        return next;
      });
  for (int64_t v = 0; v < vectors; ++v) {
    Value query = b.add(first, v * types.width);
    Value shrinks = block.exponential(b.create<arith::MulFOp>(
        b.create<arith::SubFOp>(before[v], after[v]), b.numbers(block.exponentScale())));
    b.store(shrinks, b.at(scales, query));
    b.store(after[v], b.at(maxima, query));
    b.store(b.create<arith::MulFOp>(b.load(b.at(totals, query)), shrinks), b.at(totals, query));
  }
}

/// Scores become e^(score - maximum), as the product with the values takes them.
void AttentionForward::exponentials(const Place& place, Value first, int64_t vectors) {
  SmallVector<Value> largest, before;
  for (int64_t v = 0; v < vectors; ++v) {
    Value query = b.add(first, v * types.width);
    largest.push_back(b.load(b.at(maxima, query)));
    before.push_back(b.load(b.at(totals, query)));
  }
  Value scale = b.numbers(block.exponentScale());
  AttentionBlock::Ahead ahead = block.aheadOfQueries(attention.getQuery(), place);
  SmallVector<Value> after =
      emitLoop(b.builder, b.loc, b.index(0), place.keys, types.pair, before,
               [&](Value key, ValueRange carried) {
                 for (int64_t i = 0; i < types.pair; ++i)
                   block.fetch(ahead, b.add(key, i));
                 SmallVector<Value> next(carried);
                 for (int64_t v = 0; v < vectors; ++v) {
                   Value query = b.add(first, v * types.width);
                   SmallVector<Value> kept;
                   for (int64_t i = 0; i < types.pair; ++i) {
                     Value at = block.slot(tile, b.add(key, i), query);
                     Value distance = b.create<arith::SubFOp>(b.load(at), largest[v]);
                     Value power = block.exponential(b.create<arith::MulFOp>(distance, scale));
                     next[v] = b.create<arith::AddFOp>(next[v], power);
                     if (block.drops())
                       power = b.create<arith::MulFOp>(
                           power, b.load(block.slot(factors, b.add(key, i), query)));
                     if (types.pair == 1)
                       b.store(block.rounded(power), at);
                     else
                       kept.push_back(b.narrow(power, types.packed));
                   }
                   if (types.pair == 2) {
                     Value at = b.mul(b.add(b.mul(b.divide(key, 2), block.queryBlock), query), 2);
                     b.store(b.create<vector::InterleaveOp>(kept[0], kept[1]),
                             b.at(pairs, at, types.packed));
                   }
                 }
                 return next;
               });
  for (int64_t v = 0; v < vectors; ++v)
    b.store(after[v], b.at(totals, b.add(first, v * types.width)));
}

void AttentionForward::finish(const Place& place) {
  // log(sum e^score) = maximum + log(total), or both apart, and what makes a row of sums a row of
  // the result.
  double unit = block.scalesScores() ? 1 : attention.getScale().getValueAsDouble();
  b.loop(0, block.queryBlock, types.width, [&](Value query) {
    Value total = b.load(b.at(totals, query)), zero = b.zeros(b.vector);
    Value isEmpty = b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, total, zero);
    Value largest = b.create<arith::MulFOp>(b.load(b.at(maxima, query)), b.numbers(unit));
    Value logarithm = b.create<math::LogOp>(total);
    if (block.keepsLargest())
      b.store(b.select(isEmpty, zero, largest), b.at(maxima, query));
    else
      logarithm = b.create<arith::AddFOp>(largest, logarithm);
    b.store(b.select(isEmpty, b.numbers(-infinity), logarithm), b.at(totals, query));
    Value inverse = b.create<arith::DivFOp>(b.numbers(1), total);
    b.store(b.select(isEmpty, zero, inverse), b.at(scales, query));
  });
  int64_t columns = block.wholeVectors(attention.getValueWidth());
  kernel::ViewAttr view = attention.getResult();
  b.loop(b.index(0), place.queries, 1, [&](Value row) {
    Value query = b.add(place.query, row);
    auto write = [&](Value statistics, int64_t operand) {
      b.store(b.load(b.scalar, b.at(statistics, row)),
              block.statistic(block.out(operand), place, query));
    };
    write(totals, attention.getLogSumExp());
    if (block.keepsLargest())
      write(maxima, attention.getLargest());
    Value to = block.address(view, true, place.batch, query, place.head);
    Value scale = b.broadcast(b.load(b.scalar, b.at(scales, row)));
    b.columns(attention.getValueWidth(), types.width, [&](Value column, Value mask) {
      Value sum = b.load(b.at(sums, b.add(b.mul(row, columns), column)));
      Value value = b.narrow(b.create<arith::MulFOp>(sum, scale), types.element);
      Value at = b.at(to, column, types.element);
      mask ? b.storeMasked(value, at, mask) : b.store(value, at);
    });
  });
}

} // namespace titan::codegen
