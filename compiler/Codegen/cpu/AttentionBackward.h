// One unit of the backward attention routine.
#pragma once

#include "compiler/Codegen/cpu/AttentionBlock.h"

namespace titan::codegen {

class AttentionBackward {
public:
  /// With `ownsSums` the sums over queries stand in memory that the function takes for itself:
  /// neither outs nor a workspace are made for them.
  AttentionBackward(FloatBuilder& builder, kernel::AttentionAttr attention,
                    const AttentionTypes& types, mlir::func::FuncOp function, bool ownsSums);
  /// One key head with all of its query heads.
  void emitUnit(mlir::Value unit);
  /// Behind the last unit.
  void end();

private:
  using Place = AttentionBlock::Place;
  using Factor = AttentionBlock::Factor;
  using Sums = AttentionBlock::Sums;
  /// Blocks of the queries' side as products take them.
  struct QuerySide {
    Factor query, dresult;           ///< right factors over columns
    Factor queryLanes, dresultLanes; ///< right factors over queries
  };

  /// Of the sums over queries that a unit has.
  int64_t sumElements();
  void emitQueryBlock(const Place& place);
  QuerySide pack(const Place& place);
  void loadRowValues(const Place& place);
  void emitKeyBlock(const Place& place, const QuerySide& side);
  void adjointOfScores(const Place& place);
  /// The sums over queries: where row `key` of this unit's key or value adjoint begins.
  Sums keySums(mlir::Value key, bool ofValue);
  mlir::Value continuesKeySums(const Place& place);
  void clearUnattended();
  void writeKeySums();
  void writeRows(mlir::Value from, int64_t fromRow, mlir::Value rows, int64_t columns,
                 mlir::Value to, int64_t toRow, double scale);

  FloatBuilder& b;
  kernel::AttentionAttr attention;
  kernel::AttentionGradientAttr gradient;
  AttentionTypes types;
  AttentionBlock block;
  mlir::Value batch, keyHead, workspace; ///< of the unit
  mlir::Value ownSums;                   ///< of each unit in turn; null: they stand elsewhere
  mlir::Value isFirstHead;               ///< of those that read the key head
  // On the stack.
  mlir::Value packedKey, packedValue, tile, adjoint, factors, dquery;
  mlir::Value query, dresult, queryLanes, dresultLanes;
  /// Where products take pairs: probabilities and adjoints by rows, adjoints as pairs along keys.
  mlir::Value probabilityRows, adjointRows, adjointPairs;
  mlir::Value logSumExp, largest, delta; ///< of each query of the block
};

} // namespace titan::codegen
