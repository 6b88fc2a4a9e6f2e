#include "compiler/Codegen/cuda/RecurrenceKernel.h"

#include "compiler/Codegen/cuda/EmbeddingBuilder.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Loops.h"
#include "compiler/Codegen/kernel/RecurrenceSteps.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// Of a block: all cards that there are code for have that much.
constexpr int64_t mostShared = 96 << 10, mostThreads = 512, numberBytes = 4;

/// A block has some samples. A thread has columns of them: of products, for all samples at once.
class BlockMachine : public RecurrenceMachine, ThreadBuilder {
public:
  BlockMachine(OpBuilder& builder, kernel::CallOp call, Value memory, int64_t samples,
               int64_t threads)
      : RecurrenceMachine(cast<kernel::RecurrenceAttr>(call.getRoutine()).getElement()),
        ThreadBuilder(builder, call.getLoc()), a(cast<kernel::RecurrenceAttr>(call.getRoutine())),
        memory(memory), samples(samples), threads(threads) {}

  /// Returns the number of the block's first sample. What a sample that there is not would have is
  /// 0 in scratch memory.
  Value enter() {
    overAll(index(taken), [&](Value at) { store(f32(0), address(memory, at), numberBytes); });
    Value from = mul(blockNumber(builder, loc), samples);
    count = smaller(sub(index(a.getBatch()), from), samples);
    return from;
  }

  Value scratch(int64_t numbers) override {
    Value begin = ThreadBuilder::address(memory, f32Type(), taken);
    taken += samples * numbers;
    return begin;
  }

  void forLanes(llvm::function_ref<void(const Lanes&)> body) override {
    overAll(mul(count, a.getWidth()), [&](Value item) {
      Value sample = div(item, a.getWidth());
      body({sample, sub(item, mul(sample, a.getWidth())), Value()});
    });
  }

  void multiply(const Product& p) override {
    overAll(index(p.count * a.getColumns()), [&](Value column) {
      Value panel = div(column, a.getColumns());
      Value weights = address(
          p.panels, add(mul(panel, p.panelStride), sub(column, mul(panel, a.getColumns()))));
      SmallVector<Value> sums(samples, f32(0));
      sums = emitLoop(builder, loc, index(0), index(p.depth), 1, sums,
                      [&](Value k, ValueRange carried) {
                        Value weight = number(weights, mul(k, a.getColumns()));
                        SmallVector<Value> next;
                        for (int64_t sample = 0; sample < samples; ++sample)
                          next.push_back(fma(number(p.left, add(k, sample * p.leftRow)), weight,
                                             carried[sample]));
                        return next;
                      });
      for (int64_t sample = 0; sample < samples; ++sample)
        store(sums[sample], address(p.product, add(column, sample * p.productRow)), numberBytes);
    });
  }

  Value address(Value pointer, Value offset) override {
    return ThreadBuilder::address(pointer, f32Type(), offset);
  }
  Value read(Value pointer, Value offset, const Lanes&, Type type) override {
    return widen(load(type, ThreadBuilder::address(pointer, type, offset),
                      type.getIntOrFloatBitWidth() / 8));
  }
  void write(Value value, Value pointer, Value offset, const Lanes&, Type type) override {
    store(narrow(value, type), ThreadBuilder::address(pointer, type, offset),
          type.getIntOrFloatBitWidth() / 8);
  }
  Value number(double value) override { return f32(value); }
  Value rounded(Value value) override { return widen(narrow(value, element)); }

private:
  Type f32Type() { return builder.getF32Type(); }
  Value number(Value pointer, Value offset) {
    return load(f32Type(), address(pointer, offset), numberBytes);
  }

  /// Items of the block's threads, who wait for each other behind them.
  void overAll(Value items, llvm::function_ref<void(Value item)> body) {
    emitLoop(builder, loc, threadNumber(builder, loc), items, threads, {},
             [&](Value item, ValueRange) {
               body(item);
               return SmallVector<Value>();
             });
    emitBarrier(builder, loc);
  }

  kernel::RecurrenceAttr a;
  Value memory, count; ///< shared; samples that there are
  int64_t samples, threads, taken = 0;
};

} // namespace

LogicalResult emitRecurrenceKernel(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  auto routine = cast<kernel::RecurrenceAttr>(call.getRoutine());
  if (routine.getAccumulation().isF64())
    return call.emitError() << ir::describePlace(call) << ": recurrence of " << routine.getElement()
                            << " has no kernel on cuda";
  const int64_t bytes = scratchOfSample(routine) * numberBytes;
  int64_t samples = std::min(routine.getSamples(), routine.getBatch());
  while (samples > 1 && samples * bytes > mostShared)
    samples = (samples + 1) / 2;
  if (bytes > mostShared)
    return call.emitError() << ir::describePlace(call) << ": a recurrent layer of "
                            << routine.getWidth() << " states takes " << bytes
                            << " bytes of shared memory, and a block has " << mostShared;
  const int64_t columns = routine.getPanels() * routine.getColumns() *
                          (routine.getGradient() ? 1 : ir::gatesOf(routine.getCell()));
  const int64_t threads =
      std::min(mostThreads, llvm::divideCeilSigned(columns, warpSize) * warpSize);

  Entry entry{symbol.str(), llvm::divideCeilSigned(routine.getBatch(), samples), threads, {}, 0};
  for (Value in : call.getIns())
    entry.operands.push_back(wholeOf(in, EntryOperand::Use::Read));
  for (Value out : call.getOuts()) // what a step reads of the one before
    entry.operands.push_back(wholeOf(out, EntryOperand::Use::Both));
  OpBuilder builder(call.getContext());
  func::FuncOp function = kernels.add(builder, call.getLoc(), std::move(entry));
  Value memory = kernels.dynamicShared(builder, call.getLoc(), samples * bytes);
  BlockMachine machine(builder, call, memory, samples, threads);
  const SmallVector<Value> operands(function.getArguments().begin(), function.getArguments().end());
  auto steps = RecurrenceSteps::create(builder, call, operands, machine);
  steps->emit(machine.enter());
  func::ReturnOp::create(builder, call.getLoc());
  return success();
}

} // namespace titan::codegen::cuda
