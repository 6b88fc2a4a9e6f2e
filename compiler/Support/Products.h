// Where the products of a step stand among its collectives: what runs while bytes travel.
#pragma once

#include "dialects/Dist/Dist.h"

namespace titan {

/// On a `dist.start` or `dist.wait`, i64: the FLOP of the products between it and the next half of
/// a collective, as *schedule* put them there.
inline constexpr llvm::StringLiteral productsTag = "kernel.products";

/// Is a convolution of elements of this type a product? Where each channel is by itself it would
/// have one row or column for each, and products of other types are kernels like any other.
bool isProduct(const ir::ConvolutionShape& shape, mlir::Type element);

/// FLOP of `op` where it is a matrix product or attention that a routine computes, on tensors or as
/// the call that *lower* makes of it: the same number. A mask counts as allowing all; 0 for all
/// else.
int64_t productFlopsOf(mlir::Operation* op);

/// Each half of a collective below `root`, with the FLOP of the products from there to the next one
/// in the order of the text: what a loop in between holds counts once.
llvm::SmallVector<std::pair<mlir::Operation*, int64_t>> productsBehindHalves(mlir::Operation* root);

} // namespace titan
