// Memory as one thread of a card reaches it: accesses as wide as alignment allows, up to 16 bytes,
// and single elements where lanes lie apart.
#pragma once

#include "compiler/Codegen/kernel/BodyEmitter.h"

namespace titan::codegen::cuda {

/// Bytes of the widest access.
inline constexpr int64_t widestAccess = 16;

/// What divides the address of a command's operand whatever the loops around the command count, up
/// to `widestAccess`: the plan's offset, and the steps of slices and rows. The size of an element
/// where nothing is known.
int64_t alignmentOf(mlir::Value operand);

/// An operand whose chunks are not reached by accesses as wide as they could be.
struct NarrowOperand {
  unsigned number; ///< among ins and outs
  int64_t bytes;   ///< of an access
  std::string reason;
};

class ThreadMemory : public BodyMemory {
public:
  /// `operands` are the addresses of ins and outs, `alignments` what divides them; `scalars` the
  /// values of the kernel's scalars. Lanes begin at multiples of 8.
  ThreadMemory(mlir::ValueRange operands, llvm::ArrayRef<int64_t> alignments,
               mlir::ValueRange scalars);

  /// Of an address that is no operand's.
  void setAlignment(mlir::Value pointer, int64_t alignment) { alignments_[pointer] = alignment; }

  /// Of what was read and written so far.
  llvm::ArrayRef<NarrowOperand> narrow() const { return narrow_; }

  mlir::Value scalar(mlir::OpBuilder& builder, mlir::Location loc, unsigned number) override;
  mlir::Value load(mlir::OpBuilder& builder, mlir::Location loc, const ElementRun& run) override;
  void store(mlir::OpBuilder& builder, mlir::Location loc, const ElementRun& run,
             mlir::Value value) override;

private:
  unsigned alignmentOf(const ElementRun& run) const;
  std::string whatNarrows(const ElementRun& run, int64_t wanted) const;
  void noteWidth(const ElementRun& run, int64_t alignment);

  llvm::SmallVector<mlir::Value> operands_;
  llvm::SmallVector<NarrowOperand> narrow_;
  llvm::DenseMap<mlir::Value, int64_t> alignments_; ///< by the operand's address
  llvm::SmallVector<mlir::Value> scalars_;
};

} // namespace titan::codegen::cuda
