#include "compiler/Codegen/cuda/AttentionKernel.h"

#include "compiler/Codegen/cuda/AttentionScores.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr int64_t side = TileProduct::side, cell = TileProduct::cell, lanes = TileProduct::lanes;
constexpr double infinity = std::numeric_limits<double>::infinity();
using Rows = AttentionScores::Rows;

/// 64 neighbouring columns of an adjoint or of the result.
struct Piece {
  bool ofValue; ///< else of query or key
  int64_t first;
};
/// What one launch sums.
using Part = SmallVector<Piece>;

/// Columns of the value and those of query or key; each launch has as many as there are registers.
SmallVector<Part> partsOf(int64_t valueWidth, int64_t width) {
  auto cut = [](bool ofValue, int64_t columns) {
    Part pieces;
    for (int64_t first = 0; first < columns; first += side)
      pieces.push_back({ofValue, first});
    return pieces;
  };
  SmallVector<Part> parts;
  auto share = [&](ArrayRef<Piece> pieces) {
    for (; !pieces.empty(); pieces = pieces.drop_front(parts.back().size()))
      parts.emplace_back(pieces.take_front(TileProduct::mostPieces));
  };
  Part ofValue = cut(true, valueWidth), others = cut(false, width);
  if (ofValue.size() + others.size() <= TileProduct::mostPieces) {
    ofValue.append(others);
    others.clear();
  }
  share(ofValue);
  share(others);
  return parts;
}

class AttentionEmitter {
public:
  AttentionEmitter(OpBuilder& builder, kernel::CallOp call, func::FuncOp function,
                   KernelModule& kernels, Part part)
      : call(call), attention(cast<kernel::AttentionAttr>(call.getRoutine())),
        part(std::move(part)), b(builder, call.getLoc()),
        tiles(makeTileProduct(b, kernels, attention.getElement(),
                              static_cast<int64_t>(this->part.size()))),
        product(*tiles), block(b, product, call, function) {}

  void emitForward();
  void emitOfKeys();
  void emitOfQueries();

private:
  AttentionPlace queryPlace();
  Value endOfKeys(Value query);
  Value lengthOf(Value first, Value end, bool isWhole);
  SmallVector<Value>
  forKeyBlocks(const AttentionPlace& place, ValueRange carried,
               llvm::function_ref<SmallVector<Value>(const AttentionPlace&, ValueRange)> body);
  SmallVector<Value> attend(const AttentionPlace& place, ValueRange carried);
  void finish(const AttentionPlace& place, ValueRange carried);
  void writeStatistics(const AttentionPlace& place, const Rows& values, int64_t out);

  struct RowValues {
    Rows logSumExp, largest, sums;
  };
  RowValues readRowValues(const AttentionPlace& place);
  struct Adjoints {
    Rows kept;   ///< probabilities after dropout
    Rows scores; ///< adjoints of the scores
  };
  Adjoints adjoints(const AttentionPlace& place, const RowValues& values, bool ofKeys);
  SmallVector<Value> addToKeys(const AttentionPlace& place, ValueRange sums);

  SmallVector<Lines> columnsOf(bool ofValue, const AttentionPlace& place, bool ofKeys);
  SmallVector<Value> add(bool ofValue, const AttentionPlace& place, bool ofKeys, Value depth,
                         ValueRange sums);
  void write(kernel::ViewAttr view, Value batch, Value head, Value first, int64_t rows,
             int64_t piece, ValueRange sums, double scale);
  void writeRun(kernel::ViewAttr view, Value pointer, Value row, const Piece& piece, Value sums);
  bool has(bool ofValue) const {
    return llvm::any_of(part, [&](const Piece& piece) { return piece.ofValue == ofValue; });
  }
  /// With f32 the scale of the scores is in their adjoint, else it is applied to the sums.
  bool scalesAdjoints() const { return attention.getElement().isF32(); }
  double scaleOfSums() const {
    return scalesAdjoints() ? 1 : attention.getScale().getValueAsDouble();
  }

  kernel::CallOp call;
  kernel::AttentionAttr attention;
  Part part;
  ThreadBuilder b;
  std::unique_ptr<TileProduct> tiles;
  TileProduct& product;
  AttentionScores block;
};

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

AttentionPlace AttentionEmitter::queryPlace() {
  SmallVector<Value> numbers = splitNumber(b.builder, b.loc, blockNumber(b.builder, b.loc),
                                           {attention.getBatch(), attention.getHeads(),
                                            llvm::divideCeilSigned(attention.getQueries(), side)});
  return {numbers[0], numbers[1], b.mul(numbers[2], side), Value()};
}

/// Behind the last key that a block of queries attends to.
Value AttentionEmitter::endOfKeys(Value query) {
  return attention.getCausal() ? b.smaller(b.add(query, side), attention.getKeys())
                               : b.index(attention.getKeys());
}

/// Of a block that begins at `first`.
Value AttentionEmitter::lengthOf(Value first, Value end, bool isWhole) {
  return isWhole ? b.index(side) : b.smaller(b.sub(end, first), side);
}

SmallVector<Value> AttentionEmitter::forKeyBlocks(
    const AttentionPlace& place, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(const AttentionPlace&, ValueRange)> body) {
  return emitLoop(b.builder, b.loc, b.index(0), endOfKeys(place.query), side, carried,
                  [&](Value key, ValueRange values) {
                    AttentionPlace at = place;
                    at.key = key;
                    return body(at, values);
                  });
}

/// The columns of each piece of `ofValue`, which are summed over queries or keys.
SmallVector<Lines> AttentionEmitter::columnsOf(bool ofValue, const AttentionPlace& place,
                                               bool ofKeys) {
  kernel::ViewAttr view;
  if (ofKeys) // summed over queries
    view = ofValue ? attention.getGradient().getDresult() : attention.getQuery();
  else
    view = ofValue ? attention.getValue() : attention.getKey();
  SmallVector<Lines> columns;
  for (const Piece& piece : part)
    if (piece.ofValue == ofValue)
      columns.push_back(block.columns(
          view, place.batch, ofKeys ? place.head : block.keyHead(place.head),
          ofKeys ? place.query : place.key, ofKeys ? attention.getQueries() : attention.getKeys(),
          piece.first, ofValue ? attention.getValueWidth() : attention.getWidth()));
  return columns;
}

/// Adds the tile's product with each piece of `ofValue`; other sums stay.
SmallVector<Value> AttentionEmitter::add(bool ofValue, const AttentionPlace& place, bool ofKeys,
                                         Value depth, ValueRange sums) {
  SmallVector<size_t> numbers;
  for (auto [number, piece] : llvm::enumerate(part))
    if (piece.ofValue == ofValue)
      numbers.push_back(number);
  SmallVector<Value> own, all(sums);
  for (int64_t i = 0; i < cell; ++i)
    for (size_t number : numbers)
      own.push_back(sums[i * part.size() + number]);
  own = product.accumulate(columnsOf(ofValue, place, ofKeys), depth, own);
  for (int64_t i = 0; i < cell; ++i)
    for (auto [at, number] : llvm::enumerate(numbers))
      all[i * part.size() + number] = own[i * numbers.size() + at];
  return all;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

void AttentionEmitter::emitForward() {
  AttentionPlace place = queryPlace();
  // Below every score but -inf, so that score - maximum is no NaN where nothing is attended to.
  SmallVector<Value> carried(cell, b.f32(double(std::numeric_limits<float>::lowest())));
  carried.append(cell, b.f32(0));
  carried.append(product.zeros(static_cast<int64_t>(part.size())));
  carried = forKeyBlocks(place, carried, [&](const AttentionPlace& at, ValueRange values) {
    return attend(at, values);
  });
  finish(place, carried);
}

/// Maxima, totals and sums after a block of keys.
SmallVector<Value> AttentionEmitter::attend(const AttentionPlace& place, ValueRange carried) {
  Rows scores = block.scores(place, /*limitsQueries=*/false).scores, factors;
  product.prefetch(columnsOf(/*ofValue=*/true, place, /*ofKeys=*/false).front());
  if (block.drops())
    factors = block.dropoutFactors(place);
  SmallVector<Value> maxima, totals, sums;
  for (int64_t i = 0; i < cell; ++i) {
    auto fold = [&](kernel::ReduceKind kind, Value run) {
      Value value = b.lane(run, 0);
      for (int64_t j = 1; j < cell; ++j)
        value = combine(b.builder, b.loc, kind, value, b.lane(run, j));
      return combineLanes(b.builder, b.loc, kind, value, lanes);
    };
    Value before = carried[i];
    maxima.push_back(b.create<arith::MaximumFOp>(before, fold(kernel::ReduceKind::Max, scores[i])));
    Value shrinks = block.exponential(b.create<arith::SubFOp>(before, maxima[i]));
    Value powers = block.exponential(b.create<arith::SubFOp>(scores[i], b.splat(maxima[i], cell)));
    totals.push_back(b.create<arith::AddFOp>(b.times(carried[cell + i], shrinks),
                                             fold(kernel::ReduceKind::Add, powers)));
    scores[i] = block.rounded(block.drops() ? b.times(powers, factors[i]) : powers);
    for (size_t piece = 0; piece < part.size(); ++piece)
      sums.push_back(b.times(carried[2 * cell + i * part.size() + piece], b.splat(shrinks, cell)));
  }
  product.writeTile(scores, /*sumsOverColumns=*/true);
  const bool isWhole = attention.getKeys() % side == 0;
  Value keys = lengthOf(place.key, endOfKeys(place.query), isWhole);
  sums = add(/*ofValue=*/true, place, /*ofKeys=*/false, keys, sums);
  maxima.append(totals);
  maxima.append(sums);
  return maxima;
}

/// log(sum e^score) = maximum + log(total), or both apart; sums of a row become a row of the
/// result.
void AttentionEmitter::finish(const AttentionPlace& place, ValueRange carried) {
  Rows logarithms, largest, sums;
  for (int64_t i = 0; i < cell; ++i) {
    Value maximum = carried[i], total = carried[cell + i], zero = b.f32(0);
    Value isEmpty = b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, total, zero);
    Value logarithm = b.create<math::LogOp>(total);
    if (!attention.keepsLargest())
      logarithm = b.create<arith::AddFOp>(maximum, logarithm);
    logarithms.push_back(b.select(isEmpty, b.f32(-infinity), logarithm));
    largest.push_back(b.select(isEmpty, zero, maximum));
    Value inverse = b.create<arith::DivFOp>(b.f32(1), total);
    inverse = b.splat(b.select(isEmpty, zero, inverse), cell);
    for (size_t piece = 0; piece < part.size(); ++piece)
      sums.push_back(b.times(carried[2 * cell + i * part.size() + piece], inverse));
  }
  if (part.front().first == 0) {
    writeStatistics(place, logarithms, attention.getLogSumExp());
    if (attention.keepsLargest())
      writeStatistics(place, largest, attention.getLargest());
  }
  for (size_t piece = 0; piece < part.size(); ++piece)
    write(attention.getResult(), place.batch, place.head, place.query, attention.getQueries(),
          static_cast<int64_t>(piece), sums, 1);
}

void AttentionEmitter::writeStatistics(const AttentionPlace& place, const Rows& values,
                                       int64_t out) {
  Value isFirst = b.isBelow(product.column, 1);
  for (int64_t i = 0; i < cell; ++i) {
    b.when(b.both(isFirst, block.queryExists(place, i)), [&] {
      Value at = block.statistic(place, block.queryOf(place, i));
      b.store(values[i], b.address(block.out(out), b.builder.getF32Type(), at), 4);
    });
  }
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

AttentionEmitter::RowValues AttentionEmitter::readRowValues(const AttentionPlace& place) {
  RowValues values;
  values.sums = block.rowSums(place);
  values.logSumExp = block.readStatistic(attention.getLogSumExp(), place);
  if (attention.keepsLargest())
    values.largest = block.readStatistic(attention.getLargest(), place);
  // Where nothing is attended to every probability is 0.
  for (Value& value : values.logSumExp) {
    Value isEmpty = b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, value, b.f32(-infinity));
    value = b.select(isEmpty, b.f32(infinity), value);
  }
  return values;
}

AttentionEmitter::Adjoints AttentionEmitter::adjoints(const AttentionPlace& place,
                                                      const RowValues& values, bool ofKeys) {
  AttentionScores::Tile tile = block.scores(place, /*limitsQueries=*/ofKeys);
  Rows factors, ofProbabilities;
  if (block.drops())
    factors = block.dropoutFactors(place);
  if (has(false))
    ofProbabilities =
        product.multiply(block.rows(attention.getGradient().getDresult(), place.batch, place.head,
                                    place.query, attention.getQueries()),
                         block.rows(attention.getValue(), place.batch, block.keyHead(place.head),
                                    place.key, attention.getKeys()),
                         attention.getValueWidth());
  product.prefetch(columnsOf(/*ofValue=*/ofKeys && has(true), place, ofKeys).front());
  Adjoints adjoints;
  Value zero = b.number(product.run, 0);
  for (int64_t i = 0; i < cell; ++i) {
    Value score = tile.scores[i];
    if (attention.keepsLargest())
      score = b.create<arith::SubFOp>(score, b.splat(values.largest[i], cell));
    Value probability =
        block.exponential(b.create<arith::SubFOp>(score, b.splat(values.logSumExp[i], cell)));
    auto limited = [&](Value value) {
      return tile.attended.empty() ? value : b.select(tile.attended[i], value, zero);
    };
    Value kept = block.drops() ? b.times(probability, factors[i]) : probability;
    adjoints.kept.push_back(block.rounded(limited(kept)));
    if (ofProbabilities.empty())
      continue;
    Value dp = ofProbabilities[i];
    if (block.drops())
      dp = b.times(dp, factors[i]);
    Value ds = b.times(probability, b.create<arith::SubFOp>(dp, b.splat(values.sums[i], cell)));
    if (!tile.allowed.empty())
      ds = b.select(tile.allowed[i], ds, zero);
    if (scalesAdjoints())
      ds = b.times(ds, b.number(product.run, attention.getScale().getValueAsDouble()));
    adjoints.scores.push_back(block.rounded(limited(ds)));
  }
  return adjoints;
}

SmallVector<Value> AttentionEmitter::addToKeys(const AttentionPlace& place, ValueRange sums) {
  Adjoints found = adjoints(place, readRowValues(place), /*ofKeys=*/true);
  const bool isWhole = attention.getQueries() % side == 0;
  Value queries = lengthOf(place.query, b.index(attention.getQueries()), isWhole);
  SmallVector<Value> next(sums);
  for (bool ofValue : {true, false})
    if (has(ofValue)) {
      product.writeTile(ofValue ? found.kept : found.scores, /*sumsOverColumns=*/false);
      next = add(ofValue, place, /*ofKeys=*/true, queries, next);
    }
  return next;
}

/// A block of keys of one key head: along all queries that attend to it, of each of its heads.
void AttentionEmitter::emitOfKeys() {
  SmallVector<Value> numbers = splitNumber(b.builder, b.loc, blockNumber(b.builder, b.loc),
                                           {attention.getBatch(), attention.getKeyHeads(),
                                            llvm::divideCeilSigned(attention.getKeys(), side)});
  Value keyHead = numbers[1], key = b.mul(numbers[2], side);
  const int64_t group = attention.getHeads() / attention.getKeyHeads();
  Value begin = attention.getCausal() ? key : b.index(0);
  SmallVector<Value> sums =
      emitLoop(b.builder, b.loc, b.index(0), b.index(group), 1,
               product.zeros(static_cast<int64_t>(part.size())), [&](Value i, ValueRange ofHeads) {
                 Value head = b.add(b.mul(keyHead, group), i);
                 return emitLoop(b.builder, b.loc, begin, b.index(attention.getQueries()), side,
                                 ofHeads, [&](Value query, ValueRange ofQueries) {
                                   return addToKeys({numbers[0], head, query, key}, ofQueries);
                                 });
               });
  kernel::AttentionGradientAttr gradient = attention.getGradient();
  for (auto [number, piece] : llvm::enumerate(part))
    write(piece.ofValue ? gradient.getDvalue() : gradient.getDkey(), numbers[0], keyHead, key,
          attention.getKeys(), static_cast<int64_t>(number), sums,
          piece.ofValue ? 1 : scaleOfSums());
}

void AttentionEmitter::emitOfQueries() {
  AttentionPlace place = queryPlace();
  RowValues values = readRowValues(place);
  const bool isWhole = attention.getKeys() % side == 0;
  SmallVector<Value> sums = forKeyBlocks(
      place, product.zeros(static_cast<int64_t>(part.size())),
      [&](const AttentionPlace& at, ValueRange carried) {
        product.writeTile(adjoints(at, values, /*ofKeys=*/false).scores, /*sumsOverColumns=*/true);
        Value keys = lengthOf(at.key, endOfKeys(at.query), isWhole);
        return add(/*ofValue=*/false, at, /*ofKeys=*/false, keys, carried);
      });
  for (size_t piece = 0; piece < part.size(); ++piece)
    write(attention.getGradient().getDquery(), place.batch, place.head, place.query,
          attention.getQueries(), static_cast<int64_t>(piece), sums, scaleOfSums());
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Rows from `first` on of `rows`, rounded to the operands' type.
void AttentionEmitter::write(kernel::ViewAttr view, Value batch, Value head, Value first,
                             int64_t rows, int64_t piece, ValueRange sums, double scale) {
  Value pointer = block.pointer(view, /*isOut=*/true, batch, head);
  for (int64_t i = 0; i < cell; ++i) {
    Value row = b.add(b.add(first, product.row), i);
    Value values = sums[i * part.size() + piece];
    if (scale != 1)
      values = b.times(values, b.number(product.run, scale));
    values = b.narrow(values, attention.getElement());
    b.when(b.isBelow(row, rows), [&] { writeRun(view, pointer, row, part[piece], values); });
  }
}

void AttentionEmitter::writeRun(kernel::ViewAttr view, Value pointer, Value row, const Piece& piece,
                                Value values) {
  Type element = attention.getElement();
  const int64_t width = piece.ofValue ? attention.getValueWidth() : attention.getWidth();
  const int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Value column = b.add(product.column, piece.first);
  auto addressOf = [&](Value column) {
    return b.address(pointer, element, b.add(b.mul(row, view.getRow()), column));
  };
  if (width % cell == 0) {
    const int64_t alignment =
        std::gcd(block.alignmentOf(view, call.getOuts()[view.getOperand()]), cell * bytes);
    return b.when(b.isBelow(column, width), [&] { b.store(values, addressOf(column), alignment); });
  }
  for (int64_t j = 0; j < cell; ++j) {
    Value at = b.add(column, j);
    b.when(b.isBelow(at, width), [&] { b.store(b.lane(values, j), addressOf(at), bytes); });
  }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

struct AttentionLaunch {
  void (AttentionEmitter::*emit)();
  Part part;
  int64_t blocks;
};

SmallVector<AttentionLaunch> launchesOf(kernel::AttentionAttr attention) {
  const int64_t ofQueries = attention.getBatch() * attention.getHeads() *
                            llvm::divideCeilSigned(attention.getQueries(), side),
                ofKeys = attention.getBatch() * attention.getKeyHeads() *
                         llvm::divideCeilSigned(attention.getKeys(), side);
  const int64_t width = attention.getWidth(), valueWidth = attention.getValueWidth();
  SmallVector<AttentionLaunch> launches;
  auto add = [&](void (AttentionEmitter::*emit)(), int64_t blocks, ArrayRef<Part> parts) {
    for (const Part& part : parts)
      launches.push_back({emit, part, blocks});
  };
  if (!attention.getGradient()) {
    add(&AttentionEmitter::emitForward, ofQueries, partsOf(valueWidth, 0));
    return launches;
  }
  add(&AttentionEmitter::emitOfKeys, ofKeys, partsOf(valueWidth, width));
  add(&AttentionEmitter::emitOfQueries, ofQueries, partsOf(0, width));
  return launches;
}

Entry entryOf(kernel::CallOp call, std::string name, int64_t blocks) {
  Entry entry{std::move(name), blocks, TileProduct::threads, {}, 0};
  for (Value in : call.getIns())
    entry.operands.push_back(wholeOf(in, EntryOperand::Use::Read));
  for (Value out : call.getOuts())
    entry.operands.push_back(wholeOf(out, EntryOperand::Use::Write));
  entry.scalars = static_cast<unsigned>(call.getScalars().size());
  if (cast<kernel::AttentionAttr>(call.getRoutine()).getDropout())
    ++entry.scalars;
  entry.keepsLoops = true;
  return entry;
}

LogicalResult checkAttention(kernel::CallOp call, kernel::AttentionAttr attention) {
  Type element = attention.getElement();
  if (!element.isF32() && !element.isBF16())
    return call.emitError() << ir::describePlace(call) << ": attention of " << element
                            << " has no kernel on cuda";
  kernel::AttentionBlocksAttr blocks = attention.getBlocks();
  if (blocks.getRows() != side || blocks.getKeys() != side || blocks.getPadding() != 0)
    return call.emitOpError("has blocks of ")
           << blocks.getRows() << " queries and " << blocks.getKeys() << " keys, padded to "
           << blocks.getPadding() << "; on this target they are of " << side << " and " << side
           << " without padding (machine.attention_rows, attention_keys, attention_padding)";
  return success();
}

} // namespace

LogicalResult emitAttentionKernel(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  auto attention = cast<kernel::AttentionAttr>(call.getRoutine());
  if (failed(checkAttention(call, attention)))
    return failure();
  for (auto [number, launch] : llvm::enumerate(launchesOf(attention))) {
    OpBuilder builder(call.getContext());
    func::FuncOp function =
        kernels.add(builder, call.getLoc(),
                    entryOf(call, fmt::format("{}_{}", symbol.str(), number), launch.blocks));
    AttentionEmitter emitter(builder, call, function, kernels, launch.part);
    (emitter.*launch.emit)();
    func::ReturnOp::create(builder, call.getLoc());
  }
  return success();
}

} // namespace titan::codegen::cuda
