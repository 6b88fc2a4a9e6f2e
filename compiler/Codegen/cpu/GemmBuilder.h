// Memory and vectors of generated matrix products, with i64 indices.
#pragma once

#include "compiler/Codegen/cpu/GemmTile.h"
#include "compiler/Codegen/cpu/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace titan::codegen {

class GemmBuilder {
public:
  GemmBuilder(mlir::OpBuilder& builder, mlir::Location loc, int64_t width);

  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b) { return mul(a, constant(b)); }
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value divideCeil(mlir::Value a, mlir::Value b);
  mlir::Value remainder(mlir::Value a, int64_t b);
  mlir::Value smaller(mlir::Value a, mlir::Value b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);

  /// The address `index` elements of `type` behind `pointer`.
  mlir::Value at(mlir::Value pointer, mlir::Value index, mlir::Type type);
  mlir::Value load(mlir::Type type, mlir::Value pointer);
  /// Lanes that the mask leaves out are zero.
  mlir::Value loadMasked(mlir::VectorType type, mlir::Value pointer, mlir::Value mask);
  void store(mlir::Value value, mlir::Value pointer);
  void storeMasked(mlir::Value value, mlir::Value pointer, mlir::Value mask);
  /// Into the first-level cache, to be written.
  void prefetch(mlir::Value pointer);
  /// Into the second-level cache, to be read.
  void prefetchToRead(mlir::Value pointer);
  mlir::Value zero(mlir::Type type);
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes);
  /// Lanes first, first + 1, ... that are below `count`, as a vector of `width`.
  mlir::Value maskBelow(mlir::Value count, int64_t first);
  /// Two 16-bit values in one 32-bit lane: `low` comes first in memory. Scalars or vectors.
  mlir::Value pair(mlir::Value low, mlir::Value high);
  mlir::VectorType vectorOf(mlir::Type element) const {
    return mlir::VectorType::get({width}, element);
  }

  /// for (i = low; i < high; i += step) body(i), with i64 indices.
  void loop(mlir::Value low, mlir::Value high, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);

  mlir::OpBuilder& builder;
  mlir::Location loc;
  int64_t width;
  mlir::Type f32, bf16, i32, i16;

private:
  unsigned alignmentOf(mlir::Type type) const;
};

/// A private function of the module that `builder` stands in: found by its name, or created with a
/// body that `emit` fills.
mlir::func::FuncOp getSharedFunction(mlir::OpBuilder& builder, mlir::Location loc,
                                     llvm::StringRef name, llvm::ArrayRef<mlir::Type> arguments,
                                     llvm::function_ref<void(mlir::Block&)> emit);

} // namespace titan::codegen
