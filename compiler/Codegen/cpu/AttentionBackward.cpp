#include "compiler/Codegen/cpu/AttentionBackward.h"

#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Of libc, which a job is linked with.
func::FuncOp libcFunction(FloatBuilder& b, StringRef name, Type argument, TypeRange results) {
  if (auto found = b.module.lookupSymbol<func::FuncOp>(name))
    return found;
  OpBuilder::InsertionGuard guard(b.builder);
  b.builder.setInsertionPointToEnd(b.module.getBody());
  auto function =
      func::FuncOp::create(b.builder, b.loc, name, b.builder.getFunctionType({argument}, results));
  function.setPrivate();
  return function;
}

Value takeMemory(FloatBuilder& b, int64_t bytes) {
  func::FuncOp malloc = libcFunction(b, "malloc", b.builder.getI64Type(), {b.pointer});
  return func::CallOp::create(b.builder, b.loc, malloc, b.toI64(b.index(bytes))).getResult(0);
}

void giveBack(FloatBuilder& b, Value memory) {
  func::CallOp::create(b.builder, b.loc, libcFunction(b, "free", b.pointer, {}), memory);
}

} // namespace

AttentionBackward::AttentionBackward(FloatBuilder& builder, kernel::AttentionAttr attention,
                                     const AttentionTypes& types, func::FuncOp function,
                                     bool ownsSums)
    : b(builder), attention(attention), gradient(attention.getGradient()), types(types),
      block(builder, attention, types, function) {
  int64_t width = attention.getWidth(), valueWidth = attention.getValueWidth();
  int64_t tileElements = block.keyBlock * block.queryBlock;
  packedKey = b.stack(block.rowsElements(block.keyBlock, width), types.packed);
  if (!types.readsInPlace())
    packedValue = b.stack(block.rowsElements(block.keyBlock, valueWidth), types.packed);
  query = b.stack(block.rowsElements(block.queryBlock, width), types.packed);
  dresult = b.stack(block.rowsElements(block.queryBlock, valueWidth), types.packed);
  queryLanes = b.stack(block.transposedElements(width), types.packed);
  dresultLanes = b.stack(block.transposedElements(valueWidth), types.packed);
  dquery = b.stack(block.queryBlock * block.wholeVectors(width));
  tile = b.stack(tileElements);
  adjoint = b.stack(tileElements);
  if (block.drops())
    factors = b.stack(tileElements);
  if (types.pair == 2)
    for (Value* each : {&probabilityRows, &adjointRows, &adjointPairs})
      *each = b.stack(tileElements, types.packed);
  logSumExp = b.stack(block.queryBlock);
  if (block.keepsLargest())
    largest = b.stack(block.queryBlock);
  delta = b.stack(block.queryBlock);
  if (ownsSums)
    ownSums = takeMemory(b, sumElements() * types.scalar.getIntOrFloatBitWidth() / 8);
}

int64_t AttentionBackward::sumElements() {
  return attention.getSumElements() / (attention.getBatch() * attention.getKeyHeads());
}

void AttentionBackward::end() {
  if (ownSums)
    giveBack(b, ownSums);
}

void AttentionBackward::emitUnit(Value unit) {
  batch = b.divide(unit, attention.getKeyHeads());
  keyHead = b.remainder(unit, attention.getKeyHeads());
  if (ownSums)
    workspace = ownSums;
  else if (gradient.getWorkspace() >= 0)
    workspace = b.at(block.out(gradient.getWorkspace()), b.mul(unit, sumElements()));
  clearUnattended();
  int64_t heads = attention.getHeads() / attention.getKeyHeads();
  b.loop(0, heads, 1, [&](Value i) {
    isFirstHead = b.less(i, b.index(1));
    Place place;
    place.batch = batch;
    place.head = b.add(b.mul(keyHead, heads), i);
    b.loop(0, attention.getQueries(), block.queryBlock, [&](Value first) {
      place.query = first;
      place.queries =
          b.smaller(b.sub(b.index(attention.getQueries()), first), b.index(block.queryBlock));
      emitQueryBlock(place);
    });
  });
  if (workspace)
    writeKeySums();
}

void AttentionBackward::emitQueryBlock(const Place& place) {
  QuerySide side = pack(place);
  loadRowValues(place);
  block.forKeyBlocks(place, [&](const Place& at) { emitKeyBlock(at, side); });
  kernel::ViewAttr view = gradient.getDquery();
  bool isScaled = types.element == types.scalar; // see adjointOfScores
  writeRows(dquery, block.wholeVectors(attention.getWidth()), place.queries, attention.getWidth(),
            block.address(view, true, place.batch, place.query, place.head), view.getRow(),
            isScaled ? 1 : attention.getScale().getValueAsDouble());
}

AttentionBackward::QuerySide AttentionBackward::pack(const Place& place) {
  kernel::ViewAttr queryView = attention.getQuery(), dresultView = gradient.getDresult();
  int64_t width = attention.getWidth(), valueWidth = attention.getValueWidth();
  Value q = block.address(queryView, false, place.batch, place.query, place.head);
  Value dr = block.address(dresultView, false, place.batch, place.query, place.head);
  QuerySide side;
  side.query = block.packRows(q, queryView.getRow(), place.queries, width, query);
  side.queryLanes = block.packTransposed(q, queryView.getRow(), place.queries, width, queryLanes);
  side.dresult = block.packRows(dr, dresultView.getRow(), place.queries, valueWidth, dresult);
  side.dresultLanes =
      block.packTransposed(dr, dresultView.getRow(), place.queries, valueWidth, dresultLanes);
  return side;
}

/// The log-sum-exp, and rowsum(dresult * result). Lanes without a query repeat the last one.
void AttentionBackward::loadRowValues(const Place& place) {
  kernel::ViewAttr resultView = attention.getResult(), dresultView = gradient.getDresult();
  b.loop(0, block.queryBlock, 1, [&](Value lane) {
    Value last = b.sub(place.queries, b.index(1));
    Value row = b.add(place.query, b.smaller(lane, last));
    auto read = [&](int64_t operand, Value statistics) {
      Value from = block.statistic(block.in(operand), place, row);
      b.store(b.load(b.scalar, from), b.at(statistics, lane));
    };
    read(attention.getLogSumExp(), logSumExp);
    if (block.keepsLargest())
      read(attention.getLargest(), largest);
    Value y = block.address(resultView, false, place.batch, row, place.head);
    Value dy = block.address(dresultView, false, place.batch, row, place.head);
    Value sum = b.zeros(b.vector);
    auto addProduct = [&](Value column, Value mask, Value sum) {
      auto read = [&](Value line) {
        VectorType type = b.vectorOf(types.element, types.width);
        Value at = b.at(line, column, types.element);
        return b.widen(mask ? b.loadMasked(type, at, mask) : b.load(type, at));
      };
      return b.fma(read(dy), read(y), sum);
    };
    int64_t whole = attention.getValueWidth() / types.width * types.width;
    sum = emitLoop(b.builder, b.loc, b.index(0), b.index(whole), types.width, sum,
                   [&](Value column, ValueRange carried) {
                     return SmallVector<Value>{addProduct(column, Value(), carried[0])};
                   })[0];
    if (int64_t rest = attention.getValueWidth() - whole)
      sum = addProduct(b.index(whole), b.maskBelow(b.index(rest), types.width), sum);
    b.store(b.sumLanes(sum), b.at(delta, lane));
  });
  // Where nothing is attended to every probability is 0.
  b.loop(0, block.queryBlock, types.width, [&](Value lane) {
    Value value = b.load(b.at(logSumExp, lane));
    Value isEmpty = b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, value, b.numbers(-infinity));
    b.store(b.select(isEmpty, b.numbers(infinity), value), b.at(logSumExp, lane));
  });
}

void AttentionBackward::emitKeyBlock(const Place& place, const QuerySide& side) {
  kernel::ViewAttr keyView = attention.getKey(), valueView = attention.getValue();
  int64_t width = attention.getWidth(), valueWidth = attention.getValueWidth();
  Value keyRows = block.address(keyView, false, place.batch, place.key, keyHead);
  Value valueRows = block.address(valueView, false, place.batch, place.key, keyHead);
  Factor keys = block.packRows(keyRows, keyView.getRow(), place.keys, width, packedKey), values;
  if (!types.readsInPlace())
    values = block.packRows(valueRows, valueView.getRow(), place.keys, valueWidth, packedValue);

  block.scores(place, tile, block.leftRows(keyRows, keyView.getRow(), keys), side.queryLanes, width,
               block.aheadOfKeys(keyView, place));
  block.maskScores(place, tile);
  block.scores(place, adjoint, block.leftRows(valueRows, valueView.getRow(), values),
               side.dresultLanes, valueWidth, block.aheadOfKeys(valueView, place));
  if (block.drops())
    block.dropoutFactors(place, factors);
  adjointOfScores(place);

  bool inPairs = types.pair == 2;
  Value rowStride = b.index(block.queryBlock), pair = b.index(types.pair);
  Value lowSkew = attention.getCausal() ? place.skew : b.index(everySkew);
  Value continues = continuesKeySums(place);
  block.product({.left = {inPairs ? probabilityRows : tile, rowStride, pair},
                 .right = side.dresult,
                 .sums = keySums(place.key, true),
                 .rows = place.keys,
                 .columns = block.wholeVectors(valueWidth),
                 .depth = place.queries,
                 .lowSkew = lowSkew,
                 .continues = continues,
                 .ahead = block.aheadOfQueries(attention.getQuery(), place)});
  block.product({.left = {inPairs ? adjointRows : adjoint, rowStride, pair},
                 .right = side.query,
                 .sums = keySums(place.key, false),
                 .rows = place.keys,
                 .columns = block.wholeVectors(width),
                 .depth = place.queries,
                 .lowSkew = lowSkew,
                 .continues = continues,
                 .ahead = block.aheadOfQueries(gradient.getDresult(), place)});
  block.product({.left = {.pointer = inPairs ? adjointPairs : adjoint,
                          .row = pair,
                          .step = b.index(block.queryBlock * types.pair),
                          .inColumns = true},
                 .right = keys,
                 .sums = {dquery, b.index(block.wholeVectors(width))},
                 .rows = place.queries,
                 .columns = block.wholeVectors(width),
                 .depth = place.keys,
                 .highSkew = place.skew,
                 .continues = b.less(b.index(0), place.key),
                 .ahead = block.aheadOfQueries(attention.getResult(), place)});
}

/// tile: scores -> probabilities (after dropout); adjoint: of probabilities -> of scores. Both
/// rounded to the operands' type; without rounding the scale of the scores enters here, and the
/// products need no other.
void AttentionBackward::adjointOfScores(const Place& place) {
  bool isMasked = block.scalesScores();
  Value scale = b.numbers(block.exponentScale());
  Value scoreScale = b.numbers(attention.getScale().getValueAsDouble());
  // An odd number of keys: a last one with zeros.
  Value keys = b.mul(b.divide(b.add(place.keys, types.pair - 1), types.pair), types.pair);
  block.forQueryVectors([&](Value first, int64_t vectors) {
    SmallVector<Value> total, offset, highest;
    for (int64_t v = 0; v < vectors; ++v) {
      Value lane = b.add(first, v * types.width);
      Value value = b.load(b.at(logSumExp, lane));
      if (block.keepsLargest())
        highest.push_back(b.load(b.at(largest, lane)));
      // score * scale - log-sum-exp in powers of two; a masked score may be as low as numbers go,
      // so that the differences come first.
      total.push_back(isMasked ? value
                               : b.create<arith::MulFOp>(value, b.numbers(-std::numbers::log2e)));
      offset.push_back(b.load(b.at(delta, lane)));
    }
    b.loop(b.index(0), keys, types.pair, [&](Value key) {
      for (int64_t v = 0; v < vectors; ++v) {
        Value lane = b.add(first, v * types.width);
        SmallVector<Value> narrow;
        for (int64_t i = 0; i < types.pair; ++i) {
          Value row = b.add(key, i), at = block.slot(tile, row, lane);
          Value adjointAt = block.slot(adjoint, row, lane);
          Value score = b.load(at);
          if (block.keepsLargest())
            score = b.create<arith::SubFOp>(score, highest[v]);
          Value exponent =
              isMasked ? b.create<arith::MulFOp>(b.create<arith::SubFOp>(score, total[v]), scale)
                       : b.fma(score, scale, total[v]);
          Value p = block.exponential(exponent), dp = b.load(adjointAt), kept = p;
          if (block.drops()) {
            Value factor = b.load(block.slot(factors, row, lane));
            kept = b.create<arith::MulFOp>(p, factor);
            dp = b.create<arith::MulFOp>(dp, factor);
          }
          Value ds = b.create<arith::MulFOp>(p, b.create<arith::SubFOp>(dp, offset[v]));
          ds = block.withoutFilled(ds, row, lane);
          if (types.element == types.scalar)
            ds = b.create<arith::MulFOp>(ds, scoreScale);
          if (types.pair == 1) {
            b.store(block.rounded(kept), at);
            b.store(block.rounded(ds), adjointAt);
            continue;
          }
          Value exists = b.less(row, place.keys);
          Value place2 = b.add(b.mul(row, block.queryBlock), lane);
          Value zeros = b.zeros(b.vectorOf(types.packed, types.width));
          narrow.push_back(b.select(exists, b.narrow(ds, types.packed), zeros));
          b.store(b.narrow(kept, types.packed), b.at(probabilityRows, place2, types.packed));
          b.store(narrow.back(), b.at(adjointRows, place2, types.packed));
        }
        if (types.pair == 2) {
          Value at = b.mul(b.add(b.mul(b.divide(key, 2), block.queryBlock), lane), 2);
          b.store(b.create<vector::InterleaveOp>(narrow[0], narrow[1]),
                  b.at(adjointPairs, at, types.packed));
        }
      }
    });
  });
}

AttentionBackward::Sums AttentionBackward::keySums(Value key, bool ofValue) {
  int64_t width = attention.padded(attention.getWidth());
  int64_t valueWidth = attention.padded(attention.getValueWidth());
  if (workspace) {
    int64_t begin = ofValue ? attention.getKeys() * width : 0, row = ofValue ? valueWidth : width;
    return {b.at(workspace, b.add(b.mul(key, row), begin)), b.index(row)};
  }
  kernel::ViewAttr view = ofValue ? gradient.getDvalue() : gradient.getDkey();
  return {block.address(view, true, batch, key, keyHead), b.index(view.getRow())};
}

/// Has an earlier block of queries begun the sums of this block of keys?
Value AttentionBackward::continuesKeySums(const Place& place) {
  // The first one that sees the keys: of all, or of those on and below the diagonal.
  Value isLater =
      attention.getCausal() ? b.less(place.key, place.query) : b.less(b.index(0), place.query);
  return b.select(isFirstHead, isLater, b.flag(true));
}

/// Keys beyond a causal limit of all queries.
void AttentionBackward::clearUnattended() {
  int64_t first = attention.getCausal() ? std::min(attention.getQueries(), attention.getKeys())
                                        : attention.getKeys();
  b.loop(first, attention.getKeys(), 1, [&](Value key) {
    for (bool ofValue : {false, true}) {
      Value line = keySums(key, ofValue).pointer;
      int64_t columns =
          block.wholeVectors(ofValue ? attention.getValueWidth() : attention.getWidth());
      b.loop(0, columns, types.width,
             [&](Value column) { b.store(b.zeros(b.vector), b.at(line, column)); });
    }
  });
}

void AttentionBackward::writeKeySums() {
  bool isScaled = types.element == types.scalar;
  auto write = [&](kernel::ViewAttr view, bool ofValue, int64_t columns, double scale) {
    writeRows(keySums(b.index(0), ofValue).pointer, attention.padded(columns),
              b.index(attention.getKeys()), columns,
              block.address(view, true, batch, b.index(0), keyHead), view.getRow(), scale);
  };
  write(gradient.getDkey(), false, attention.getWidth(),
        isScaled ? 1 : attention.getScale().getValueAsDouble());
  write(gradient.getDvalue(), true, attention.getValueWidth(), 1);
}

void AttentionBackward::writeRows(Value from, int64_t fromRow, Value rows, int64_t columns,
                                  Value to, int64_t toRow, double scale) {
  b.loop(b.index(0), rows, 1, [&](Value row) {
    Value source = b.at(from, b.mul(row, fromRow));
    Value target = b.at(to, b.mul(row, toRow), types.element);
    b.columns(columns, types.width, [&](Value column, Value mask) {
      Value value = b.load(b.at(source, column));
      if (scale != 1)
        value = b.create<arith::MulFOp>(value, b.numbers(scale));
      value = b.narrow(value, types.element);
      Value at = b.at(target, column, types.element);
      mask ? b.storeMasked(value, at, mask) : b.store(value, at);
    });
  });
}

} // namespace titan::codegen
