#include "compiler/Codegen/cuda/EmbeddingSort.h"

#include "compiler/Codegen/cuda/Threads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <bit>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

using Routine = kernel::EmbeddingGradAttr;

constexpr int64_t digitBits = 8, digits = Routine::digitValues;
/// A thread a digit; a warp has neighbouring rows, a row a lane and turn.
constexpr int64_t threads = digits, warps = threads / warpSize, turns = Routine::sortRows / threads,
                  warpRows = turns * warpSize;
static_assert(digits == 1 << digitBits && warps * warpRows == Routine::sortRows);

/// Bits of the largest index.
int64_t indexBits(int64_t entries) { return std::bit_width(static_cast<uint64_t>(entries - 1)); }

/// A row of this thread, where its digit stands in shared memory, and how many before it in its
/// warp have that digit.
struct Item {
  Value row, exists, digit, place, rank;
};

class SortEmitter : EmbeddingBuilder {
public:
  SortEmitter(LaunchSeries& launches, Routine routine, func::FuncOp function, int64_t pass)
      : EmbeddingBuilder(launches.builder, launches.call, function), kernels(launches.kernels),
        routine(routine), pass(pass), i32(builder.getI32Type()) {}

  void emitCount() {
    countItems();
    Value count = word(0);
    for (int64_t warp = 0; warp < warps; ++warp)
      count = add(count, load(i32, histogramAt(warp)));
    store(count, countAt(block));
  }

  void emitPlace() {
    SmallVector<Item> items = countItems();
    Value place = firstPlace();
    for (int64_t warp = 0; warp < warps; ++warp) {
      Value pointer = histogramAt(warp), count = load(i32, pointer);
      store(place, pointer);
      place = add(place, count);
    }
    emitBarrier(builder, loc);
    for (const Item& item : items)
      when(item.exists, [&] {
        Value to = toIndex(add(load(i32, item.place), item.rank));
        store(item.row, at(operands[3], i32, add(to, orderAfter(routine, pass))));
      });
  }

private:
  /// Counts the digits of each warp in shared memory.
  SmallVector<Item> countItems() {
    block = blockNumber(builder, loc);
    thread = threadNumber(builder, loc);
    histogram = kernels.shared(builder, loc, warps * digits * 4);
    for (int64_t warp = 0; warp < warps; ++warp)
      store(word(0), histogramAt(warp));
    SmallVector<Value> places = splitNumber(builder, loc, thread, {warps, warpSize});
    Value first = add(add(mul(block, Routine::sortRows), mul(places[0], warpRows)), places[1]);
    SmallVector<Item> items;
    for (int64_t turn = 0; turn < turns; ++turn)
      items.push_back(read(add(first, turn * warpSize), mul(places[0], digits)));
    Value lower = toWord(places[1]);
    lower = create<arith::SubIOp>(create<arith::ShLIOp>(word(1), lower), word(1));
    emitBarrier(builder, loc);
    for (Item& item : items)
      item.rank = count(item, lower);
    emitBarrier(builder, loc);
    return items;
  }

  Item read(Value position, Value histogramOfWarp) {
    Item item;
    item.exists = isBelow(position, index(routine.getAllRows()));
    position = create<arith::MinUIOp>(position, index(routine.getAllRows() - 1));
    item.row = toWord(position);
    if (pass > 0)
      item.row = load(i32, at(operands[3], i32, add(position, orderAfter(routine, pass - 1))));
    item.digit = toWord(entryAt(toIndex(item.row)));
    if (pass > 0)
      item.digit = create<arith::ShRUIOp>(item.digit, word(pass * digitBits));
    item.digit = create<arith::AndIOp>(item.digit, word(digits - 1));
    item.place = at(histogram, i32, add(histogramOfWarp, toIndex(item.digit)));
    return item;
  }

  /// Adds the lanes of each digit to its count; what it was is the rank of the first.
  Value count(const Item& item, Value lower) {
    Value peers = ballot(builder, loc, item.exists);
    const int64_t bits = std::min(digitBits, indexBits(routine.getTableRows()) - pass * digitBits);
    for (int64_t bit = 0; bit < bits; ++bit) {
      Value masked = create<arith::AndIOp>(item.digit, word(int64_t{1} << bit));
      Value isSet = inverse(isSame(masked, word(0)));
      Value others = create<arith::XOrIOp>(ballot(builder, loc, isSet),
                                           create<arith::ExtSIOp>(i32, inverse(isSet)));
      peers = create<arith::AndIOp>(peers, others);
    }
    Value before = create<LLVM::CtPopOp>(i32, create<arith::AndIOp>(peers, lower));
    Value counted = load(i32, item.place);
    emitWarpBarrier(builder, loc);
    when(both(item.exists, isSame(before, word(0))),
         [&] { store(add(counted, create<LLVM::CtPopOp>(i32, peers)), item.place); });
    emitWarpBarrier(builder, loc);
    return add(counted, before);
  }

  /// The place of this block's first row with the digit of this thread: behind all rows with lower
  /// digits, and those of blocks before.
  Value firstPlace() {
    SmallVector<Value> counts =
        emitLoop(builder, loc, index(0), index(routine.getSortBlocks()), 1, {word(0), word(0)},
                 [&](Value other, ValueRange carried) -> SmallVector<Value> {
                   Value count = load(i32, countAt(other));
                   Value before = select(isBelow(other, block), count, word(0));
                   return {add(carried[0], count), add(carried[1], before)};
                 });
    return add(counts[1], sumOfLower(counts[0]));
  }

  /// The sum of `value` in the threads before this one.
  Value sumOfLower(Value value) {
    Value shared = kernels.shared(builder, loc, threads * 4), upTo = value;
    Value mine = at(shared, i32, thread);
    for (int64_t distance = 1; distance < threads; distance *= 2) {
      store(upTo, mine);
      emitBarrier(builder, loc);
      Value isFar = inverse(isBelow(thread, index(distance)));
      Value other = select(isFar, create<arith::SubIOp>(thread, index(distance)), thread);
      other = load(i32, at(shared, i32, other));
      upTo = add(upTo, select(isFar, other, word(0)));
      emitBarrier(builder, loc);
    }
    return create<arith::SubIOp>(upTo, value);
  }

  Value histogramAt(int64_t warp) { return at(histogram, i32, add(thread, warp * digits)); }
  /// What a block counted of this thread's digit.
  Value countAt(Value ofBlock) {
    return at(operands[3], i32, add(add(mul(ofBlock, digits), thread), 2 * routine.getAllRows()));
  }

  KernelModule& kernels;
  Routine routine;
  int64_t pass;
  Type i32;
  Value block, thread, histogram;
};

} // namespace

int64_t sortPasses(int64_t entries) {
  return std::max<int64_t>(llvm::divideCeilSigned(indexBits(entries), digitBits), 1);
}

int64_t orderAfter(kernel::EmbeddingGradAttr routine, int64_t pass) {
  return pass % 2 * routine.getAllRows();
}

void emitSort(LaunchSeries& launches, kernel::EmbeddingGradAttr routine) {
  auto add = [&](int64_t pass, void (SortEmitter::*emit)()) {
    launches.add(
        routine.getSortBlocks(), threads, EntryOperand::Use::Both,
        [&](func::FuncOp function) { (SortEmitter(launches, routine, function, pass).*emit)(); });
  };
  for (int64_t pass = 0; pass < sortPasses(routine.getTableRows()); ++pass) {
    add(pass, &SortEmitter::emitCount);
    add(pass, &SortEmitter::emitPlace);
  }
}

} // namespace titan::codegen::cuda
