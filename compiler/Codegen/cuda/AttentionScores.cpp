#include "compiler/Codegen/cuda/AttentionScores.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/Loops.h"
#include "compiler/Codegen/kernel/RandomBits.h"
#include "runtime/program/Random.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr int64_t cell = TileProduct::cell, lanes = TileProduct::lanes;
constexpr int64_t philoxElements = 8; ///< that one Philox block decides
constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

AttentionScores::AttentionScores(ThreadBuilder& builder, TileProduct& product, kernel::CallOp call,
                                 func::FuncOp function)
    : attention(cast<kernel::AttentionAttr>(call.getRoutine())), b(builder), product(product),
      call(call), operands(function.getArguments()),
      ins(static_cast<int64_t>(call.getIns().size())) {
  kernel::AttentionDropoutAttr dropout = attention.getDropout();
  if (!dropout)
    return;
  Type i64 = b.builder.getI64Type();
  auto read = [&](int64_t operand) {
    return operand < 0 ? b.number(i64, 0) : b.load(i64, in(operand), 8);
  };
  randomKey = emitRandomKey(b.builder, b.loc, read(dropout.getSeed()), operands.back());
  randomStep = read(dropout.getStep());
  if (dropout.getMultiple() != 0) // the first of two scalars
    windowBase = operands.drop_back().back();
}

Value AttentionScores::pointer(kernel::ViewAttr view, bool isOut, Value batch, Value head) const {
  Value at = b.add(b.mul(batch, view.getBatch()), view.getOffset());
  at = b.add(at, b.mul(head, view.getHead()));
  return b.address(isOut ? out(view.getOperand()) : in(view.getOperand()), attention.getElement(),
                   at);
}

Lines AttentionScores::rows(kernel::ViewAttr view, Value batch, Value head, Value first,
                            int64_t rows) {
  return {.pointer = pointer(view, false, batch, head),
          .element = attention.getElement(),
          .alignment = alignmentOf(view, call.getIns()[view.getOperand()]),
          .first = first,
          .extent = rows,
          .stride = view.getRow(),
          .depthStride = 1};
}

Lines AttentionScores::columns(kernel::ViewAttr view, Value batch, Value head, Value first,
                               int64_t rows, int64_t firstColumn, int64_t width) {
  return {.pointer = pointer(view, false, batch, head),
          .element = attention.getElement(),
          .alignment = alignmentOf(view, call.getIns()[view.getOperand()]),
          .first = b.index(firstColumn),
          .extent = width,
          .stride = 1,
          .depthStride = view.getRow(),
          .firstDepth = first,
          .depthExtent = rows};
}

int64_t AttentionScores::alignmentOf(kernel::ViewAttr view, Value operand) const {
  const int64_t bytes = attention.getElement().getIntOrFloatBitWidth() / 8;
  int64_t alignment = cuda::alignmentOf(operand);
  for (int64_t step : {view.getOffset(), view.getBatch(), view.getRow(), view.getHead()})
    alignment = std::gcd(alignment, step * bytes);
  return alignment;
}

Value AttentionScores::keyHead(Value head) {
  const int64_t group = attention.getHeads() / attention.getKeyHeads();
  return group == 1 ? head : b.create<arith::DivUIOp>(head, b.index(group));
}

Value AttentionScores::rounded(Value value) {
  return b.widen(b.narrow(value, attention.getElement()));
}

Value AttentionScores::exponential(Value value) { return b.create<math::ExpOp>(value); }

Value AttentionScores::queryOf(const AttentionPlace& place, int64_t i) {
  return b.add(b.add(place.query, product.row), i);
}

Value AttentionScores::queryExists(const AttentionPlace& place, int64_t i) {
  return attention.getQueries() % TileProduct::side == 0
             ? Value()
             : b.isBelow(queryOf(place, i), attention.getQueries());
}

Value AttentionScores::statistic(const AttentionPlace& place, Value query) {
  Value head = b.add(b.mul(place.batch, attention.getHeads()), place.head);
  return b.add(b.mul(head, attention.getQueries()), query);
}

AttentionScores::Rows AttentionScores::readStatistic(int64_t operand, const AttentionPlace& place) {
  Type f32 = b.builder.getF32Type();
  Rows values;
  for (int64_t i = 0; i < cell; ++i)
    values.push_back(b.loadIf(
        queryExists(place, i), f32,
        b.address(b.address(in(operand), f32, statistic(place, queryOf(place, 0))), f32, i)));
  return values;
}

AttentionScores::Rows AttentionScores::rowSums(const AttentionPlace& place) {
  kernel::ViewAttr views[] = {attention.getGradient().getDresult(), attention.getResult()};
  Type element = attention.getElement();
  const int64_t width = attention.getValueWidth(),
                runBytes = cell * element.getIntOrFloatBitWidth() / 8;
  const bool hasRuns = width % cell == 0;
  Type loaded = hasRuns ? VectorType::get({cell}, element) : element;
  Value first = hasRuns ? product.column : b.div(product.column, cell);
  Value zero = hasRuns ? b.number(product.run, 0) : b.f32(0);
  Rows sums = emitLoop(
      b.builder, b.loc, first, b.index(width), hasRuns ? TileProduct::side : lanes,
      SmallVector<Value>(cell, zero), [&](Value column, ValueRange carried) {
        Rows next;
        for (int64_t i = 0; i < cell; ++i) {
          SmallVector<Value> factors;
          for (kernel::ViewAttr view : views) {
            const int64_t alignment =
                hasRuns ? std::gcd(alignmentOf(view, call.getIns()[view.getOperand()]), runBytes)
                        : 0;
            Value at = b.add(b.mul(queryOf(place, 0), view.getRow()), column);
            at = b.address(pointer(view, false, place.batch, place.head), element, at);
            at = b.address(at, element, i * view.getRow());
            factors.push_back(b.widen(b.loadIf(queryExists(place, i), loaded, at, alignment)));
          }
          next.push_back(b.fma(factors[0], factors[1], carried[i]));
        }
        return next;
      });
  for (Value& sum : sums) {
    if (hasRuns)
      sum = foldLanes(b.builder, b.loc, kernel::ReduceKind::Add, sum);
    sum = combineLanes(b.builder, b.loc, kernel::ReduceKind::Add, sum, lanes);
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// The mask beside the scores of row i: f32, or i1.
AttentionScores::Rows AttentionScores::maskRow(const AttentionPlace& place, int64_t i) {
  kernel::AttentionMaskAttr mask = attention.getMask();
  Value first = b.add(b.mul(place.batch, mask.getBatch()), b.mul(place.head, mask.getHead()));
  first = b.add(first, b.mul(queryOf(place, 0), mask.getRow()));
  Value key = b.add(place.key, product.column);
  Type stored = mask.getBoolean() ? Type(b.builder.getI8Type()) : Type(b.builder.getF32Type());
  first = b.address(in(mask.getOperand()), stored, b.add(first, key));
  Rows values;
  for (int64_t j = 0; j < cell; ++j) {
    Value exists = queryExists(place, i);
    if (attention.getKeys() % TileProduct::side != 0)
      exists = b.both(exists, b.isBelow(b.add(key, j), attention.getKeys()));
    Value value = b.loadIf(exists, stored, b.address(first, stored, i * mask.getRow() + j));
    if (mask.getBoolean())
      value = b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, value,
                                      b.create<arith::ConstantOp>(b.builder.getI8IntegerAttr(0)));
    values.push_back(value);
  }
  return values;
}

/// The last key that row i attends to, or null where that is any.
Value AttentionScores::limit(const AttentionPlace& place, int64_t i, bool limitsQueries) {
  const int64_t queries = attention.getQueries(), keys = attention.getKeys();
  Value query = queryOf(place, i), last;
  if (keys % TileProduct::side != 0)
    last = b.index(keys - 1);
  if (attention.getCausal())
    last = b.smaller(query, keys - 1);
  if (limitsQueries && queries % TileProduct::side != 0)
    last = b.select(b.isBelow(query, queries), last ? last : b.index(keys - 1), b.index(-1));
  return last ? b.create<arith::IndexCastOp>(b.builder.getI32Type(), last) : Value();
}

AttentionScores::Tile AttentionScores::scores(const AttentionPlace& place, bool limitsQueries) {
  kernel::AttentionMaskAttr mask = attention.getMask();
  Value key = keyHead(place.head);
  Tile tile;
  tile.scores = product.multiply(
      rows(attention.getQuery(), place.batch, place.head, place.query, attention.getQueries()),
      rows(attention.getKey(), place.batch, key, place.key, attention.getKeys()),
      attention.getWidth());
  Value scale = b.number(product.run, attention.getScale().getValueAsDouble());
  Value nothing = b.number(product.run, -infinity);
  Value number =
      mask && mask.getFill() ? b.number(product.run, mask.getFill().getValueAsDouble()) : nothing;
  Type i32 = b.builder.getI32Type();
  Value firstKey = b.create<arith::IndexCastOp>(i32, b.add(place.key, product.column));
  Value keys = b.create<arith::AddIOp>(
      b.splat(firstKey, cell),
      b.create<arith::ConstantOp>(b.builder.getI32VectorAttr({0, 1, 2, 3})));
  for (int64_t i = 0; i < cell; ++i) {
    Value& score = tile.scores[i];
    Value masked = mask ? b.join(maskRow(place, i)) : Value();
    score = mask && !mask.getBoolean() ? b.fma(score, scale, masked) : b.times(score, scale);
    if (mask && mask.getBoolean())
      score = b.select(masked, score, number);
    if (mask && mask.getFill())
      tile.allowed.push_back(masked);
    if (Value last = limit(place, i, limitsQueries)) {
      tile.attended.push_back(
          b.create<arith::CmpIOp>(arith::CmpIPredicate::sle, keys, b.splat(last, cell)));
      score = b.select(tile.attended.back(), score, nothing);
    }
  }
  return tile;
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

AttentionScores::Rows AttentionScores::dropoutFactors(const AttentionPlace& place) {
  kernel::AttentionDropoutAttr dropout = attention.getDropout();
  ArrayRef<int64_t> global = dropout.getGlobal();
  const double p = dropout.getP().getValueAsDouble();
  const bool aligned =
      global[3] % philoxElements == 0 && dropout.getMultiple() % philoxElements == 0;
  Type i64 = b.builder.getI64Type(), i32 = b.builder.getI32Type();
  auto constant = [&](int64_t value) {
    return b.create<arith::ConstantOp>(b.builder.getI64IntegerAttr(value));
  };
  auto shiftLeft = [&](Value value, Value by) { return b.create<arith::ShLIOp>(value, by); };
  auto shiftRight = [&](Value value, Value by) { return b.create<arith::ShRUIOp>(value, by); };
  auto halvesOf = [&](Value block) { // of its elements 0 to 3, and 4 to 7
    auto words = emitRandomWords(b.builder, b.loc, randomKey, randomStep, block);
    auto pair = [&](Value low, Value high) {
      return b.create<arith::OrIOp>(low, shiftLeft(high, constant(32)));
    };
    return std::pair(pair(words[0], words[1]), pair(words[2], words[3]));
  };
  /// Those of elements first, ..., first + 3.
  auto halvesFrom = [&](Value first) {
    Value block = shiftRight(first, constant(3));
    auto [low, high] = halvesOf(block);
    Value isHigh = b.create<arith::CmpIOp>(
        arith::CmpIPredicate::ne, b.create<arith::AndIOp>(first, constant(4)), constant(0));
    if (aligned)
      return b.select(isHigh, high, low);
    Value next = halvesOf(b.create<arith::AddIOp>(block, constant(1))).first;
    Value begin = b.select(isHigh, high, low), end = b.select(isHigh, next, high);
    Value by = shiftLeft(b.create<arith::AndIOp>(first, constant(3)), constant(4));
    end = shiftLeft(shiftLeft(end, constant(1)), b.create<arith::SubIOp>(constant(63), by));
    return b.create<arith::OrIOp>(shiftRight(begin, by), end);
  };
  Rows factors;
  auto halves = VectorType::get({cell}, b.builder.getI16Type());
  for (int64_t i = 0; i < cell; ++i) {
    Value element = b.add(b.mul(place.batch, global[1]), place.head);
    element = b.add(b.mul(element, global[2]), queryOf(place, i));
    element = b.add(b.mul(element, global[3]), b.add(place.key, product.column));
    element = b.create<arith::IndexCastOp>(i64, element);
    if (windowBase)
      element = b.create<arith::AddIOp>(element, windowBase);
    Value bits = b.splat(halvesFrom(element), 1);
    bits = b.create<vector::BitCastOp>(halves, bits);
    bits = b.create<arith::ExtUIOp>(halves.clone(i32), bits);
    Value threshold = b.number(halves.clone(i32), static_cast<double>(keepThreshold(p)));
    Value isKept = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, bits, threshold);
    factors.push_back(
        b.select(isKept, b.number(product.run, 1 / (1 - p)), b.number(product.run, 0)));
  }
  return factors;
}

} // namespace titan::codegen::cuda
