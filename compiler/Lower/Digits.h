// Addresses and indices as numbers of mixed radix, whose digits are the coordinates of a space.
#pragma once

#include "compiler/Lower/Address.h"

namespace titan::lower {

/// One dimension's part in an address or an index.
struct Digit {
  int64_t stride, extent;
  unsigned dim;
};

/// The dimensions that move `linear`, by falling stride.
llvm::SmallVector<Digit> digitsOf(const Linear& linear, llvm::ArrayRef<int64_t> space);

/// Does `map`, over `space`, lead to every element of `shape`, each time with other digits?
bool coversAll(mlir::AffineMap map, llvm::ArrayRef<int64_t> space, llvm::ArrayRef<int64_t> shape);

/// Is the address of every element that the digits reach reached once, from 0 on, and upwards?
bool areDisjoint(const Linear& address, llvm::ArrayRef<Digit> digits);

} // namespace titan::lower
