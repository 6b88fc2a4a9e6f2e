#include "compiler/Codegen/cpu/AttentionBlock.h"

#include "compiler/Codegen/kernel/RandomBits.h"
#include "dialects/Kernel/AttentionRoutine.h"
#include "runtime/program/Random.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr int64_t philoxElements = 8; ///< that one Philox block decides

} // namespace

AttentionBlock::AttentionBlock(FloatBuilder& builder, kernel::AttentionAttr attention,
                               const AttentionTypes& types, func::FuncOp function)
    : attention(attention), types(types),
      queryBlock(std::min<int64_t>(attention.getBlocks().getRows(),
                                   llvm::alignTo(attention.getQueries(), types.width))),
      keyBlock(std::min<int64_t>(attention.getBlocks().getKeys(),
                                 llvm::alignTo(attention.getKeys(), philoxElements))),
      b(builder) {
  kernel::AttentionOperands count = kernel::countOperands(attention);
  SmallVector<Value> operands =
      loadOperands(b.builder, b.loc, function, static_cast<unsigned>(count.ins + count.outs));
  ins.assign(operands.begin(), operands.begin() + count.ins);
  outs.assign(operands.begin() + count.ins, operands.end());
  if (attention.getMask())
    maskValues = b.stack(llvm::alignTo(keyBlock, types.width) * this->queryBlock);
  if (kernel::AttentionDropoutAttr dropout = attention.getDropout()) {
    Type i64 = b.builder.getI64Type();
    auto read = [&](int64_t operand) {
      return operand < 0 ? b.toI64(b.index(0)) : b.load(i64, in(operand));
    };
    // After the base, if there is one.
    const bool hasBase = dropout.getMultiple() != 0;
    Value stream = b.at(function.getArgument(1), b.index(hasBase ? 1 : 0), i64);
    randomKey = emitRandomKey(b.builder, b.loc, read(dropout.getSeed()), b.load(i64, stream));
    randomStep = read(dropout.getStep());
    if (hasBase)
      windowBase = b.toIndex(b.load(i64, function.getArgument(1)));
  }
}

int64_t AttentionBlock::wholeVectors(int64_t width) const {
  return static_cast<int64_t>(llvm::alignTo(width, types.width));
}

Value AttentionBlock::address(kernel::ViewAttr view, bool isOut, Value batch, Value row,
                              Value head) {
  Value offset = b.add(b.mul(batch, view.getBatch()), view.getOffset());
  offset = b.add(offset, b.mul(row, view.getRow()));
  offset = b.add(offset, b.mul(head, view.getHead()));
  return b.at(isOut ? outs[view.getOperand()] : ins[view.getOperand()], offset, types.element);
}

Value AttentionBlock::keyHead(Value head) {
  return b.divide(head, attention.getHeads() / attention.getKeyHeads());
}

void AttentionBlock::forKeyBlocks(Place place, function_ref<void(const Place&)> body) {
  Value end = b.index(attention.getKeys());
  if (attention.getCausal())
    end = b.smaller(end, b.add(place.query, place.queries));
  b.loop(b.index(0), end, keyBlock, [&](Value key) {
    place.key = key;
    place.keys = b.smaller(b.sub(end, key), b.index(keyBlock));
    place.skew = attention.getCausal() ? b.sub(place.query, key) : b.index(everySkew);
    body(place);
  });
}

AttentionBlock::Ahead AttentionBlock::aheadOfQueries(kernel::ViewAttr view, const Place& place) {
  Value next = b.add(place.query, queryBlock);
  Value exists = b.less(next, b.index(attention.getQueries()));
  Value head = b.select(exists, place.head, b.add(place.head, 1));
  next = b.select(exists, next, b.index(0));
  return {address(view, false, place.batch, next, head), b.index(view.getRow())};
}

AttentionBlock::Ahead AttentionBlock::aheadOfKeys(kernel::ViewAttr view, const Place& place) {
  Value next = b.add(place.key, keyBlock);
  Value exists = b.less(next, b.index(attention.getKeys()));
  Value head = keyHead(b.select(exists, place.head, b.add(place.head, 1)));
  next = b.select(exists, next, b.index(0));
  return {address(view, false, place.batch, next, head), b.index(view.getRow())};
}

void AttentionBlock::fetch(const Ahead& ahead, Value row) {
  prefetchRow(b, types, b.at(ahead.pointer, b.mul(row, ahead.row), types.element));
}

void AttentionBlock::product(const Product& p) {
  Value every = b.index(everySkew), continues = p.continues ? p.continues : b.flag(true);
  auto strip = [&](Value column, int64_t vectors) {
    Value right = b.at(p.right.pointer, b.mul(column, types.pair), types.packed);
    ProductArguments arguments = {
        .a = p.left.pointer,
        .aRow = p.left.row,
        .aStep = p.left.step,
        .b = right,
        .bStep = p.right.step,
        .c = b.at(p.sums.pointer, column),
        .cRow = p.sums.row,
        .rows = p.rows,
        .depth = p.depth,
        .lowSkew = p.lowSkew ? p.lowSkew : every,
        .highSkew = p.highSkew ? p.highSkew : every,
        .continues = continues,
        .scaled = b.flag(static_cast<bool>(p.scales)),
        .scales = p.scales ? p.scales : p.sums.pointer,
        .ahead = p.ahead.pointer ? p.ahead.pointer : p.sums.pointer,
        .aheadRow = p.ahead.pointer ? p.ahead.row : b.index(0),
    };
    callShared(b, getAttentionProduct(b, types, vectors, p.left.inColumns), arguments);
  };
  int64_t whole = p.columns / types.stripColumns() * types.stripColumns();
  b.loop(0, whole, types.stripColumns(), [&](Value column) { strip(column, types.vectors); });
  if (whole < p.columns)
    strip(b.index(whole), (p.columns - whole) / types.width);
}

void AttentionBlock::scores(const Place& place, Value tile, const Factor& left, const Factor& right,
                            int64_t width, const Ahead& ahead) {
  Product all = {.left = left,
                 .right = right,
                 .sums = {tile, b.index(queryBlock)},
                 .rows = place.keys,
                 .columns = queryBlock,
                 .depth = b.index(width),
                 .continues = b.flag(false),
                 .ahead = ahead};
  if (!attention.getCausal())
    return product(all);
  // Where the block crosses the diagonal, strips of two vectors stop below it.
  int64_t stripColumns = std::min<int64_t>(2 * types.width, queryBlock);
  while (queryBlock % stripColumns != 0)
    stripColumns -= types.width;
  Value crosses = b.less(place.skew, place.keys);
  b.when(crosses, [&] {
    b.loop(0, queryBlock, stripColumns, [&](Value column) {
      Product strip = all;
      strip.right.pointer = b.at(right.pointer, b.mul(column, types.pair), types.packed);
      strip.sums.pointer = b.at(tile, column);
      strip.columns = stripColumns;
      Value last = b.add(b.add(column, stripColumns), place.skew);
      strip.rows = b.larger(b.smaller(place.keys, last), b.index(0));
      product(strip);
    });
  });
  b.when(b.create<arith::XOrIOp>(crosses, b.flag(true)), [&] { product(all); });
}

bool AttentionBlock::scalesScores() const {
  // The largest unscaled score is the largest score where the scale is positive.
  return attention.getMask() || attention.getScale().getValueAsDouble() <= 0;
}

FloatAttr AttentionBlock::fill() const {
  return attention.getMask() ? attention.getMask().getFill() : FloatAttr();
}

// A boolean mask is 0 or -inf in the tile.
Value AttentionBlock::isFilled(Value key, Value query) {
  return b.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, b.load(slot(maskValues, key, query)),
                                 b.zeros(b.vector));
}

Value AttentionBlock::withoutFilled(Value adjoints, Value key, Value query) {
  return fill() ? b.select(isFilled(key, query), b.zeros(b.vector), adjoints) : adjoints;
}

Value AttentionBlock::statistic(Value pointer, const Place& place, Value query) {
  Value row = b.add(b.mul(place.batch, attention.getHeads()), place.head);
  return b.at(pointer, b.add(b.mul(row, attention.getQueries()), query));
}

double AttentionBlock::exponentScale() const {
  double scale = scalesScores() ? 1 : attention.getScale().getValueAsDouble();
  return scale * std::numbers::log2e;
}

void AttentionBlock::maskTile(const Place& place) {
  kernel::AttentionMaskAttr mask = attention.getMask();
  Type from = mask.getBoolean() ? Type(b.builder.getI1Type()) : Type(types.scalar);
  Type stored = mask.getBoolean() ? b.builder.getI8Type() : from;
  Value offset = b.add(b.mul(place.batch, mask.getBatch()), b.mul(place.head, mask.getHead()));
  offset = b.add(b.add(offset, b.mul(place.query, mask.getRow())), place.key);
  TransposeArguments arguments = {.source = b.at(in(mask.getOperand()), offset, stored),
                                  .sourceRow = b.index(mask.getRow()),
                                  .rows = place.queries,
                                  .columns = place.keys,
                                  .target = maskValues,
                                  .targetRows = b.index(queryBlock)};
  callShared(b, getAttentionTranspose(b, types, from, types.scalar), arguments);
}

Value AttentionBlock::slot(Value tile, Value row, Value column) {
  return b.at(tile, b.add(b.mul(row, queryBlock), column));
}

void AttentionBlock::maskScores(const Place& place, Value tile) {
  if (scalesScores()) {
    bool masked = static_cast<bool>(attention.getMask());
    if (masked)
      maskTile(place);
    Value scale = b.numbers(attention.getScale().getValueAsDouble());
    b.loop(b.index(0), place.keys, 1, [&](Value key) {
      b.loop(0, queryBlock, types.width, [&](Value query) {
        Value at = slot(tile, key, query), score = b.load(at);
        score = masked ? b.fma(score, scale, b.load(slot(maskValues, key, query)))
                       : b.create<arith::MulFOp>(score, scale);
        if (FloatAttr number = fill())
          score = b.select(isFilled(key, query), b.numbers(number.getValueAsDouble()), score);
        b.store(score, at);
      });
    });
  }
  if (attention.getCausal())
    b.when(b.less(place.skew, place.keys), [&] { limitCausally(place, tile); });
}

void AttentionBlock::limitCausally(const Place& place, Value tile) {
  Value nothing = b.numbers(-std::numeric_limits<double>::infinity());
  b.loop(b.index(0), place.keys, 1, [&](Value key) {
    // Query lanes from key - skew on attend.
    Value first = b.sub(key, place.skew);
    b.loop(0, queryBlock, types.width, [&](Value query) {
      Value at = slot(tile, key, query);
      Value beyond = b.maskBelow(b.sub(first, query), types.width);
      b.store(b.select(beyond, nothing, b.load(at)), at);
    });
  });
}

Value AttentionBlock::elementIndex(const Place& place) {
  kernel::AttentionDropoutAttr dropout = attention.getDropout();
  Value coordinates[] = {place.batch, place.head, place.query, place.key};
  Value element;
  for (int64_t d = 0; d < 4; ++d) {
    Value coordinate = coordinates[d];
    element = element ? b.add(b.mul(element, dropout.getGlobal()[d]), coordinate) : coordinate;
  }
  return windowBase ? b.add(element, windowBase) : element;
}

void AttentionBlock::dropoutFactors(const Place& place, Value factors) {
  kernel::AttentionDropoutAttr dropout = attention.getDropout();
  double p = dropout.getP().getValueAsDouble();
  uint64_t threshold = keepThreshold(p);
  int64_t keys = dropout.getGlobal()[3];
  bool aligned = keys % philoxElements == 0 && dropout.getMultiple() % philoxElements == 0;
  VectorType lanes = b.vectorOf(b.builder.getI64Type(), types.width);
  auto splat = [&](int64_t value) {
    return b.create<arith::ConstantOp>(
        DenseElementsAttr::get(lanes, b.builder.getI64IntegerAttr(value)));
  };
  SmallVector<int64_t> steps(types.width);
  for (int64_t lane = 0; lane < types.width; ++lane)
    steps[lane] = lane * keys;
  Value rows = b.create<arith::ConstantOp>(b.builder.getI64VectorAttr(steps));
  Value kept = b.numbers(1 / (1 - p)), dropped = b.zeros(b.vector);
  auto decide = [&](Value number, uint64_t limit, Value key, Value query) {
    Value isKept = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, number,
                                           splat(static_cast<int64_t>(limit)));
    b.store(b.select(isKept, kept, dropped), slot(factors, key, query));
  };
  Value first = elementIndex(place);
  b.loop(b.index(0), place.keys, philoxElements, [&](Value key) {
    b.loop(0, queryBlock, types.width, [&](Value query) {
      Value corner = b.add(b.add(first, b.mul(query, keys)), key);
      Value elements =
          b.create<arith::AddIOp>(rows, b.create<vector::BroadcastOp>(lanes, b.toI64(corner)));
      if (aligned) {
        Value blocks = b.create<arith::ShRUIOp>(elements, splat(3));
        auto words = emitRandomWords(b.builder, b.loc, randomKey, randomStep, blocks);
        for (int64_t w = 0; w < 4; ++w) {
          Value low = b.create<arith::AndIOp>(words[w], splat(0xffff));
          decide(low, threshold, b.add(key, 2 * w), query);
          decide(words[w], threshold << 16, b.add(key, 2 * w + 1), query);
        }
        return;
      }
      b.loop(0, philoxElements, 1, [&](Value i) {
        Value element =
            b.create<arith::AddIOp>(elements, b.create<vector::BroadcastOp>(lanes, b.toI64(i)));
        Value half = emitRandomHalf(b.builder, b.loc, randomKey, randomStep, element);
        decide(b.create<arith::ExtUIOp>(lanes, half), threshold, b.add(key, i), query);
      });
    });
  });
}

int64_t AttentionBlock::rowsElements(int64_t rows, int64_t columns) const {
  return static_cast<int64_t>(llvm::alignTo(rows, types.pair)) * wholeVectors(columns);
}

int64_t AttentionBlock::transposedElements(int64_t columns) const {
  return static_cast<int64_t>(llvm::alignTo(columns, types.width * types.pair)) * queryBlock;
}

AttentionBlock::Factor AttentionBlock::packRows(Value source, int64_t sourceRow, Value rows,
                                                int64_t columns, Value target) {
  Value step = b.index(wholeVectors(columns) * types.pair);
  RowsArguments arguments = {.source = source,
                             .sourceRow = b.index(sourceRow),
                             .rows = rows,
                             .columns = b.index(columns),
                             .target = target,
                             .targetStep = step};
  callShared(b, getAttentionRows(b, types), arguments);
  return {target, step, step};
}

AttentionBlock::Factor AttentionBlock::packTransposed(Value source, int64_t sourceRow, Value rows,
                                                      int64_t columns, Value target) {
  TransposeArguments arguments = {.source = source,
                                  .sourceRow = b.index(sourceRow),
                                  .rows = rows,
                                  .columns = b.index(columns),
                                  .target = target,
                                  .targetRows = b.index(queryBlock)};
  callShared(b, getAttentionTranspose(b, types, types.element, types.packed), arguments);
  return {target, Value(), b.index(queryBlock * types.pair)};
}

AttentionBlock::Factor AttentionBlock::leftRows(Value source, int64_t sourceRow,
                                                const Factor& packed) {
  if (types.readsInPlace())
    return {source, b.index(sourceRow), b.index(types.pair)};
  return {packed.pointer, packed.row, b.index(1)};
}

// 2^x = 2^n 2^f with n the nearest integer, |f| <= 1/2. Adding 1.5 * 2^23 leaves n in the low bits;
// 2^f is a minimax fit in relative error (9e-8) that is exact at 0, so that x <= -127 gives 0.
Value AttentionBlock::exponential(Value x) {
  if (!types.scalar.isF32())
    return b.create<math::Exp2Op>(x);
  constexpr double coefficients[] = {0.6931470036506653, 0.24022242426872253, 0.05550733581185341,
                                     0.009671512991189957, 0.001326472614891827};
  constexpr double shifter = 12582912, lowest = -127;
  constexpr int64_t mantissaBits = 23;
  auto type = cast<VectorType>(x.getType());
  x = b.maximum(b.numbers(lowest), x);
  Value shifted = b.create<arith::AddFOp>(x, b.numbers(shifter));
  Value whole = b.create<arith::SubFOp>(shifted, b.numbers(shifter));
  Value f = b.create<arith::SubFOp>(x, whole);
  Value power = b.numbers(coefficients[4]);
  for (int i = 3; i >= 0; --i)
    power = b.fma(power, f, b.numbers(coefficients[i]));
  power = b.fma(power, f, b.numbers(1));
  VectorType bits = type.clone(b.builder.getI32Type());
  Value places = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(bits, b.builder.getI32IntegerAttr(mantissaBits)));
  Value exponent = b.create<arith::ShLIOp>(b.create<arith::BitcastOp>(bits, shifted), places);
  Value sum = b.create<arith::AddIOp>(b.create<arith::BitcastOp>(bits, power), exponent);
  return b.create<arith::BitcastOp>(type, sum);
}

Value AttentionBlock::rounded(Value value) { return b.widen(b.narrow(value, types.element)); }

void AttentionBlock::forQueryVectors(function_ref<void(Value, int64_t)> body) {
  int64_t vectors = std::min<int64_t>(4, queryBlock / types.width);
  while (queryBlock / types.width % vectors != 0)
    --vectors;
  b.loop(0, queryBlock, vectors * types.width, [&](Value first) { body(first, vectors); });
}

} // namespace titan::codegen
