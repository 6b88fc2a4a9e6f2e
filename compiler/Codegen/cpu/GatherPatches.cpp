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

/// Whole vectors, then the rest under a mask: runs are short, and a call of memcpy costs more.
void copyRun(KernelBuilder& g, Type element, Value from, Value to, Value count) {
  Value whole = g.mul(g.divide(count, g.width), g.width);
  VectorType vector = g.vectorOf(element);
  g.loop(g.index(0), whole, g.width,
         [&](Value i) { g.store(g.load(vector, g.at(from, i, element)), g.at(to, i, element)); });
  Value mask = g.maskBelow(g.sub(count, whole), g.width);
  g.storeMasked(g.loadMasked(vector, g.at(from, whole, element), mask), g.at(to, whole, element),
                mask);
}

} // namespace

void gatherPatches(KernelBuilder& g, kernel::PatchesAttr patches, Type element, Value base,
                   Value line, GemmRange columns, Value to) {
  if (element.isBF16()) // bits
    element = g.i16;
  Value start = g.at(base,
                     g.add(offsetOf(g, line, patches.getLineExtents(), patches.getLineStrides()),
                           patches.getOffset()),
                     element);
  const int64_t run = patches.getRun();
  ArrayRef<int64_t> extents = patches.getColumnExtents().drop_back(),
                    strides = patches.getColumnStrides().drop_back();
  if (extents.empty())
    return copyRun(g, element, g.at(start, columns.first, element), to, columns.count);
  Value end = g.add(columns.first, columns.count);
  Value firstRun = g.divide(columns.first, run);
  Value endRun = g.divide(g.add(end, run - 1), run);
  g.loop(firstRun, endRun, 1, [&](Value r) {
    Value begin = g.mul(r, run), first = g.larger(begin, columns.first);
    Value count = g.sub(g.fewer(end, g.add(begin, run)), first);
    Value from = g.add(offsetOf(g, r, extents, strides), g.sub(first, begin));
    Value source = g.at(start, from, element),
          target = g.at(to, g.sub(first, columns.first), element);
    if (run == 1)
      g.store(g.load(element, source), target);
    else
      copyRun(g, element, source, target, count);
  });
}

} // namespace titan::codegen
