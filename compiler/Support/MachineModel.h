// What the compiler believes of the machine that it generates code for: rates, sizes and thresholds
// that passes weigh costs with.
//
// They are printed with the target (`machine` in `titan.target`), so that a printed stage compiles
// to the same job anywhere. Nothing is measured while compiling: a target has the numbers of its
// class.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace titan {

/// Rates are those of one core; "ns" is a nanosecond. The values here are those of any x86-64 CPU.
struct MachineModel {
  // The time of a kernel, for the number of its units that is worth a thread.
  double memoryBytesPerNs = 20; ///< a kernel out of cache
  double laneOpsPerNs = 60;     ///< elementwise operations
  double functionOps = 20;      ///< an exponential or the like, in such operations
  double randomOps = 30;        ///< a Philox block, likewise
  double productFlopsPerNsF32 = 150;
  double productFlopsPerNsBf16 = 300;
  double threadNs = 2000; ///< work that is worth waking a thread

  // The tile grid of a matrix product (compiler/Lower/TileGrid.h).
  double gridFlopsPerNsF32 = 250;
  double gridFlopsPerNsBf16 = 500;
  double gridPackingBytesPerNs = 15;
  double gridCallNs = 100;
  int64_t gridGranule = 16;                ///< elements: tiles are multiples of it
  int64_t gridTilesPerSide = 64;           ///< at most
  int64_t gridHeldSums = int64_t{1} << 19; ///< f32 sums of a tile between two panels, at most
  int64_t gridPanelDepth = 768;            ///< elements of k; longer products have several panels

  // Which products a library computes (compiler/Codegen/RATIONALE.md).
  int64_t libraryRows = 256, libraryColumns = 512; ///< of C: at most so many of one of them
  int64_t libraryWork = int64_t{1} << 23;          ///< multiply-adds: more than so many
  /// Columns of C of a gradient, AᵀB: at most so many, and any number where C has more rows.
  int64_t libraryGradientColumns = 512, libraryGradientRows = int64_t{1} << 40;

  // Choices of *schedule*.
  int64_t flopsPerByte = 10;                       ///< the balance of arithmetic and memory
  int64_t lossRows = 128;                          ///< the fewest of a piece of a loss
  int64_t largeGradientBytes = int64_t{256} << 10; ///< has left the caches when it is read again

  // Choices of *lower*.
  int64_t smallKernelPoints = 4096; ///< launching costs more than their work
  /// So many of them over one space are one, whatever operands they have: the updates of as many
  /// small parameters, with and without averages.
  int64_t smallSiblings = 6;
  /// Elements of sums down columns that a kernel may hold while it reduces the rows it goes down:
  /// the length of a row, times its sums of columns (`columnSumsOf`).
  int64_t columnSums = int64_t{1} << 40;
  int64_t embeddingGradColumns = 64; ///< of a unit: what one thread owns of a row
  /// The gradient of a table is summed in sorted order where at least so many rows are added.
  int64_t embeddingGradSortedRows = int64_t{1} << 40;
  /// Rows of tiles that may round one operand each; 0: products read operands of one type.
  int64_t roundedOperandTileRows = 2;
  /// Products read patches where they stand in the operand of a convolution; 0: those are copied.
  int64_t patchesInPlace = 1;
  /// Bytes: rows of temporaries, and those above 4 KiB, begin at multiples of it.
  int64_t rowAlignment = 1, longRowAlignment = 1;

  // Blocks of attention (`blocks` of #kernel.attention): tiles in the first two caches.
  int64_t attentionRows = 64, attentionRowsOfWide = 32; ///< queries, of narrow and of wide heads
  int64_t attentionForwardWidth = 256, attentionBackwardWidth = 128; ///< the widest narrow head
  int64_t attentionKeys = 64; ///< at most, and no more than queries
  /// Elements: the widest vector of f32 of any CPU. 0: sums over queries stay in registers.
  int64_t attentionPadding = 16;

  // Recurrent layers (#kernel.recurrence): samples of a unit, and columns of a panel of weights, a
  // multiple of the widest vector of f32.
  int64_t recurrentSamples = 16, recurrentColumns = 16;

  // Choices of *plan*.
  int64_t arenaAlignment = 64; ///< bytes: a cache line, and the widest vector

  // Fused kernels on a CPU: elements of a unit, and what a value costs that a row's passes share,
  // in loads. One that costs less than `keptOps` is computed again.
  int64_t flatBlock = 4096;  ///< elementwise: the decoding of a unit's number does not show
  int64_t sweptBlock = 1024; ///< columns of a sweep down rows: sums in the first-level cache
  int64_t keptOps = 5, keptFunctionOps = 15, keptRandomOps = 10, keptDivisionOps = 4;
  int64_t keptBytes = int64_t{256} << 10; ///< of a row's kept values: the second-level cache

  // Register tiles of products on vectors, rows x vectors of C: their efficiency in the first-level
  // cache. The last three are those of 16 registers.
  double tile8x3 = 1, tile4x4 = 0.97, tile8x2 = 0.93, tile8x1 = 0.7;
  double tile6x2 = 1, tile4x2 = 0.95, tile4x1 = 0.7;

  // Generated products of vectors: elements of C in one block.
  int64_t gemmRows = 1024;      ///< of A, packed at a time: 832 KiB of the second-level cache
  int64_t gemmColumns = 1536;   ///< of a block whose sums stay in the third-level cache
  int64_t gemmSumColumns = 768; ///< the same where C cannot hold the sums: 3 MiB of the stack
  /// Multiply-adds of bf16 by the instruction that takes them in pairs, for one of f32 in the same
  /// time; counts on CPUs that have it.
  double bf16DotRate = 2;

  // Generated products on a matrix unit, where the CPU has one.
  int64_t matrixPanelDepth = 384;                   ///< elements of k of a pass over C
  int64_t matrixBlockElements = int64_t{512} << 10; ///< of B, packed once
  int64_t matrixColumns = 512;                      ///< of that block
  int64_t matrixColumnsTransposed = 768;            ///< the same where A is to be transposed
  /// A product with a smaller extent, fewer elements of C or fewer multiply-adds stays on vectors.
  int64_t matrixExtent = 8, matrixSums = 1024, matrixMultiplyAdds = int64_t{1} << 18;

  bool operator==(const MachineModel&) const = default;
};

/// Calls visit(name, member) for every field, in the order of the struct; names are those of the
/// printed dictionary.
template <typename Model, typename Visitor> void visitFields(Model& m, Visitor visit) {
  visit("memory_bytes_per_ns", m.memoryBytesPerNs);
  visit("lane_ops_per_ns", m.laneOpsPerNs);
  visit("function_ops", m.functionOps);
  visit("random_ops", m.randomOps);
  visit("product_flops_per_ns_f32", m.productFlopsPerNsF32);
  visit("product_flops_per_ns_bf16", m.productFlopsPerNsBf16);
  visit("thread_ns", m.threadNs);
  visit("grid_flops_per_ns_f32", m.gridFlopsPerNsF32);
  visit("grid_flops_per_ns_bf16", m.gridFlopsPerNsBf16);
  visit("grid_packing_bytes_per_ns", m.gridPackingBytesPerNs);
  visit("grid_call_ns", m.gridCallNs);
  visit("grid_granule", m.gridGranule);
  visit("grid_tiles_per_side", m.gridTilesPerSide);
  visit("grid_held_sums", m.gridHeldSums);
  visit("grid_panel_depth", m.gridPanelDepth);
  visit("library_rows", m.libraryRows);
  visit("library_columns", m.libraryColumns);
  visit("library_work", m.libraryWork);
  visit("library_gradient_columns", m.libraryGradientColumns);
  visit("library_gradient_rows", m.libraryGradientRows);
  visit("flops_per_byte", m.flopsPerByte);
  visit("loss_rows", m.lossRows);
  visit("large_gradient_bytes", m.largeGradientBytes);
  visit("small_kernel_points", m.smallKernelPoints);
  visit("small_siblings", m.smallSiblings);
  visit("column_sums", m.columnSums);
  visit("embedding_grad_columns", m.embeddingGradColumns);
  visit("embedding_grad_sorted_rows", m.embeddingGradSortedRows);
  visit("rounded_operand_tile_rows", m.roundedOperandTileRows);
  visit("patches_in_place", m.patchesInPlace);
  visit("row_alignment", m.rowAlignment);
  visit("long_row_alignment", m.longRowAlignment);
  visit("attention_rows", m.attentionRows);
  visit("attention_rows_of_wide", m.attentionRowsOfWide);
  visit("attention_forward_width", m.attentionForwardWidth);
  visit("attention_backward_width", m.attentionBackwardWidth);
  visit("attention_keys", m.attentionKeys);
  visit("attention_padding", m.attentionPadding);
  visit("recurrent_samples", m.recurrentSamples);
  visit("recurrent_columns", m.recurrentColumns);
  visit("arena_alignment", m.arenaAlignment);
  visit("flat_block", m.flatBlock);
  visit("swept_block", m.sweptBlock);
  visit("kept_ops", m.keptOps);
  visit("kept_function_ops", m.keptFunctionOps);
  visit("kept_random_ops", m.keptRandomOps);
  visit("kept_division_ops", m.keptDivisionOps);
  visit("kept_bytes", m.keptBytes);
  visit("tile_8x3", m.tile8x3);
  visit("tile_4x4", m.tile4x4);
  visit("tile_8x2", m.tile8x2);
  visit("tile_8x1", m.tile8x1);
  visit("tile_6x2", m.tile6x2);
  visit("tile_4x2", m.tile4x2);
  visit("tile_4x1", m.tile4x1);
  visit("gemm_rows", m.gemmRows);
  visit("gemm_columns", m.gemmColumns);
  visit("gemm_sum_columns", m.gemmSumColumns);
  visit("bf16_dot_rate", m.bf16DotRate);
  visit("matrix_panel_depth", m.matrixPanelDepth);
  visit("matrix_block_elements", m.matrixBlockElements);
  visit("matrix_columns", m.matrixColumns);
  visit("matrix_columns_transposed", m.matrixColumnsTransposed);
  visit("matrix_extent", m.matrixExtent);
  visit("matrix_sums", m.matrixSums);
  visit("matrix_multiply_adds", m.matrixMultiplyAdds);
}

/// A dictionary with every field: f64 for rates, i64 for counts.
mlir::DictionaryAttr toAttribute(const MachineModel& machine, mlir::MLIRContext* context);

/// Emits an error on the module for a missing or unknown field, one of another type, and one that
/// is not positive.
mlir::FailureOr<MachineModel> readMachine(mlir::DictionaryAttr dictionary, mlir::ModuleOp module);

} // namespace titan
