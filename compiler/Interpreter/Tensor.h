// A host tensor of the reference interpreter.
#pragma once

#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <vector>

namespace titan::interpreter {

/// A dense row-major value of any element type. Floats are held as f64 and integers, i1 and index
/// as i64, whatever the declared element type: what a value is rounded to is the engine's business
/// (Frame::set). Copies share storage until one of them is written.
class Tensor {
public:
  Tensor() = default;
  /// Zeros.
  Tensor(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  explicit Tensor(mlir::ShapedType type) : Tensor(type.getShape(), type.getElementType()) {}
  /// A tensor of `type` with every element `value`.
  static Tensor splat(mlir::ShapedType type, double value);
  /// What is not set to anything: NaN, or the lowest integer, so that it shows where it is read.
  static Tensor unspecified(mlir::ShapedType type);
  static Tensor scalar(mlir::Type element, double value);
  static Tensor scalar(mlir::Type element, int64_t value);
  static Tensor scalar(mlir::Type element, int value) { return scalar(element, int64_t(value)); }
  /// `values` in row-major order.
  static Tensor of(mlir::ShapedType type, llvm::ArrayRef<double> values);
  static Tensor of(mlir::ShapedType type, llvm::ArrayRef<int64_t> values);

  bool isFloat() const { return llvm::isa<mlir::FloatType>(element_); }
  llvm::ArrayRef<int64_t> shape() const { return shape_; }
  int64_t rank() const { return shape_.size(); }
  int64_t extent(int64_t dim) const { return shape_[dim]; }
  mlir::Type element() const { return element_; }
  mlir::RankedTensorType type() const { return mlir::RankedTensorType::get(shape_, element_); }
  int64_t size() const;
  /// Elements between neighbours along each dimension.
  llvm::SmallVector<int64_t> strides() const;

  llvm::ArrayRef<double> floats() const { return *floats_; }
  llvm::ArrayRef<int64_t> integers() const { return *integers_; }
  llvm::MutableArrayRef<double> mutableFloats();
  llvm::MutableArrayRef<int64_t> mutableIntegers();
  /// Element `i` as f64, of any element type.
  double number(int64_t i) const { return isFloat() ? floats()[i] : double(integers()[i]); }
  /// The only element of an integer scalar.
  int64_t integer() const { return integers().front(); }
  double real() const { return number(0); }

  /// The same elements under another shape; shares storage.
  Tensor reshaped(llvm::ArrayRef<int64_t> shape) const;

private:
  llvm::SmallVector<int64_t> shape_;
  mlir::Type element_;
  std::shared_ptr<std::vector<double>> floats_;
  std::shared_ptr<std::vector<int64_t>> integers_;
};

/// A linear walk over a tensor's elements: start + sum of index[d] * strides[d].
struct Walk {
  int64_t start = 0;
  llvm::SmallVector<int64_t> strides;
};

/// result[to(index)] = source[from(index)] for every index of `shape`; both have one element kind.
/// Transposes, broadcasts (stride 0), slices, pads and concatenations are all this.
void copyElements(llvm::ArrayRef<int64_t> shape, const Tensor& source, const Walk& from,
                  Tensor& result, const Walk& to);
/// The walk over all of `tensor`.
Walk wholeWalk(const Tensor& tensor);

} // namespace titan::interpreter
