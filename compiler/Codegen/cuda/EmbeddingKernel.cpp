#include "compiler/Codegen/cuda/EmbeddingKernel.h"

#include "compiler/Codegen/cuda/EmbeddingSort.h"
#include "compiler/Codegen/cuda/EmbeddingSums.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"

#include "mlir/IR/BuiltinTypes.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// A copy or a fill in units of up to 16 bytes, one a thread.
class FlatEmitter : EmbeddingBuilder {
public:
  FlatEmitter(OpBuilder& builder, kernel::CallOp call, func::FuncOp function, int64_t unitBytes)
      : EmbeddingBuilder(builder, call, function), unitBytes(unitBytes),
        unit(unitBytes > 4 ? VectorType::get({unitBytes / 4}, builder.getI32Type())
                           : Type(builder.getIntegerType(unitBytes * 8))) {}

  void emitRows(int64_t rows, int64_t rowUnits) {
    overUnits(builder, loc, rows * rowUnits, [&](Value number) {
      SmallVector<Value> places = splitNumber(builder, loc, number, {rows, rowUnits});
      Value source = add(mul(entryAt(places[0]), rowUnits), places[1]);
      store(load(unit, at(operands[0], unit, source), unitBytes), at(operands[2], unit, number),
            unitBytes);
    });
  }

  void emitZeros(int64_t units) {
    overUnits(builder, loc, units,
              [&](Value number) { store(zero(unit), at(operands[2], unit, number), unitBytes); });
  }

private:
  int64_t unitBytes;
  Type unit;
};

} // namespace

LogicalResult emitEmbeddingKernel(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  auto routine = cast<kernel::EmbeddingAttr>(call.getRoutine());
  Value table = call.getIns()[0], indices = call.getIns()[1], result = call.getOuts()[0];
  const int64_t rowBytes = routine.getWidth() * bytesOf(elementOf(table));
  const int64_t unitBytes = std::gcd(rowBytes, std::gcd(alignmentOf(table), alignmentOf(result)));
  const int64_t rowUnits = rowBytes / unitBytes, rows = routine.getAllRows();
  using Use = EntryOperand::Use;
  Entry entry{symbol.str(), flatBlocks(rows * rowUnits), flatThreads, {}, 0};
  entry.operands = {{Use::Read, routine.getTableRows() * rowBytes},
                    {Use::Read, rows * bytesOf(elementOf(indices))},
                    {Use::Write, rows * rowBytes}};
  OpBuilder builder(call.getContext());
  func::FuncOp function = kernels.add(builder, call.getLoc(), std::move(entry));
  FlatEmitter(builder, call, function, unitBytes).emitRows(rows, rowUnits);
  func::ReturnOp::create(builder, call.getLoc());
  return success();
}

LogicalResult emitEmbeddingGradKernels(KernelModule& kernels, kernel::CallOp call,
                                       StringRef symbol) {
  auto routine = cast<kernel::EmbeddingGradAttr>(call.getRoutine());
  Value table = call.getOuts()[0];
  Type from = elementOf(call.getIns()[0]);
  if (!from.isF32() && !from.isF64() && !from.isBF16())
    return call.emitError() << ir::describePlace(call) << ": the gradient of a table from " << from
                            << " has no kernel on cuda";
  if (!routine.getSorted())
    return call.emitError() << ir::describePlace(call)
                            << ": the gradient of a table in the order of rows has no kernel on "
                               "cuda: use machine.embedding_grad_sorted_rows = 1";
  OpBuilder builder(call.getContext());
  LaunchSeries launches(kernels, builder, call, symbol);
  if (!routine.getAccumulate()) {
    const int64_t bytes = routine.getTableRows() * routine.getWidth() * bytesOf(elementOf(table));
    const int64_t unitBytes = std::gcd(bytes, alignmentOf(table));
    launches.add(flatBlocks(bytes / unitBytes), flatThreads, EntryOperand::Use::Write,
                 [&](func::FuncOp function) {
                   FlatEmitter(builder, call, function, unitBytes).emitZeros(bytes / unitBytes);
                 });
  }
  emitSort(launches, routine);
  emitSums(launches, routine);
  return success();
}

} // namespace titan::codegen::cuda
