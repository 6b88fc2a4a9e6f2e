// What is put behind the elements of a tensor so that it divides among ranks, and taken off again.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

namespace titan {

/// The type of `ranks` parts of type `part`, one behind the other along `dim`.
mlir::RankedTensorType joinedType(mlir::RankedTensorType part, int64_t dim, int64_t ranks);

/// `value`, of type `whole`, with zeros behind it up to `joined`; itself if there are none.
mlir::Value padTo(const ir::TensorBuilder& t, mlir::Value value, mlir::RankedTensorType whole,
                  mlir::RankedTensorType joined);

/// The elements of `value`, of type `joined`, that are those of `whole`; itself if all are.
mlir::Value cutTo(const ir::TensorBuilder& t, mlir::Value value, mlir::RankedTensorType joined,
                  mlir::RankedTensorType whole);

} // namespace titan
