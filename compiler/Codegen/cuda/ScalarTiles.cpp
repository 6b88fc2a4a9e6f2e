#include "compiler/Codegen/cuda/ScalarTiles.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Loops.h"

using namespace mlir;

namespace titan::codegen::cuda {

ScalarTiles::ScalarTiles(ThreadBuilder& builder, KernelModule& kernels, int64_t pieces)
    : TileProduct(builder), tile(kernels.shared(b.builder, b.loc, side * line * 4)) {
  for (int64_t piece = 0; piece < std::max<int64_t>(pieces, 2); ++piece)
    staged.push_back(kernels.shared(b.builder, b.loc, steps * line * 4));
}

/// Neighbouring threads read neighbouring addresses.
ScalarTiles::Turns ScalarTiles::turnsOf(const Lines& lines) {
  const bool alongDepth = lines.depthStride == 1;
  SmallVector<Value> places =
      splitNumber(b.builder, b.loc, thread, {alongDepth ? side : steps, alongDepth ? steps : side});
  if (alongDepth)
    return {places[0], places[1], threads / steps, 0};
  return {places[1], places[0], 0, threads / side};
}

/// `count` steps from `k` on; what is beyond them or beyond the matrix is 0.
SmallVector<Value> ScalarTiles::read(const Lines& lines, Value k, int64_t count) {
  const Turns turns = turnsOf(lines);
  Value line = b.add(lines.first, turns.line), depth = b.add(k, turns.step);
  if (lines.firstDepth)
    depth = b.add(lines.firstDepth, depth);
  Value address = b.address(lines.pointer, lines.element,
                            b.add(b.mul(line, lines.stride), b.mul(depth, lines.depthStride)));
  SmallVector<Value> values;
  for (int64_t turn = 0; turn < side * steps / threads; ++turn) {
    const int64_t moreLines = turn * turns.lines, moreSteps = turn * turns.steps;
    Value exists;
    if (lines.extent % side != 0)
      exists = b.isBelow(b.add(line, moreLines), lines.extent);
    if (count < steps)
      exists = b.both(exists, b.isBelow(b.add(turns.step, moreSteps), count));
    if (lines.firstDepth && lines.depthExtent % side != 0)
      exists = b.both(exists, b.isBelow(b.add(depth, moreSteps), lines.depthExtent));
    Value element =
        b.address(address, lines.element, moreLines * lines.stride + moreSteps * lines.depthStride);
    values.push_back(b.widen(b.loadIf(exists, lines.element, element)));
  }
  return values;
}

Value ScalarTiles::sharedAddress(Value shared, Value k, Value at) {
  return b.address(shared, b.builder.getF32Type(), b.add(b.mul(k, line), at));
}

void ScalarTiles::write(const Lines& lines, ArrayRef<Value> values, int64_t piece) {
  const Turns turns = turnsOf(lines);
  Value first = sharedAddress(staged[piece], turns.step, turns.line);
  for (auto [turn, value] : llvm::enumerate(values))
    b.store(value,
            b.address(first, b.builder.getF32Type(),
                      static_cast<int64_t>(turn) * (turns.steps * line + turns.lines)),
            4);
}

void ScalarTiles::stage(ArrayRef<Lines> all, Value k, int64_t count) {
  SmallVector<SmallVector<Value>> values;
  for (const Lines& lines : all)
    values.push_back(read(lines, k, count));
  emitBarrier(b.builder, b.loc); // what lay there has been read
  for (auto [piece, lines] : llvm::enumerate(all))
    write(lines, values[piece], static_cast<int64_t>(piece));
  emitBarrier(b.builder, b.loc);
}

/// Adds the products of one term: of left[leftStep] and right[step].
SmallVector<Value> ScalarTiles::addProducts(Value left, Value leftStep, ArrayRef<Value> right,
                                            Value step, ValueRange sums) {
  Value factors = b.load(run, sharedAddress(left, leftStep, row), widestAccess);
  SmallVector<Value> columns, next;
  for (Value shared : right)
    columns.push_back(b.load(run, sharedAddress(shared, step, column), widestAccess));
  for (int64_t i = 0; i < cell; ++i) {
    Value factor = b.splat(b.lane(factors, i), cell);
    for (Value each : columns)
      next.push_back(b.fma(factor, each, sums[next.size()]));
  }
  return next;
}

SmallVector<Value> ScalarTiles::multiply(const Lines& left, const Lines& right, int64_t depth) {
  auto emitStep = [&](Value k, int64_t count, ValueRange sums) {
    stage({left, right}, k, count);
    return emitLoop(b.builder, b.loc, b.index(0), b.index(count), 1, sums,
                    [&](Value step, ValueRange carried) {
                      return addProducts(staged[0], step, staged[1], step, carried);
                    });
  };
  const int64_t whole = depth / steps * steps;
  SmallVector<Value> sums =
      emitLoop(b.builder, b.loc, b.index(0), b.index(whole), steps, zeros(1),
               [&](Value k, ValueRange carried) { return emitStep(k, steps, carried); });
  if (whole < depth)
    sums = emitStep(b.index(whole), depth - whole, sums);
  return sums;
}

void ScalarTiles::writeTile(ArrayRef<Value> rows, bool sumsOverColumns) {
  emitBarrier(b.builder, b.loc); // what lay there has been read
  for (int64_t i = 0; i < cell; ++i) {
    Value values = rows[i], line = row, at = column;
    if (sumsOverColumns) {
      SmallVector<Value> lanes;
      for (Value each : rows)
        lanes.push_back(b.lane(each, i));
      values = b.join(lanes);
      std::swap(line, at);
    }
    b.store(values, sharedAddress(tile, b.add(line, i), at), widestAccess);
  }
}

SmallVector<Value> ScalarTiles::accumulate(ArrayRef<Lines> right, Value depth, ValueRange sums) {
  auto pieces = ArrayRef(staged).take_front(right.size());
  return emitLoop(b.builder, b.loc, b.index(0), depth, steps, sums,
                  [&](Value k, ValueRange carried) {
                    stage(right, k, steps);
                    return emitLoop(b.builder, b.loc, b.index(0), b.index(steps), 1, carried,
                                    [&](Value step, ValueRange inner) {
                                      return addProducts(tile, b.add(k, step), pieces, step, inner);
                                    });
                  });
}

} // namespace titan::codegen::cuda
