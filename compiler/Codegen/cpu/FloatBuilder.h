// Arithmetic of kernels that are written by hand, on vectors of one floating type: attention,
// recurrence.
#pragma once

#include "compiler/Codegen/cpu/KernelBuilder.h"

namespace titan::codegen {

class FloatBuilder : public KernelBuilder {
public:
  /// Vectors of `width` elements of `scalar`, f32 or f64. `builder` stands in a function.
  FloatBuilder(mlir::OpBuilder& builder, mlir::Location loc, mlir::FloatType scalar, int64_t width);

  // Elements are `scalar` where no type is given.
  using KernelBuilder::at;
  mlir::Value at(mlir::Value pointer, mlir::Value offset) { return at(pointer, offset, scalar); }
  mlir::Value at(mlir::Value pointer, int64_t offset) { return at(pointer, offset, scalar); }
  using KernelBuilder::load;
  mlir::Value load(mlir::Value pointer) { return load(vector, pointer); }
  using KernelBuilder::stack;
  mlir::Value stack(int64_t elements) { return stack(elements, scalar); }

  mlir::Value number(double value);
  mlir::Value numbers(double value);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  /// max(a, b); b where one of them is a NaN.
  mlir::Value maximum(mlir::Value a, mlir::Value b);
  /// The sum of the lanes, halves first.
  mlir::Value sumLanes(mlir::Value value);
  /// Between a type of memory and `scalar`, each lane; i16 holds the bits of a bf16.
  mlir::Value widen(mlir::Value value);
  mlir::Value narrow(mlir::Value value, mlir::Type element);

  mlir::FloatType scalar;
  mlir::VectorType vector;
};

} // namespace titan::codegen
