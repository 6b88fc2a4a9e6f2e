// The collectives of a program, and what the table says of ranks.
#pragma once

#include "dialects/Dist/Dist.h"
#include "runtime/program/Program.h"

namespace titan::codegen {

class CollectiveTable {
public:
  /// `mesh` is that of the program.
  explicit CollectiveTable(std::vector<MeshAxis> mesh) : mesh_(std::move(mesh)) {}

  /// The number of the collective that `start` begins. Each start has its own. Fails with a
  /// diagnostic where it names an axis that the program's mesh lacks.
  mlir::FailureOr<uint32_t> add(dist::StartOp start);
  /// This rank's place on an axis, as a value of the table. Fails likewise.
  mlir::FailureOr<Affine> coordinate(dist::CoordinateOp op) const;

  void finish(Program& program);

private:
  mlir::FailureOr<uint8_t> axis(mlir::Operation* op, llvm::StringRef name) const;

  std::vector<MeshAxis> mesh_;
  std::vector<Collective> collectives_;
};

} // namespace titan::codegen
