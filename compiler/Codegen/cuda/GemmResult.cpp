#include "compiler/Codegen/cuda/GemmResult.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda {

GemmResult::GemmResult(ThreadBuilder& builder, kernel::CallOp call, ValueRange operands,
                       Value batch)
    : b(builder), call(call), gemm(call.getGemm()), c(operands[2]), batch(batch),
      element(cast<ShapedType>(call.getOuts()[0].getType()).getElementType()) {
  if (gemm.getBias())
    bias = operands[3];
}

void GemmResult::write(Value row, Value column, Value sums) {
  const int64_t count = cast<VectorType>(sums.getType()).getNumElements();
  b.when(b.isBelow(row, gemm.getM()), [&] {
    if (gemm.getN() % count == 0)
      return b.when(b.isBelow(column, gemm.getN()), [&] { writeRun(row, column, sums); });
    for (int64_t i = 0; i < count; ++i) {
      Value place = b.add(column, i);
      b.when(b.isBelow(place, gemm.getN()), [&] { writeRun(row, place, b.lane(sums, i)); });
    }
  });
}

/// A run of elements of a row of C, or a single one.
void GemmResult::writeRun(Value row, Value column, Value sum) {
  auto run = dyn_cast<VectorType>(sum.getType());
  auto typeOf = [&](Type scalar) { return run ? Type(run.clone(scalar)) : scalar; };
  auto bytesOf = [](Type scalar) { return int64_t{scalar.getIntOrFloatBitWidth()} / 8; };
  const int64_t bytes = bytesOf(element), count = run ? run.getNumElements() : 1;
  const int64_t alignment =
      run ? std::gcd(std::gcd(alignmentOf(call.getOuts()[0]), gemm.getLdc() * bytes),
                     std::gcd(gemm.getStrideC() * bytes, count * bytes))
          : bytes;
  Value at = b.add(b.add(b.mul(row, gemm.getLdc()), column), b.mul(batch, gemm.getStrideC()));
  Value address = b.address(c, element, at);
  if (gemm.getAccumulate())
    sum = b.create<arith::AddFOp>(b.widen(b.load(typeOf(element), address, alignment)), sum);
  if (bias) {
    Type scalar = cast<ShapedType>(call.getIns()[2].getType()).getElementType();
    const int64_t biasAlignment =
        run ? std::gcd(alignmentOf(call.getIns()[2]), count * bytesOf(scalar)) : bytesOf(scalar);
    Value added = b.load(typeOf(scalar), b.address(bias, scalar, column), biasAlignment);
    sum = b.create<arith::AddFOp>(sum, b.widen(added));
  }
  if (gemm.getRelu())
    sum = b.create<arith::MaximumFOp>(sum, b.number(sum.getType(), 0));
  b.store(b.narrow(sum, element), address, alignment);
}

} // namespace titan::codegen::cuda
