#include "compiler/Codegen/cuda/EmbeddingSums.h"

#include "compiler/Codegen/cuda/EmbeddingSort.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

using Routine = kernel::EmbeddingGradAttr;

/// Rows, or tiles, whose loads are issued before the first of them is added.
constexpr int64_t batch = 8;
static_assert(Routine::tileRows % batch == 0);

class SumEmitter : EmbeddingBuilder {
public:
  SumEmitter(LaunchSeries& launches, Routine routine, func::FuncOp function)
      : EmbeddingBuilder(launches.builder, launches.call, function), kernels(launches.kernels),
        routine(routine), plan(planRow(routine.getWidth(), elementOf(call.getIns()[0]))),
        from(elementOf(call.getIns()[0])), to(elementOf(call.getOuts()[0])),
        i32(builder.getI32Type()),
        order(orderAfter(routine, sortPasses(routine.getTableRows()) - 1)) {}

  void emitTiles() {
    place(routine.getTiles());
    firstRow = mul(tile, Routine::tileRows);
    readTile();
    emitBarrier(builder, loc);
    Value end = create<arith::MinUIOp>(
        index(Routine::tileRows), create<arith::SubIOp>(index(routine.getAllRows()), firstRow));
    Value isTrue = create<arith::ConstantOp>(builder.getBoolAttr(true));
    when(isActive, [&] {
      emitLoop(builder, loc, index(0), end, batch, {zero(chunkOf(to)), isTrue},
               [&](Value first, ValueRange carried) { return addRows(first, carried); });
    });
  }

  /// Of the tile whose last index is cut, and begins in the tile.
  void emitCuts() {
    place(routine.getTiles() - 1);
    firstRow = mul(tile, Routine::tileRows);
    Value entry = entryOf(add(firstRow, Routine::tileRows - 1));
    Value isCut = isSame(entryOf(add(firstRow, Routine::tileRows)), entry);
    Value isFirst = isSame(tile, index(0));
    Value before = select(isFirst, firstRow, create<arith::SubIOp>(firstRow, index(1)));
    Value begins = either(isFirst, inverse(isSame(entryOf(before), entry)));
    Value isMine = both(both(isCut, begins), isActive);
    if (routine.getPadding() >= 0)
      isMine = both(isMine, inverse(isSame(entry, index(routine.getPadding()))));
    when(isMine, [&] {
      Value sum = loadChunk(to, cutAt(tile, index(1)), alignmentOfChunk(4));
      addToTable(entry, addTiles(entry, sum));
    });
  }

private:
  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  /// Which tile and chunk this thread has.
  void place(int64_t tiles) {
    thread = threadNumber(builder, loc);
    SmallVector<Value> places =
        splitNumber(builder, loc, blockNumber(builder, loc), {tiles, plan.blocks});
    tile = places[0];
    Value chunk = add(mul(places[1], plan.threads), thread);
    isActive = isBelow(chunk, index(plan.chunks));
    column = mul(chunk, plan.chunk);
  }

  /// Shared memory gets the rows of the tile and the table's rows that they go to, with those
  /// before and behind; -1 where there are none.
  void readTile() {
    constexpr int64_t held = Routine::tileRows + 2;
    sharedRows = kernels.shared(builder, loc, held * 4);
    sharedEntries = kernels.shared(builder, loc, held * 4);
    emitLoop(builder, loc, thread, index(held), plan.threads, {}, [&](Value i, ValueRange) {
      // Of the first tile's first number it is the largest there is: no row either.
      Value position = create<arith::SubIOp>(add(firstRow, i), index(1));
      Value exists = isBelow(position, index(routine.getAllRows()));
      position = create<arith::MinUIOp>(position, index(routine.getAllRows() - 1));
      Value row = rowAt(position);
      store(row, at(sharedRows, i32, i));
      store(select(exists, toWord(entryAt(toIndex(row))), word(-1)), at(sharedEntries, i32, i));
      return SmallVector<Value>();
    });
  }

  /// Adds `batch` rows from number `first` of the tile on. Carried are the sum of the newest index,
  /// and whether that may have rows in the tile before.
  SmallVector<Value> addRows(Value first, ValueRange carried) {
    SmallVector<Value> terms, entriesAround;
    for (int64_t i = 0; i < batch; ++i) {
      Value row = toIndex(load(i32, at(sharedRows, i32, add(first, i + 1))));
      Value offset = add(mul(row, routine.getWidth()), column);
      terms.push_back(loadChunk(from, at(operands[0], from, offset), alignmentOfChunk(0)));
    }
    for (int64_t i = 0; i < batch + 2; ++i)
      entriesAround.push_back(load(i32, at(sharedEntries, i32, add(first, i))));
    Value total = carried[0], isOlder = carried[1];
    for (int64_t i = 0; i < batch; ++i) {
      Value term = widen(terms[i]), entry = entriesAround[i + 1];
      Value begins = inverse(isSame(entriesAround[i], entry));
      Value isFirst = i == 0 ? either(begins, isSame(first, index(0))) : begins;
      total = select(isFirst, term, sum(total, term));
      isOlder = both(isOlder, inverse(begins));
      Value ends = inverse(isSame(entry, entriesAround[i + 2])), isCut = isOlder;
      if (i == batch - 1) {
        Value isLast = isSame(first, index(Routine::tileRows - batch));
        isCut = either(isCut, both(isLast, inverse(ends)));
        ends = either(ends, isLast);
      }
      when(both(ends, inverse(isSame(entry, word(-1)))),
           [&] { write(toIndex(entry), total, isCut, isOlder); });
    }
    return {total, isOlder};
  }

  void write(Value entry, Value total, Value isCut, Value isOlder) {
    when(isCut, [&] {
      Value number = select(isOlder, index(0), index(1));
      store(total, cutAt(tile, number), alignmentOfChunk(4));
    });
    Value isTrained = inverse(isCut);
    if (routine.getPadding() >= 0)
      isTrained = both(isTrained, inverse(isSame(entry, index(routine.getPadding()))));
    when(isTrained, [&] { addToTable(entry, total); });
  }

  void addToTable(Value entry, Value total) {
    Value offset = add(mul(entry, routine.getWidth()), column);
    Value pointer = at(operands[2], to, offset);
    if (routine.getAccumulate())
      total = sum(loadChunk(to, pointer, alignmentOfChunk(2)), total);
    store(total, pointer, alignmentOfChunk(2));
  }

  //===--------------------------------------------------------------------===//
  // What tiles cut
  //===--------------------------------------------------------------------===//

  /// Adds what the tiles behind this one have of `entry`, in order.
  Value addTiles(Value entry, Value start) {
    Type type = start.getType(), indexType = builder.getIndexType(), flag = builder.getI1Type();
    Value more = create<arith::ConstantOp>(builder.getBoolAttr(true));
    auto loop = scf::WhileOp::create(
        builder, loc, TypeRange{indexType, type, flag}, ValueRange{add(tile, 1), start, more},
        [&](OpBuilder&, Location, ValueRange carried) {
          scf::ConditionOp::create(builder, loc, carried[2], carried);
        },
        [&](OpBuilder&, Location, ValueRange carried) {
          auto [total, goesOn] = addTileBatch(entry, carried[0], carried[1]);
          scf::YieldOp::create(builder, loc, ValueRange{add(carried[0], batch), total, goesOn});
        });
    return loop.getResult(1);
  }

  /// The sum, and whether the tile behind the batch may have more.
  std::pair<Value, Value> addTileBatch(Value entry, Value first, Value total) {
    SmallVector<Value> has, parts;
    for (int64_t i = 0; i < batch; ++i) {
      Value other = add(first, i);
      Value position =
          create<arith::MinUIOp>(mul(other, Routine::tileRows), index(routine.getAllRows() - 1));
      has.push_back(
          both(isBelow(other, index(routine.getTiles())), isSame(entryOf(position), entry)));
    }
    for (int64_t i = 0; i < batch; ++i)
      parts.push_back(emitIf(builder, loc, has[i], zero(total.getType()), [&] {
        return SmallVector<Value>{
            loadChunk(to, cutAt(add(first, i), index(0)), alignmentOfChunk(4))};
      })[0]);
    for (int64_t i = 0; i < batch; ++i)
      total = select(has[i], sum(total, parts[i]), total);
    return {total, has.back()};
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  Type chunkOf(Type element) {
    return plan.chunk == 1 ? element : VectorType::get({plan.chunk}, element);
  }
  Value loadChunk(Type element, Value pointer, int64_t alignment) {
    return load(chunkOf(element), pointer, alignment);
  }
  /// Of the chunks of operand number `operand`.
  int64_t alignmentOfChunk(unsigned operand) {
    Value buffer = call->getOperand(operand);
    return std::gcd(alignmentOf(buffer), plan.chunk * bytesOf(elementOf(buffer)));
  }
  Value widen(Value term) {
    if (from == to)
      return term;
    Type f32 = chunkOf(builder.getF32Type());
    if (!from.isF32())
      term = create<arith::ExtFOp>(f32, term);
    return to.isF32() ? term : create<arith::ExtFOp>(chunkOf(to), term);
  }

  /// Which row is number `position` of the sorted ones, an i32, and which row of the table it goes
  /// to.
  Value rowAt(Value position) { return load(i32, at(operands[3], i32, add(position, order))); }
  Value entryOf(Value position) { return entryAt(toIndex(rowAt(position))); }
  /// Where the sum of a tile's first or last index is, if it is cut.
  Value cutAt(Value ofTile, Value number) {
    Value slot = add(mul(ofTile, 2), number);
    return at(operands[4], to, add(mul(slot, routine.getWidth()), column));
  }

  KernelModule& kernels;
  Routine routine;
  RowPlan plan;
  Type from, to, i32;
  int64_t order; ///< of the sorted rows in the workspace
  Value thread, tile, firstRow, column, isActive, sharedRows, sharedEntries;
};

} // namespace

void emitSums(LaunchSeries& launches, kernel::EmbeddingGradAttr routine) {
  const RowPlan plan = planRow(routine.getWidth(), elementOf(launches.call.getIns()[0]));
  auto add = [&](int64_t tiles, void (SumEmitter::*emit)()) {
    using Use = EntryOperand::Use;
    launches.add(tiles * plan.blocks, plan.threads,
                 routine.getAccumulate() ? Use::Both : Use::Write,
                 [&](func::FuncOp function) { (SumEmitter(launches, routine, function).*emit)(); });
  };
  add(routine.getTiles(), &SumEmitter::emitTiles);
  if (routine.getTiles() > 1)
    add(routine.getTiles() - 1, &SumEmitter::emitCuts);
}

} // namespace titan::codegen::cuda
