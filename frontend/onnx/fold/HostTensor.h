// A small tensor with its values: what shape arithmetic and other constants are computed in.
#pragma once

#include "frontend/onnx/read/Tensor.h"

#include <vector>

namespace titan::frontend {

/// Larger constants are left to the compiled program. A causal mask of 1024 positions is folded.
inline constexpr int64_t kLargestFolded = 1 << 20;
/// What one import may fold in all; beyond it only constants of up to `kAlwaysFolded` elements are.
inline constexpr int64_t kMostFolded = 1 << 25, kAlwaysFolded = 1 << 12;

/// Row-major values: integers (and booleans, as 0 and 1) in `integers`, floats in `reals`, rounded
/// to `dtype`.
struct HostTensor {
  DType dtype = DType::I64;
  Shape shape;
  std::vector<int64_t> integers;
  std::vector<double> reals;

  bool isFloat() const {
    return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 ||
           dtype == DType::BF16;
  }
  int64_t size() const { return elementCount(shape); }
  double real(int64_t i) const { return isFloat() ? reals[i] : static_cast<double>(integers[i]); }
  int64_t integer(int64_t i) const;
  /// Appends a value, rounded or wrapped to `dtype`.
  void push(double value);
  void push(int64_t value);
  /// Appends element `position` of `other`, which is of the same type.
  void pushFrom(const HostTensor& other, int64_t position);

  static HostTensor vector(const std::vector<int64_t>& values);
  static HostTensor scalar(int64_t value);
  /// An empty tensor of `shape` that is ready for `push`.
  static HostTensor empty(DType dtype, Shape shape);
};

/// The values of `tensor`, which has at most `kLargestFolded` elements.
Result<HostTensor> toHost(const Tensor& tensor);
/// The bytes of `tensor`: little-endian, row-major, booleans as bytes.
std::string toBytes(const HostTensor& tensor);

/// The shape that two operands broadcast to, or nothing.
std::optional<Shape> broadcastShape(std::span<const int64_t> a, std::span<const int64_t> b);

} // namespace titan::frontend
