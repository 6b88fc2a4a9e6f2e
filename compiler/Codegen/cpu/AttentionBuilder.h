// Pointers, vectors and loops of generated attention. Numbers of elements are of type index.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

class AttentionBuilder {
public:
  /// Vectors of `width` elements of `scalar`, f32 or f64. `builder` stands in a function.
  AttentionBuilder(mlir::OpBuilder& builder, mlir::Location loc, mlir::FloatType scalar,
                   int64_t width);

  template <typename Op, typename... Arguments> mlir::Value create(Arguments&&... arguments) {
    return Op::create(builder, loc, std::forward<Arguments>(arguments)...);
  }

  // Indices.
  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, index(b)); }
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b) { return mul(a, index(b)); }
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value remainder(mlir::Value a, int64_t b);
  mlir::Value smaller(mlir::Value a, mlir::Value b);
  mlir::Value larger(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value flag(bool value);
  mlir::Value toIndex(mlir::Value i64);
  mlir::Value toI64(mlir::Value index);

  // Memory. Alignment is that of one element.
  mlir::Value at(mlir::Value pointer, mlir::Value offset, mlir::Type element);
  mlir::Value at(mlir::Value pointer, mlir::Value offset) { return at(pointer, offset, scalar); }
  mlir::Value at(mlir::Value pointer, int64_t offset) { return at(pointer, index(offset)); }
  mlir::Value load(mlir::Type type, mlir::Value pointer);
  mlir::Value load(mlir::Value pointer) { return load(vector, pointer); }
  void store(mlir::Value value, mlir::Value pointer);
  /// Lanes that `mask` lacks are 0.
  mlir::Value loadMasked(mlir::VectorType type, mlir::Value pointer, mlir::Value mask);
  void storeMasked(mlir::Value value, mlir::Value pointer, mlir::Value mask);
  /// Fetches the line at `pointer`, which need not be valid, for reading.
  void prefetch(mlir::Value pointer);
  /// Uninitialised elements on the stack, at the function's start.
  mlir::Value stack(int64_t elements, mlir::Type element);
  mlir::Value stack(int64_t elements) { return stack(elements, scalar); }

  // Vectors.
  mlir::Value number(double value);
  mlir::Value numbers(double value);
  mlir::Value splat(mlir::VectorType type, int64_t value);
  mlir::Value zeros(mlir::VectorType type);
  mlir::Value broadcast(mlir::Value value);
  mlir::VectorType vectorOf(mlir::Type element, int64_t length) {
    return mlir::VectorType::get({length}, element);
  }
  /// Lanes whose number is below `count`.
  mlir::Value maskBelow(mlir::Value count, int64_t lanes);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  /// max(a, b); b where one of them is a NaN.
  mlir::Value maximum(mlir::Value a, mlir::Value b);
  /// The sum of the lanes, halves first.
  mlir::Value sumLanes(mlir::Value value);
  /// rows[i][l] -> rows[l][i], for as many rows as a row has lanes.
  void transpose(llvm::SmallVectorImpl<mlir::Value>& rows);
  /// Between a type of memory and `scalar`, each lane; i16 holds the bits of a bf16.
  mlir::Value widen(mlir::Value value);
  mlir::Value narrow(mlir::Value value, mlir::Type element);

  /// for (i = low; i < high; i += step)
  void loop(mlir::Value low, mlir::Value high, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  void loop(int64_t low, int64_t high, int64_t step, llvm::function_ref<void(mlir::Value)> body) {
    loop(index(low), index(high), step, body);
  }
  void when(mlir::Value condition, llvm::function_ref<void()> then);
  /// Loops over `columns` columns, whole vectors first; `body` gets the rest with a mask.
  void columns(int64_t columns, int64_t lanes,
               llvm::function_ref<void(mlir::Value column, mlir::Value mask)> body);

  /// The private function `name` of the module: found, or created with a body that `emit` fills.
  mlir::func::FuncOp getFunction(llvm::StringRef name, llvm::ArrayRef<mlir::Type> arguments,
                                 llvm::function_ref<void(mlir::Block&)> emit);

  mlir::OpBuilder& builder;
  mlir::Location loc;
  mlir::ModuleOp module; ///< that the builder stood in at first: loops are built detached from it
  mlir::FloatType scalar;
  int64_t width;
  mlir::VectorType vector;
  mlir::Type pointer, indexType;
};

} // namespace titan::codegen
