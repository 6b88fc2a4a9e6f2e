#include "compiler/Interpreter/RandomArguments.h"

#include "compiler/Support/IndexBound.h"
#include "dialects/Titan/Titan.h"
#include "runtime/program/Random.h"

#include <cmath>

using namespace mlir;

namespace titan::interpreter {

Tensor randomTensor(ShapedType type, uint64_t stream, const RandomOptions& options) {
  Tensor tensor(type);
  uint64_t key = randomKey(options.seed, stream);
  if (tensor.isFloat()) {
    for (auto [i, x] : llvm::enumerate(tensor.mutableFloats()))
      x = normalDraw(key, 0, i);
    return tensor;
  }
  bool isFlag = type.getElementType().isInteger(1) || options.integerBound == 0;
  int64_t bound = isFlag ? 2 : options.integerBound;
  for (auto [i, x] : llvm::enumerate(tensor.mutableIntegers()))
    x = static_cast<int64_t>(uniformDraw(key, 0, i) * static_cast<float>(bound));
  return tensor;
}

SmallVector<Tensor> randomArguments(func::FuncOp function, const RandomOptions& options) {
  return randomArguments(
      function, llvm::map_to_vector(function.getArgumentTypes(), llvm::CastTo<RankedTensorType>),
      options);
}

SmallVector<Tensor> randomArguments(func::FuncOp function, ArrayRef<RankedTensorType> types,
                                    const RandomOptions& options) {
  SmallVector<Tensor> arguments;
  for (auto [i, shaped] : llvm::enumerate(types)) {
    RandomOptions bounded = options;
    if (bounded.integerBound == 0)
      bounded.integerBound = indexBound(function.getArgument(i));
    Tensor tensor = randomTensor(shaped, i, bounded);
    auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(i, ir::tag::state);
    bool scalar = shaped.getRank() == 0;
    if (tensor.isFloat() && (scalar || (state && state.getValue().ends_with("exp_avg_sq"))))
      for (double& x : tensor.mutableFloats())
        x = std::abs(x) / 16;
    else if (!tensor.isFloat() && scalar && !tensor.element().isInteger(1))
      tensor = Tensor::scalar(tensor.element(), 1);
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

} // namespace titan::interpreter
