// How the ranks of a mesh divide what a function takes and returns.
#pragma once

#include "compiler/Interpreter/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/program/Microbatches.h"

namespace titan::interpreter {

/// An argument or a result of a program of one rank, as the whole job has it.
struct Division {
  enum class Kind {
    Placed,       ///< each rank has the part that `placement` gives it; all of it without cuts
    Microbatches, ///< rows of the batch: each rank has those of its own microbatches
    Term,         ///< the job's value is the sum of those of the ranks
  };
  Kind kind = Kind::Placed;
  mlir::RankedTensorType job, local;
  Placement placement;

  /// Have some ranks more than their elements?
  bool hasPadding(std::span<const MeshAxis> mesh) const;
};

/// What stands in the padding of parts: garbage in a job, which no value may depend on. NaN shows
/// wherever it is added or multiplied; an op that compares, or takes a maximum, may lose it but not
/// numbers far from those of the tests.
enum class Padding { NaN, LargeNumbers };

/// Is `function` the program of one rank of a mesh with several? It exchanges something with
/// others, holds a part of a state, or runs a part of the microbatches. A module before *partition*
/// has a mesh, and functions of the whole job. Emits an error where recipe and mesh differ.
mlir::FailureOr<bool> isOfOneRank(mlir::func::FuncOp function);

/// Of argument or result `index` of `function`. `isOfRank`: isOfOneRank(function); without it all
/// is whole. Emits an error where a type is not the one that a rank has.
mlir::FailureOr<Division> divisionOfArgument(mlir::func::FuncOp function, unsigned index,
                                             bool isOfRank);
mlir::FailureOr<Division> divisionOfResult(mlir::func::FuncOp function, unsigned index,
                                           bool isOfRank);

/// What the rank with this `order` of microbatches at `coordinates` of `mesh` has of `whole`, with
/// `padding`.
Tensor cut(const Tensor& whole, const Division& division, std::span<const MeshAxis> mesh,
           std::span<const int64_t> coordinates, MicrobatchOrder order,
           Padding padding = Padding::NaN);

/// The whole of which rank r has parts[r]. Padding is left out. An error where ranks that hold the
/// same have not the same bits: "rank 2 differs from rank 0: element ...".
mlir::FailureOr<Tensor> join(llvm::ArrayRef<Tensor> parts, const Division& division,
                             std::span<const MeshAxis> mesh,
                             llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace titan::interpreter
