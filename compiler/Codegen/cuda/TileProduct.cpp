#include "compiler/Codegen/cuda/TileProduct.h"

#include "compiler/Codegen/cuda/ScalarTiles.h"
#include "compiler/Codegen/cuda/TensorTiles.h"
#include "compiler/Codegen/cuda/Threads.h"

using namespace mlir;

namespace titan::codegen::cuda {

TileProduct::TileProduct(ThreadBuilder& builder)
    : run(VectorType::get({cell}, builder.builder.getF32Type())), b(builder),
      thread(threadNumber(builder.builder, builder.loc)) {
  SmallVector<Value> place = splitNumber(b.builder, b.loc, thread, {lanes, lanes});
  row = b.mul(place[0], cell);
  column = b.mul(place[1], cell);
}

SmallVector<Value> TileProduct::zeros(int64_t pieces) {
  return SmallVector<Value>(pieces * cell, b.number(run, 0));
}

std::unique_ptr<TileProduct> makeTileProduct(ThreadBuilder& builder, KernelModule& kernels,
                                             Type element, int64_t pieces) {
  if (element.isBF16())
    return std::make_unique<TensorTiles>(builder, kernels);
  return std::make_unique<ScalarTiles>(builder, kernels, pieces);
}

} // namespace titan::codegen::cuda
