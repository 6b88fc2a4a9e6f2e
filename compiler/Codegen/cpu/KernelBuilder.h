// Sizes, memory, vectors and loops of kernels that are written by hand: products, attention,
// lookups. Numbers of elements are of type index.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace titan::codegen {

/// Of the stack, for one kernel: half of what a thread has (runtime/host/KernelThread.h).
inline constexpr int64_t mostStackBytes = int64_t{8} << 20;
/// What `function` itself puts there.
int64_t stackBytes(mlir::func::FuncOp function);

class KernelBuilder {
public:
  /// `builder` stands in a function. Vectors have `width` lanes where nothing else is said.
  KernelBuilder(mlir::OpBuilder& builder, mlir::Location loc, int64_t width);

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
  /// Of numbers that are not negative.
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value divideCeil(mlir::Value a, mlir::Value b);
  mlir::Value remainder(mlir::Value a, int64_t b);
  mlir::Value fewer(mlir::Value a, mlir::Value b); ///< the smaller
  /// Of numbers that may be negative.
  mlir::Value smaller(mlir::Value a, mlir::Value b);
  mlir::Value larger(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value flag(bool value);
  mlir::Value toIndex(mlir::Value i64);
  mlir::Value toI64(mlir::Value index);

  // Memory. Alignment is that of one element.
  /// The address `offset` elements behind `pointer`.
  mlir::Value at(mlir::Value pointer, mlir::Value offset, mlir::Type element);
  mlir::Value at(mlir::Value pointer, int64_t offset, mlir::Type element) {
    return at(pointer, index(offset), element);
  }
  mlir::Value load(mlir::Type type, mlir::Value pointer);
  void store(mlir::Value value, mlir::Value pointer);
  /// Lanes that `mask` lacks are 0.
  mlir::Value loadMasked(mlir::VectorType type, mlir::Value pointer, mlir::Value mask);
  void storeMasked(mlir::Value value, mlir::Value pointer, mlir::Value mask);
  /// Fetches the line at `pointer`, which need not be valid.
  void prefetch(mlir::Value pointer);              ///< to be read
  void prefetchToSecondLevel(mlir::Value pointer); ///< to be read later
  void prefetchToWrite(mlir::Value pointer);
  /// Uninitialised elements on the stack, at the function's start.
  mlir::Value stack(int64_t elements, mlir::Type element);

  // Vectors.
  mlir::VectorType vectorOf(mlir::Type element) const { return vectorOf(element, width); }
  mlir::VectorType vectorOf(mlir::Type element, int64_t lanes) const {
    return mlir::VectorType::get({lanes}, element);
  }
  mlir::Value zeros(mlir::Type type);
  mlir::Value splat(mlir::VectorType type, int64_t value);
  mlir::Value broadcast(mlir::Value scalar);
  /// Which of `lanes` numbers, from `first` on, are below `count`.
  mlir::Value maskBelow(mlir::Value count, int64_t lanes, int64_t first = 0);
  /// rows[i][l] -> rows[l][i], for as many rows as a row has lanes.
  void transpose(llvm::SmallVectorImpl<mlir::Value>& rows);

  // Control.
  /// for (i = low; i < high; i += step)
  void loop(mlir::Value low, mlir::Value high, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  void loop(int64_t low, int64_t high, int64_t step, llvm::function_ref<void(mlir::Value)> body) {
    loop(index(low), index(high), step, body);
  }
  void when(mlir::Value condition, llvm::function_ref<void()> then);
  void choose(mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);
  /// Loops over `columns` columns, whole vectors first; `body` gets the rest with a mask.
  void columns(int64_t columns, int64_t lanes,
               llvm::function_ref<void(mlir::Value column, mlir::Value mask)> body);

  /// The private function `name` of the module: found, or created with a body that `emit` fills.
  mlir::func::FuncOp getFunction(llvm::StringRef name, llvm::ArrayRef<mlir::Type> arguments,
                                 llvm::function_ref<void(mlir::Block&)> emit);

  mlir::OpBuilder& builder;
  mlir::Location loc;
  mlir::ModuleOp module; ///< that the builder stood in at first: loops are built detached from it
  int64_t width;
  mlir::Type pointer, indexType, f32, bf16, i32, i16, i8;
};

/// Arguments of a shared function by name, where it is called and where its body is emitted: a
/// struct with `slots()`, the addresses of its members in the order of the function's arguments.
template <typename Arguments> Arguments argumentsOf(mlir::Block& block) {
  Arguments arguments;
  for (auto [slot, argument] : llvm::zip_equal(arguments.slots(), block.getArguments()))
    *slot = argument;
  return arguments;
}
template <typename Arguments>
void callShared(KernelBuilder& b, mlir::func::FuncOp callee, Arguments arguments) {
  llvm::SmallVector<mlir::Value> values;
  for (mlir::Value* slot : arguments.slots())
    values.push_back(*slot);
  mlir::func::CallOp::create(b.builder, b.loc, callee, values);
}

} // namespace titan::codegen
