// The matrix unit of a target: registers of 16 x 16 sums in f32, to which it adds a product of bf16
// 32 deep in one instruction. The one place that knows how it is told to.
//
// One multiplication gives each sum c the new value c + (e + o), where e is the chain of
// multiply-adds over the even elements of the 32 along k from +0 on, in order, and o that over the
// odd ones. Each step rounds to nearest even, takes denormal numbers for zeros and flushes denormal
// results to zero, whatever MXCSR says (Intel's Software Developer's Manual, TDPBF16PS). Zeros
// along k change no bit.
#pragma once

#include "compiler/Codegen/cpu/KernelBuilder.h"

namespace titan::codegen {

/// What the registers hold: 16 rows of 64 bytes, so 16 x 16 f32 or 16 x 32 bf16.
struct MatrixTile {
  static constexpr int64_t rows = 16, columns = 16, depth = 32, rowBytes = 64, bytes = 1024;
};

class MatrixUnit {
public:
  virtual ~MatrixUnit() = default;

  /// A register of zeros. `number` (0 to 7) tells the registers that are alive at one time apart.
  virtual mlir::Value zero(int64_t number) = 0;
  /// 16 rows of 64 bytes from `pointer` on, `rowBytes` (i64) apart.
  virtual mlir::Value load(int64_t number, mlir::Value pointer, mlir::Value rowBytes) = 0;
  virtual void store(mlir::Value tile, mlir::Value pointer, mlir::Value rowBytes) = 0;
  /// sum + a * b. Row i of `a` has element k of row i of the left factor at k; row k / 2 of `b`
  /// has elements k and k + 1 of column j of the right factor side by side, at 2 j. `sum` is used
  /// up.
  virtual mlir::Value multiplyAdd(mlir::Value sum, mlir::Value a, mlir::Value b) = 0;

  /// For code at the builder's insertion point, which stands in the function's entry block.
  static std::unique_ptr<MatrixUnit> create(KernelBuilder& builder, MatrixUnitKind kind);
};

/// The function that MatrixUnitKind::Emulated calls: void(float* sum, const uint16_t* a, const
/// uint16_t* b), which adds to `sum` in place.
inline constexpr const char* emulatedMultiplyAdd = "titan_emulated_tile_multiply_add";

} // namespace titan::codegen
