// One unit of the forward attention routine.
#pragma once

#include "compiler/Codegen/cpu/AttentionBlock.h"

namespace titan::codegen {

class AttentionForward {
public:
  AttentionForward(FloatBuilder& builder, kernel::AttentionAttr attention,
                   const AttentionTypes& types, mlir::func::FuncOp function);
  /// A block of queries of one head.
  void emitUnit(mlir::Value unit);
  void end() {}

private:
  using Place = AttentionBlock::Place;
  using Factor = AttentionBlock::Factor;

  void emitKeyBlock(const Place& place, const Factor& queries);
  void updateMaxima(const Place& place, mlir::Value first, int64_t vectors);
  void exponentials(const Place& place, mlir::Value first, int64_t vectors);
  void finish(const Place& place);

  FloatBuilder& b;
  kernel::AttentionAttr attention;
  AttentionTypes types;
  AttentionBlock block;
  // On the stack. `pairs`: probabilities as pairs along keys, where products take pairs.
  mlir::Value packedQuery, packedKey, packedValue, tile, pairs, factors, sums;
  mlir::Value maxima, totals, scales; ///< of each query of the block
};

} // namespace titan::codegen
