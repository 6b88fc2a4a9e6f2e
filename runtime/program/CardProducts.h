// Which products the library of a card may compute. The compiler gives these a workspace, and the
// job offers them to the library.
#pragma once

#include "runtime/program/Program.h"

namespace titan {

/// What the products of a program share in the arena, bytes: none of their algorithms may want
/// more.
constexpr int64_t cardWorkspaceBytes = int64_t{32} << 20;

/// Both operands F32, or both BF16; a BF16 result of BF16 operands only. Sums are added to F32
/// alone. No relu, since it is not known what the library makes of NaN. Sums of small integers must
/// be exact in any order, so that its rounding can be tested: k is at most 2^22.
bool suitsCardLibrary(const Gemm& gemm);
/// Is the call such a product?
bool suitsCardLibrary(const LibraryCall& call);

} // namespace titan
