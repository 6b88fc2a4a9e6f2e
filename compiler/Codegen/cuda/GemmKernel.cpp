#include "compiler/Codegen/cuda/GemmKernel.h"

#include "compiler/Codegen/cuda/GemmResult.h"
#include "compiler/Codegen/cuda/TensorGemm.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// Threads of a block stand in a square of `side`. Each has squares of `cell` x `cell` elements of
/// C, one in each square of `quarter` elements of the block's tile: so neighbouring threads read
/// neighbouring addresses of shared memory.
constexpr int64_t side = 16, threads = side * side, cell = 4, quarter = side * cell;
constexpr int64_t depth = 16; ///< of a step along k
/// Padding of a line of shared memory, in elements: it moves lines to other banks.
constexpr int64_t padding = 4;

/// Quarters of a block's tile along m and along n: two, where enough blocks are left to fill a
/// card.
int64_t quartersOf(kernel::GemmAttr gemm) {
  constexpr int64_t enough = 64, large = 2;
  const int64_t blocks = gemm.getBatch() * llvm::divideCeilSigned(gemm.getM(), large * quarter) *
                         llvm::divideCeilSigned(gemm.getN(), large * quarter);
  return blocks >= enough && std::min(gemm.getM(), gemm.getN()) > quarter ? large : 1;
}

/// A or B as the product reads it: element (outer, k) of op(A) or of the transpose of op(B).
struct Source {
  Value pointer;
  Type element;
  int64_t outerExtent, outerStride, depthStride, batchStride;
};

class GemmEmitter {
public:
  GemmEmitter(OpBuilder& builder, kernel::CallOp call, func::FuncOp function, KernelModule& kernels)
      : builder(builder), loc(call.getLoc()), call(call), gemm(call.getGemm()),
        quarters(quartersOf(gemm)), tile(quarters * quarter), line(tile + padding),
        run(VectorType::get({cell}, builder.getF32Type())), operands(function.getArguments()) {
    const bool ta = gemm.getTransposeA(), tb = gemm.getTransposeB();
    auto element = [](Value value) { return cast<ShapedType>(value.getType()).getElementType(); };
    a = {operands[0],
         element(call.getIns()[0]),
         gemm.getM(),
         ta ? 1 : gemm.getLda(),
         ta ? gemm.getLda() : 1,
         gemm.getStrideA()};
    b = {operands[1],
         element(call.getIns()[1]),
         gemm.getN(),
         tb ? gemm.getLdb() : 1,
         tb ? 1 : gemm.getLdb(),
         gemm.getStrideB()};
    sharedA = kernels.shared(builder, loc, 2 * partElements() * 4);
    sharedB = kernels.shared(builder, loc, 2 * partElements() * 4);
  }

  void emit() {
    thread = threadNumber(builder, loc);
    SmallVector<Value> places =
        splitNumber(builder, loc, blockNumber(builder, loc),
                    {gemm.getBatch(), llvm::divideCeilSigned(gemm.getM(), tile),
                     llvm::divideCeilSigned(gemm.getN(), tile)});
    batch = places[0];
    firstRow = mul(places[1], tile);
    firstColumn = mul(places[2], tile);
    SmallVector<Value> square = splitNumber(builder, loc, thread, {side, side});
    threadRow = mul(square[0], cell);
    threadColumn = mul(square[1], cell);
    emitResults(emitSums());
  }

private:
  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// Steps take turns in two parts of shared memory: while one is multiplied, the next one's
  /// elements are on their way to registers.
  SmallVector<Value> emitSums() {
    const int64_t whole = gemm.getK() / depth * depth, rest = gemm.getK() - whole;
    const size_t count = quarters * cell * quarters;
    SmallVector<Value> carried(count, constant(run, 0));
    carried.push_back(index(0));
    carried.append(readStep(index(0), whole != 0 ? depth : rest));
    auto step = [&](Value k, int64_t steps, int64_t next, ValueRange values) {
      Value part = values[count];
      writeStep(values.drop_front(count + 1), part);
      emitBarrier(builder, loc); // all is there, and the step before the last has been read
      SmallVector<Value> ahead;
      if (next != 0)
        ahead = readStep(add(k, index(depth)), next);
      SmallVector<Value> result =
          emitLoop(builder, loc, index(0), index(steps), 1, values.take_front(count),
                   [&](Value each, ValueRange sums) { return multiply(each, part, sums); });
      result.push_back(arith::SubIOp::create(builder, loc, index(partElements()), part));
      result.append(ahead);
      return result;
    };
    carried =
        emitLoop(builder, loc, index(0), index(std::max<int64_t>(whole - depth, 0)), depth, carried,
                 [&](Value k, ValueRange values) { return step(k, depth, depth, values); });
    if (whole != 0)
      carried = step(index(whole - depth), depth, rest, carried);
    if (rest != 0)
      carried = step(index(whole), rest, 0, carried);
    carried.truncate(count);
    return carried;
  }

  int64_t partElements() const { return depth * line; }

  /// The thread's elements of A and B, of `steps` terms from `k` on.
  SmallVector<Value> readStep(Value k, int64_t steps) {
    SmallVector<Value> values = read(a, firstRow, k, steps);
    values.append(read(b, firstColumn, k, steps));
    return values;
  }

  void writeStep(ValueRange values, Value part) {
    const size_t half = values.size() / 2;
    write(a, values.take_front(half), sharedA, part);
    write(b, values.drop_front(half), sharedB, part);
  }

  /// Adds the products of one k to the sums: by quarters and rows of the thread, then quarters
  /// along its columns.
  SmallVector<Value> multiply(Value step, Value shared, ValueRange sums) {
    SmallVector<Value> left, right, next;
    for (int64_t part = 0; part < quarters; ++part) {
      Value row = add(threadRow, index(part * quarter)),
            column = add(threadColumn, index(part * quarter));
      left.push_back(readRun(sharedA, step, add(shared, row)));
      right.push_back(readRun(sharedB, step, add(shared, column)));
    }
    for (Value rows : left)
      for (int64_t i = 0; i < cell; ++i) {
        Value factor = vector::ExtractOp::create(builder, loc, rows, ArrayRef<int64_t>{i});
        factor = vector::BroadcastOp::create(builder, loc, run, factor);
        for (Value columns : right)
          next.push_back(math::FmaOp::create(builder, loc, factor, columns, sums[next.size()]));
      }
    return next;
  }

  /// Where the thread's element number `turn` of a tile lies in it: (outer, k). Neighbouring
  /// threads read neighbouring addresses.
  std::pair<Value, Value> placeOf(const Source& source, int64_t turn) {
    Value number = turn == 0 ? thread : add(thread, index(turn * threads));
    const bool alongDepth = source.depthStride == 1;
    SmallVector<Value> places =
        splitNumber(builder, loc, number, {alongDepth ? tile : depth, alongDepth ? depth : tile});
    return alongDepth ? std::pair(places[0], places[1]) : std::pair(places[1], places[0]);
  }

  /// Lines beyond the matrix repeat its last one, whose sums are not written; so do terms beyond
  /// the step, which are not read.
  SmallVector<Value> read(const Source& source, Value first, Value k, int64_t steps) {
    SmallVector<Value> values;
    for (int64_t turn = 0; turn < tile * depth / threads; ++turn) {
      auto [outer, inner] = placeOf(source, turn);
      outer = add(first, outer);
      if (source.outerExtent % tile != 0)
        outer = arith::MinUIOp::create(builder, loc, outer, index(source.outerExtent - 1));
      if (steps < depth)
        inner = arith::MinUIOp::create(builder, loc, inner, index(steps - 1));
      Value at = add(mul(outer, source.outerStride), mul(add(k, inner), source.depthStride));
      at = add(at, mul(batch, source.batchStride));
      Value value = LLVM::LoadOp::create(builder, loc, source.element,
                                         elementPointer(source.pointer, source.element, at),
                                         source.element.getIntOrFloatBitWidth() / 8);
      values.push_back(toF32(source, value));
    }
    return values;
  }

  /// An f32 B beside a bf16 A is rounded to bf16.
  Value toF32(const Source& source, Value value) {
    const bool rounds = source.element.isF32() && (a.element.isBF16() || b.element.isBF16());
    if (rounds)
      value = arith::TruncFOp::create(builder, loc, builder.getBF16Type(), value);
    if (value.getType().isF32())
      return value;
    return arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
  }

  void write(const Source& source, ValueRange values, Value shared, Value part) {
    for (auto [turn, value] : llvm::enumerate(values)) {
      auto [outer, inner] = placeOf(source, static_cast<int64_t>(turn));
      LLVM::StoreOp::create(builder, loc, value, sharedPointer(shared, inner, add(part, outer)), 4);
    }
  }

  Value readRun(Value shared, Value k, Value from) {
    return LLVM::LoadOp::create(builder, loc, run, sharedPointer(shared, k, from), widestAccess);
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  void emitResults(ValueRange sums) {
    ThreadBuilder thread(builder, loc);
    GemmResult result(thread, call, operands, batch);
    for (size_t number = 0; number < sums.size(); ++number) {
      const auto part = static_cast<int64_t>(number) / quarters;
      const int64_t rows = part / cell * quarter + part % cell,
                    columns = static_cast<int64_t>(number) % quarters * quarter;
      Value row = add(add(firstRow, threadRow), index(rows));
      Value column = add(add(firstColumn, threadColumn), index(columns));
      result.write(row, column, sums[number]);
    }
  }

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value x, Value y) { return arith::AddIOp::create(builder, loc, x, y); }
  Value mul(Value x, int64_t factor) {
    return factor == 1 ? x : arith::MulIOp::create(builder, loc, x, index(factor)).getResult();
  }
  Value constant(Type type, double value) {
    TypedAttr attribute = builder.getF32FloatAttr(static_cast<float>(value));
    if (auto shaped = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(shaped, attribute);
    return arith::ConstantOp::create(builder, loc, attribute);
  }
  Value elementPointer(Value pointer, Type element, Value at) {
    at = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), at);
    return LLVM::GEPOp::create(builder, loc, pointer.getType(), element, pointer, LLVM::GEPArg(at));
  }
  Value sharedPointer(Value shared, Value k, Value outer) {
    return elementPointer(shared, builder.getF32Type(), add(mul(k, line), outer));
  }

  OpBuilder& builder;
  Location loc;
  kernel::CallOp call;
  kernel::GemmAttr gemm;
  const int64_t quarters, tile, line; ///< line: elements of one of shared memory
  VectorType run;                     ///< neighbouring elements of C of a thread
  Source a, b;
  ValueRange operands;
  Value sharedA, sharedB;
  Value thread, batch, firstRow, firstColumn, threadRow, threadColumn;
};

int64_t touched(int64_t batch, int64_t stride, int64_t rows, int64_t leading, int64_t columns) {
  return (batch - 1) * stride + (rows - 1) * leading + columns;
}

Entry entryOf(kernel::CallOp call, StringRef symbol, int64_t blocks, int64_t threads) {
  kernel::GemmAttr gemm = call.getGemm();
  const int64_t m = gemm.getM(), n = gemm.getN(), k = gemm.getK(), batch = gemm.getBatch();
  const bool ta = gemm.getTransposeA(), tb = gemm.getTransposeB();
  auto bytes = [](Value operand, int64_t elements) {
    return elements * cast<ShapedType>(operand.getType()).getElementTypeBitWidth() / 8;
  };
  using Use = EntryOperand::Use;
  Entry entry{symbol.str(), blocks, threads, {}, 0};
  entry.operands = {
      {Use::Read, bytes(call.getIns()[0],
                        touched(batch, gemm.getStrideA(), ta ? k : m, gemm.getLda(), ta ? m : k))},
      {Use::Read, bytes(call.getIns()[1],
                        touched(batch, gemm.getStrideB(), tb ? n : k, gemm.getLdb(), tb ? k : n))},
      {gemm.getAccumulate() ? Use::Both : Use::Write,
       bytes(call.getOuts()[0], touched(batch, gemm.getStrideC(), m, gemm.getLdc(), n))}};
  if (gemm.getBias())
    entry.operands.push_back({Use::Read, bytes(call.getIns()[2], n)});
  return entry;
}

} // namespace

LogicalResult emitGemmKernel(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  for (Value operand : call->getOperands()) {
    Type element = cast<ShapedType>(operand.getType()).getElementType();
    if (!element.isF32() && !element.isBF16())
      return call.emitError() << ir::describePlace(call) << ": a product of " << element
                              << " has no kernel on cuda";
  }
  OpBuilder builder(call.getContext());
  Location loc = call.getLoc();
  kernel::GemmAttr gemm = call.getGemm();
  if (gemm.hasPatches())
    return call.emitError() << ir::describePlace(call) << ": a convolution has no kernel on cuda";
  if (isTensorGemm(call)) {
    const TensorGemmPlan plan = planTensorGemm(gemm);
    Entry entry = entryOf(call, symbol, plan.blocks(gemm), plan.threads());
    entry.blocksTogether = 2; // one copies or writes while the other multiplies
    func::FuncOp function = kernels.add(builder, loc, std::move(entry));
    ThreadBuilder thread(builder, loc);
    emitTensorGemm(thread, kernels, call, function.getArguments(), plan);
  } else {
    const int64_t tile = quartersOf(gemm) * quarter;
    const int64_t blocks = gemm.getBatch() * llvm::divideCeilSigned(gemm.getM(), tile) *
                           llvm::divideCeilSigned(gemm.getN(), tile);
    func::FuncOp function = kernels.add(builder, loc, entryOf(call, symbol, blocks, threads));
    GemmEmitter(builder, call, function, kernels).emit();
  }
  func::ReturnOp::create(builder, loc);
  return success();
}

} // namespace titan::codegen::cuda
