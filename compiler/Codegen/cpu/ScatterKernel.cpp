#include "compiler/Codegen/cpu/ScatterKernel.h"

#include "compiler/Codegen/cpu/KernelBuilder.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/EntryIndex.h"

using namespace mlir;

namespace titan::codegen {
namespace {

Type elementOf(Value buffer) { return cast<MemRefType>(buffer.getType()).getElementType(); }

} // namespace

void emitScatterKernel(OpBuilder& builder, kernel::CallOp op, StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  auto routine = cast<kernel::ScatterAttr>(op.getRoutine());
  func::FuncOp function = createKernelFunction(builder, op.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  KernelBuilder b(builder, op.getLoc(), /*width=*/1);
  SmallVector<Value> operands = loadOperands(builder, b.loc, function, 3);
  Value indices = operands[0], updates = operands[1], result = operands[2];

  Type element = elementOf(op.getOuts()[0]), stored = storedType(element);
  if (auto integer = dyn_cast<IntegerType>(stored)) // arithmetic knows no signedness
    stored = builder.getIntegerType(integer.getWidth());
  auto indexType = cast<IntegerType>(elementOf(op.getIns()[0]));
  const int64_t inner = routine.getInner(), rows = routine.getRows(), width = routine.getWidth(),
                columns = routine.getColumns();

  auto emitColumns = [&](Value o, Value i, Value first, int64_t length) {
    VectorType type = b.vectorOf(stored, length);
    /// Of block `row` of the `count` that o has.
    auto blockOf = [&](Value row, int64_t count) {
      return b.add(b.mul(b.add(b.mul(o, count), row), inner), i);
    };
    b.loop(0, rows, 1, [&](Value row) {
      Value place = blockOf(row, rows);
      Value entry = loadEntry(builder, b.loc, indices, place, indexType, routine.getEntries());
      auto columnsOf = [&](Value pointer, Value block) {
        return b.at(pointer, b.add(b.mul(block, width), first), stored);
      };
      Value update = b.load(type, columnsOf(updates, place));
      Value met = columnsOf(result, blockOf(entry, routine.getEntries()));
      if (routine.getKind() != ir::ScatterKind::None)
        update = combineUpdate(builder, b.loc, routine.getKind(), b.load(type, met), update,
                               element.isUnsignedInteger());
      b.store(update, met);
    });
  };
  b.loop(
      b.toIndex(function.getArgument(2)), b.toIndex(function.getArgument(3)), 1, [&](Value unit) {
        const int64_t blocks = routine.getBlocks(), whole = width / columns, rest = width % columns;
        Value block = b.remainder(unit, blocks), of = b.divide(unit, blocks);
        Value i = b.remainder(of, inner), o = b.divide(of, inner);
        Value first = b.mul(block, columns);
        if (rest == 0)
          return emitColumns(o, i, first, columns);
        b.choose(
            b.compare(arith::CmpIPredicate::ult, block, b.index(whole)),
            [&] { emitColumns(o, i, first, columns); }, [&] { emitColumns(o, i, first, rest); });
      });
  func::ReturnOp::create(builder, b.loc);
}

} // namespace titan::codegen
