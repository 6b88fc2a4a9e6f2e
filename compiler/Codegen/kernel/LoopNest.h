// A kernel.fused on buffers, read as loops: extents, element strides, and the passes over the data
// that its reductions force. Analysis only; nothing is emitted here.
#pragma once

#include "dialects/Kernel/Kernel.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace titan::codegen {

/// Dimensions of the (normalised) space, one bit each.
using DimSet = uint64_t;
inline constexpr DimSet bit(unsigned dim) { return DimSet{1} << dim; }
inline bool contains(DimSet set, unsigned dim) { return set >> dim & 1; }

/// Where point x of the space finds its element: offset + sum(stride[d] * x[d]), in elements.
struct Access {
  mlir::Type element;
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 4> strides;
  /// The dimensions that move the element.
  DimSet dims() const;
};

/// A reduction of the body, over the normalised dimensions.
struct Reduction {
  kernel::ReduceOp op;
  DimSet over = 0;    ///< reduced dimensions; those of extent 1 are none
  DimSet space = 0;   ///< dimensions of the reduced value, with `over`
  unsigned level = 0; ///< reductions that it waits for: it runs in pass `level`

  /// False: over one point it is what it is of.
  bool combines() const { return over != 0; }
};

/// The body of a fused kernel over normalised dimensions: those of extent 1 are dropped, and
/// neighbours that every operand walks as one are merged unless a reduction or an index names
/// them.
class LoopNest {
public:
  explicit LoopNest(kernel::FusedOp op);

  kernel::FusedOp op;
  llvm::SmallVector<int64_t, 4> extents;
  llvm::SmallVector<Access> ins, outs;
  llvm::SmallVector<Reduction> reductions; ///< in body order

  unsigned rank() const { return extents.size(); }
  /// The normalised dimension of an index op, or nothing where it is always 0.
  std::optional<unsigned> dimOf(kernel::IndexOp index) const;
  const Reduction& reductionOf(kernel::ReduceOp op) const;
  /// The dimensions that a value of the body varies with.
  DimSet dependence(mlir::Value value) const;
  /// Dimensions that no reduction combines: their points are independent.
  DimSet parallelDims() const { return parallel; }
  /// The innermost dimension when it is parallel: vectors and units lie along it.
  std::optional<unsigned> blockDim() const;
  unsigned levels() const;
  DimSet allDims() const { return rank() == 0 ? 0 : ~DimSet{0} >> (64 - rank()); }
  /// The product of their extents.
  int64_t pointsOf(DimSet dims) const;
  /// Of the elements that `access` reaches, as they are stored: each once.
  int64_t bytesOf(const Access& access) const;
  /// Is `earlier` among what `later` is computed from?
  bool needs(const Reduction& later, const Reduction& earlier) const;

private:
  void normalise();
  void analyseReductions();

  llvm::SmallVector<int> normalised; ///< original dimension -> normalised, -1 if dropped
  mutable llvm::DenseMap<mlir::Value, DimSet> known;
  DimSet parallel = 0;
};

/// Dimensions of `set`, outermost first.
llvm::SmallVector<unsigned, 4> listOf(DimSet set);
/// The innermost dimension of a set that is not empty.
unsigned innermost(DimSet set);

} // namespace titan::codegen
