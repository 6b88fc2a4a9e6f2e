// Memory as a CPU's vectors reach it: whole, masked, gathered or scattered.
#pragma once

#include "compiler/Codegen/kernel/BodyEmitter.h"

namespace titan::codegen {

class VectorMemory : public BodyMemory {
public:
  /// `scalars` is the address of the kernel's i64 scalars.
  explicit VectorMemory(mlir::Value scalars) : scalars_(scalars) {}

  mlir::Value scalar(mlir::OpBuilder& builder, mlir::Location loc, unsigned number) override;
  mlir::Value load(mlir::OpBuilder& builder, mlir::Location loc, const ElementRun& run) override;
  void store(mlir::OpBuilder& builder, mlir::Location loc, const ElementRun& run,
             mlir::Value value) override;

private:
  mlir::Value scalars_;
};

} // namespace titan::codegen
