// The values of one function while the interpreter runs it.
#pragma once

#include "compiler/Interpreter/Tensor.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace titan::interpreter {

/// How floats are held.
enum class Engine {
  F64, ///< every float is f64, float casts are identities: the exact meaning of a program
  F32, ///< every value has its declared type; results are rounded to it, once an op
};

class Rank;

/// `number` as `engine` holds a value of type `element`.
double roundTo(mlir::Type element, double number, Engine engine);

/// SSA values by name. A loop's body runs in the frame of its function; each iteration overwrites
/// the values of the one before.
class Frame {
public:
  /// `rank`: whose frame this is, where several run side by side.
  explicit Frame(Engine engine, Rank* rank = nullptr) : engine_(engine), rank_(rank) {}

  Engine engine() const { return engine_; }
  Rank* rank() const { return rank_; }
  const Tensor& get(mlir::Value value) const;
  /// Sets `value` to `tensor`, rounded to the element type of `value` as the engine says.
  void set(mlir::Value value, Tensor tensor);
  /// Sets `value` to elements that have its type already: moved, not computed.
  void setExact(mlir::Value value, Tensor tensor) { values_[value] = std::move(tensor); }
  /// `number` as the engine holds a value of type `element`.
  double round(double number, mlir::Type element) const {
    return roundTo(element, number, engine_);
  }
  /// Runs all ops of `block` but its terminator. An op that has no meaning here, or meets values
  /// that it is undefined for, emits an error.
  llvm::LogicalResult run(mlir::Block& block);

private:
  Engine engine_;
  Rank* rank_;
  llvm::DenseMap<mlir::Value, Tensor> values_;
};

} // namespace titan::interpreter
