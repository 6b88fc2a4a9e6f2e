#include "compiler/Codegen/cpu/GatherPatches.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// The sum of the digits of `number` times their strides.
Value offsetOf(KernelBuilder& g, Value number, ArrayRef<int64_t> extents,
               ArrayRef<int64_t> strides) {
  Value offset = g.index(0);
  for (size_t d = extents.size(); d-- > 0;) {
    Value digit = d == 0 ? number : g.remainder(number, extents[d]);
    offset = g.add(offset, g.mul(digit, strides[d]));
    if (d > 0)
      number = g.divide(number, extents[d]);
  }
  return offset;
}

} // namespace

PatchGatherer::PatchGatherer(KernelBuilder& builder, kernel::PatchesAttr patches, Type element,
                             Value base)
    : g(builder), patches(patches), element(element.isBF16() ? builder.i16 : element), base(base) {}

Value PatchGatherer::placeOfLine(Value line) {
  return g.add(offsetOf(g, line, patches.getLineExtents(), patches.getLineStrides()),
               patches.getOffset());
}

/// Whole vectors, then the rest under a mask: runs are short, and a call of memcpy costs more.
void PatchGatherer::copy(Value from, Value to, Value count) {
  if (patches.getRun() == 1)
    return g.store(g.load(element, from), to);
  Value whole = g.mul(g.divide(count, g.width), g.width);
  VectorType vector = g.vectorOf(element);
  g.loop(g.index(0), whole, g.width,
         [&](Value i) { g.store(g.load(vector, g.at(from, i, element)), g.at(to, i, element)); });
  g.when(g.less(whole, count), [&] {
    Value mask = g.maskBelow(g.sub(count, whole), g.width);
    g.storeMasked(g.loadMasked(vector, g.at(from, whole, element), mask), g.at(to, whole, element),
                  mask);
  });
}

void PatchGatherer::forEachRun(GemmRange columns, llvm::function_ref<void(Run)> body) {
  const int64_t run = patches.getRun();
  Value end = g.add(columns.first, columns.count);
  Value firstRun = g.divide(columns.first, run);
  Value endRun = g.divide(g.add(end, run - 1), run);
  g.loop(firstRun, endRun, 1, [&](Value r) {
    Value begin = g.mul(r, run), first = g.larger(begin, columns.first);
    body({.from = placeOfColumn(first),
          .behind = g.sub(first, columns.first),
          .count = g.sub(g.fewer(end, g.add(begin, run)), first)});
  });
}

void PatchGatherer::gatherLine(Value line, GemmRange columns, Value to) {
  Value start = g.at(base, placeOfLine(line), element);
  forEachRun(columns, [&](Run run) {
    copy(g.at(start, run.from, element), g.at(to, run.behind, element), run.count);
  });
}

void PatchGatherer::locateLines(GemmRange lines, Value places) {
  Type i64 = g.builder.getI64Type();
  g.loop(g.index(0), lines.count, 1, [&](Value line) {
    g.store(g.toI64(placeOfLine(g.add(lines.first, line))), g.at(places, line, i64));
  });
}

void PatchGatherer::gatherLines(Value places, Value count, GemmRange columns, Value to,
                                int64_t width) {
  Type i64 = g.builder.getI64Type();
  forEachRun(columns, [&](Run run) {
    g.loop(g.index(0), count, 1, [&](Value line) {
      Value place = g.toIndex(g.load(i64, g.at(places, line, i64)));
      copy(g.at(base, g.add(place, run.from), element),
           g.at(to, g.add(g.mul(line, width), run.behind), element), run.count);
    });
  });
}

Value PatchGatherer::areNeighbours(GemmRange columns) {
  Value inRun = g.remainder(columns.first, patches.getRun());
  return g.compare(arith::CmpIPredicate::ule, g.add(inRun, columns.count),
                   g.index(patches.getRun()));
}

Value PatchGatherer::placeOfColumn(Value column) {
  return offsetOf(g, column, patches.getColumnExtents(), patches.getColumnStrides());
}

} // namespace titan::codegen
