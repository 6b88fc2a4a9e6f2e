// The elements of values that are known at compile time: masks and tables that exporters compute
// with ordinary ops.
#pragma once

#include "dialects/Titan/Titan.h"

#include <memory>
#include <vector>

namespace titan::frontend {

/// The argument attribute by which the importer tells what a buffer holds in the file (an elements
/// attribute of the argument's type). It proves things about masks; it never replaces the state.
inline constexpr llvm::StringLiteral kInitialValue = "import.initial";

/// Row-major elements as doubles: exact for every type that is evaluated.
struct Elements {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;
};

/// Evaluates expressions of constants and iotas; each value once.
class Evaluator {
public:
  enum class Buffers { Unknown, AsInFile };
  /// Tensors above `largest` elements are not evaluated.
  Evaluator(int64_t largest, Buffers buffers) : largest_(largest), buffers_(buffers) {}

  /// Null where an input of the model, a state or an op that is not known here takes part, or where
  /// a result is no f16, bf16, f32, f64, i1, i32 or i64. Each op's result is rounded to its type.
  std::shared_ptr<const Elements> evaluate(mlir::Value value);

private:
  bool mayBeKnown(mlir::Value value) const;
  std::shared_ptr<const Elements> leaf(mlir::Value value) const;
  std::shared_ptr<const Elements> compute(mlir::Operation* op) const;

  int64_t largest_;
  Buffers buffers_;
  llvm::DenseMap<mlir::Value, std::shared_ptr<const Elements>> known_;
};

/// `elements` as an attribute of `type`, whose shape they have.
mlir::DenseElementsAttr toAttribute(const Elements& elements, mlir::RankedTensorType type);

} // namespace titan::frontend
