#include "compiler/Codegen/cuda/ScatterKernel.h"

#include "compiler/Codegen/cuda/EmbeddingBuilder.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/EntryIndex.h"

#include "mlir/IR/BuiltinTypes.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// What a thread has of a row.
struct Unit {
  Type type;
  int64_t bytes; ///< that divide a row and each address
};

Unit unitOf(kernel::CallOp call) {
  auto routine = cast<kernel::ScatterAttr>(call.getRoutine());
  Type stored = storedType(elementOf(call.getOuts()[0]));
  const int64_t bytes = bytesOf(stored),
                widest = std::gcd(
                    std::gcd(routine.getWidth() * bytes, widestAccess),
                    std::gcd(alignmentOf(call.getIns()[1]), alignmentOf(call.getOuts()[0])));
  Builder builder(call.getContext());
  auto lanes = [](Type element, int64_t count) -> Type {
    return count == 1 ? element : VectorType::get({count}, element);
  };
  if (routine.getKind() == ir::ScatterKind::None) // moves bytes
    return widest < 4 ? Unit{builder.getIntegerType(widest * 8), widest}
                      : Unit{lanes(builder.getI32Type(), widest / 4), widest};
  if (isa<IntegerType>(stored)) // arithmetic knows no signedness
    stored = builder.getIntegerType(bytes * 8);
  return bytes < 4 ? Unit{stored, bytes} : Unit{lanes(stored, widest / bytes), widest};
}

class ScatterEmitter : ThreadBuilder {
public:
  ScatterEmitter(OpBuilder& builder, kernel::CallOp call, func::FuncOp function, const Unit& unit)
      : ThreadBuilder(builder, call.getLoc()),
        routine(cast<kernel::ScatterAttr>(call.getRoutine())), indices(function.getArgument(0)),
        updates(function.getArgument(1)), result(function.getArgument(2)),
        indexType(cast<IntegerType>(elementOf(call.getIns()[0]))),
        isUnsigned(elementOf(call.getOuts()[0]).isUnsignedInteger()), unit(unit) {}

  void emit(int64_t rowUnits) {
    const int64_t outer = routine.getOuter(), inner = routine.getInner();
    overUnits(builder, loc, outer * inner * rowUnits, [&](Value number) {
      SmallVector<Value> at = splitNumber(builder, loc, number, {outer, inner, rowUnits});
      emitLoop(builder, loc, index(0), index(routine.getRows()), 1, {},
               [&](Value row, ValueRange) -> SmallVector<Value> {
                 emitRow(row, at[0], at[1], at[2], rowUnits);
                 return {};
               });
    });
  }

private:
  void emitRow(Value row, Value o, Value i, Value of, int64_t rowUnits) {
    auto block = [&](Value place, int64_t count) {
      return add(mul(add(mul(o, count), place), routine.getInner()), i);
    };
    auto unitAt = [&](Value pointer, Value block) {
      return address(pointer, unit.type, add(mul(block, rowUnits), of));
    };
    Value place = block(row, routine.getRows());
    Value entry = loadEntry(builder, loc, indices, place, indexType, routine.getEntries());
    Value update = load(unit.type, unitAt(updates, place), unit.bytes);
    Value met = unitAt(result, block(entry, routine.getEntries()));
    if (routine.getKind() != ir::ScatterKind::None)
      update = combineUpdate(builder, loc, routine.getKind(), load(unit.type, met, unit.bytes),
                             update, isUnsigned);
    store(update, met, unit.bytes);
  }

  kernel::ScatterAttr routine;
  Value indices, updates, result; ///< addresses
  IntegerType indexType;
  bool isUnsigned;
  Unit unit;
};

} // namespace

LogicalResult emitScatterKernel(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  auto routine = cast<kernel::ScatterAttr>(call.getRoutine());
  const Unit unit = unitOf(call);
  const int64_t rowBytes = routine.getWidth() * bytesOf(storedType(elementOf(call.getOuts()[0]))),
                rowUnits = rowBytes / unit.bytes, both = routine.getOuter() * routine.getInner(),
                rows = both * routine.getRows();
  using Use = EntryOperand::Use;
  Entry entry{symbol.str(), flatBlocks(both * rowUnits), flatThreads, {}, 0};
  entry.operands = {{Use::Read, rows * bytesOf(elementOf(call.getIns()[0]))},
                    {Use::Read, rows * rowBytes},
                    {Use::Both, both * routine.getEntries() * rowBytes}};
  OpBuilder builder(call.getContext());
  func::FuncOp function = kernels.add(builder, call.getLoc(), std::move(entry));
  ScatterEmitter(builder, call, function, unit).emit(rowUnits);
  func::ReturnOp::create(builder, call.getLoc());
  return success();
}

} // namespace titan::codegen::cuda
