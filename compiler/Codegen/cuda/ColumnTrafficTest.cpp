// What the kernels move that lowering makes of sums down columns and of the loss: in the form that
// they have in jobs, on extents that no schedule was made for.
#include "compiler/Codegen/cuda/SumOrder.h"
#include "compiler/Codegen/cuda/testing/ExpectTraffic.h"
#include "compiler/Codegen/kernel/LoopNest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace titan::codegen::cuda::testing {
namespace {

/// Rows of `n` elements as titan-lower-pad-rows lays them out.
int64_t pitchOf(int64_t n, const std::string& element) {
  const int64_t size = element == "bf16" ? 2 : 4, step = (n * size > 4096 ? 128 : 16) / size;
  return (n + step - 1) / step * step;
}

/// Rows of a matrix by `map` of its space.
OperandSpec rowsOf(const std::string& element, const std::string& map, int64_t rows, int64_t n) {
  return {element, map, {rows, pitchOf(n, element)}};
}

/// A step with `chunks` times `rows` rows of `n` elements, whose sums down columns are cut into
/// chunks.
struct Extents {
  int64_t chunks, rows, n;
};

std::string ofRows(const Extents& e) { return fmt::format("(k, r, c) -> (k * {} + r, c)", e.rows); }

/// The first stage of a bias's gradient.
KernelSpec sumsOfChunks(const Extents& e) {
  return {.space = {e.chunks, e.rows, e.n},
          .ins = {rowsOf("bf16", ofRows(e), e.chunks * e.rows, e.n)},
          .outs = {rowsOf("f32", "(k, r, c) -> (k, c)", e.chunks, e.n)},
          .kernelClass = "column",
          .body = R"(
    ^bb0(%x: bf16):
      %v = arith.extf %x : bf16 to f32
      %sum = kernel.reduce add %v over [1] : f32
      kernel.yield %sum : f32
)"};
}

/// The second one.
KernelSpec sumsOfAll(const Extents& e) {
  const int64_t rows = e.chunks * e.rows;
  return {.space = {rows, e.n},
          .ins = {rowsOf("f32", "(r, c) -> (r, c)", rows, e.n)},
          .outs = {{"f32", "(r, c) -> (c)", {e.n}}},
          .kernelClass = "column",
          .body = R"(
    ^bb0(%v: f32):
      %sum = kernel.reduce add %v over [0] : f32
      kernel.yield %sum : f32
)"};
}

/// An activation's gradient, in the place of its result's, beside the bias's.
KernelSpec activationGradient(const Extents& e) {
  const int64_t rows = e.chunks * e.rows;
  return {.space = {e.chunks, e.rows, e.n},
          .ins = {rowsOf("bf16", ofRows(e), rows, e.n), rowsOf("bf16", ofRows(e), rows, e.n)},
          .outs = {rowsOf("f32", "(k, r, c) -> (k, c)", e.chunks, e.n),
                   rowsOf("bf16", ofRows(e), rows, e.n)},
          .kernelClass = "column",
          .body = R"(
    ^bb0(%x: bf16, %dy: bf16):
      %v = arith.extf %x : bf16 to f32
      %w = arith.extf %dy : bf16 to f32
      %p = arith.mulf %v, %w : f32
      %g = arith.truncf %p : f32 to bf16
      %sum = kernel.reduce add %p over [1] : f32
      kernel.yield %sum, %g : f32, bf16
)"};
}

/// A norm's gradient, with those of its parameters and of the bias before it.
KernelSpec normGradient(const Extents& e) {
  const int64_t rows = e.chunks * e.rows;
  const std::string ofRow = fmt::format("(k, r, c) -> (k * {} + r)", e.rows);
  const OperandSpec sums = rowsOf("f32", "(k, r, c) -> (k, c)", e.chunks, e.n);
  return {.space = {e.chunks, e.rows, e.n},
          .ins = {{"f32", ofRow, {rows}},
                  {"f32", ofRow, {rows}},
                  rowsOf("f32", ofRows(e), rows, e.n),
                  rowsOf("bf16", ofRows(e), rows, e.n),
                  {"f32", "(k, r, c) -> (c)", {e.n}}},
          .outs = {sums, rowsOf("bf16", ofRows(e), rows, e.n), rowsOf("f32", ofRows(e), rows, e.n),
                   sums, sums},
          .kernelClass = "column",
          .body = R"(
    ^bb0(%scale: f32, %mean: f32, %x: f32, %b: bf16, %gamma: f32):
      %d = arith.subf %x, %mean : f32
      %h = arith.mulf %d, %scale : f32
      %dy = arith.extf %b : bf16 to f32
      %p = arith.mulf %dy, %h : f32
      %dgamma = kernel.reduce add %p over [1] : f32
      %dbeta = kernel.reduce add %dy over [1] : f32
      %g = arith.mulf %dy, %gamma : f32
      %gh = arith.mulf %g, %h : f32
      %s2 = kernel.reduce add %gh over [2] : f32
      %s1 = kernel.reduce add %g over [2] : f32
      %g1 = arith.subf %g, %s1 : f32
      %hm = arith.mulf %h, %s2 : f32
      %g2 = arith.subf %g1, %hm : f32
      %dx = arith.mulf %scale, %g2 : f32
      %r = arith.truncf %dx : f32 to bf16
      %dbias = kernel.reduce add %dx over [1] : f32
      kernel.yield %dbias, %r, %dx, %dbeta, %dgamma : f32, bf16, f32, f32, f32
)"};
}

/// The loss of each row, and the gradient of its logits.
KernelSpec loss(const Extents& e) {
  const int64_t rows = e.chunks * e.rows;
  return {.space = {rows, e.n},
          .ins = {rowsOf("bf16", "(r, c) -> (r, c)", rows, e.n), {"i64", "(r, c) -> (r)", {rows}}},
          .outs = {rowsOf("bf16", "(r, c) -> (r, c)", rows, e.n), {"f32", "(r, c) -> (r)", {rows}}},
          .kernelClass = "row",
          .body = R"(
    ^bb0(%x: bf16, %label: i64):
      %v = arith.extf %x : bf16 to f32
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %c = kernel.index 1
      %number = arith.index_cast %c : index to i64
      %hit = arith.cmpi eq, %number, %label : i64
      %one = arith.constant 1.0 : f32
      %zero = arith.constant 0.0 : f32
      %log = math.log %sum : f32
      %term = arith.select %hit, %d, %zero : f32
      %own = kernel.reduce add %term over [1] : f32
      %loss = arith.subf %log, %own : f32
      %p = arith.divf %e, %sum : f32
      %hot = arith.select %hit, %one, %zero : f32
      %g = arith.subf %p, %hot : f32
      %y = arith.truncf %g : f32 to bf16
      kernel.yield %y, %loss : bf16, f32
)"};
}

/// What the launch may move of one operand.
struct Expected {
  int64_t bytes;   ///< of all lanes, equal addresses counted each
  int64_t touched; ///< once a row
  int64_t narrow;  ///< the most requests that move less than 16 bytes a lane
};

/// Each element once; what all rows share once a row, and what belongs to a row once a thread. Rows
/// that are no multiple of a chunk end with one element.
Expected expectedOf(const LoopNest& nest, const Access& access) {
  const unsigned column = nest.rank() - 1;
  const int64_t n = nest.extents[column], size = access.element.getIntOrFloatBitWidth() / 8;
  const int64_t rows = nest.pointsOf(nest.allDims() & ~bit(column));
  if (contains(access.dims(), column))
    return {size * rows * n, size * rows * n, n % chunkLength == 0 ? 0 : rows};
  const int64_t threads = slotsOf(chunksOf({n}));
  // Lanes with and without the last element may come apart.
  return {size * rows * threads, size * rows, 2 * rows * threads / 32};
}

Expected expectedOfOut(const LoopNest& nest, const Access& access) {
  const int64_t bytes = nest.bytesOf(access);
  return {bytes, bytes, expectedOf(nest, access).narrow};
}

void expectWideAndOnce(const CudaCase& test) {
  const LoopNest nest(test.kernel());
  int64_t touched = 0;
  auto check = [&](const ptx::Traffic& traffic, llvm::ArrayRef<Access> accesses, auto expectedOf) {
    int64_t bytes = 0, narrow = 0;
    for (const Access& access : accesses) {
      const Expected expected = expectedOf(nest, access);
      bytes += expected.bytes, narrow += expected.narrow, touched += expected.touched;
    }
    EXPECT_EQ(traffic.bytes, bytes);
    EXPECT_LE(traffic.requests - traffic.byWidth[4], narrow);
  };
  const ptx::Traffic &loads = test.counters().globalLoads, &stores = test.counters().globalStores;
  check(loads, nest.ins, expectedOf);
  check(stores, nest.outs, expectedOfOut);
  EXPECT_LE((loads.tripSectors + stores.tripSectors) * sectorBytes, touched * 11 / 10);
}

struct Case {
  const char* name;
  KernelSpec (*spec)(const Extents&);
  std::vector<Extents> extents;
};

TEST(CudaTraffic, OfJobsOnAnyExtents) {
  const Case cases[] = {
      {"sums of chunks", sumsOfChunks, {{20, 50, 769}, {20, 50, 768}, {1, 9, 50257}, {2, 5, 1000}}},
      {"sums of all", sumsOfAll, {{20, 8, 769}, {1, 1000, 769}, {1, 1000, 768}, {2, 4, 50257}}},
      {"gradient of an activation", activationGradient, {{20, 50, 769}, {1, 9, 50257}}},
      {"gradient of a norm", normGradient, {{20, 50, 769}, {20, 50, 768}, {2, 50, 1000}}},
      {"loss", loss, {{1, 2, 50257}, {1, 20, 769}, {1, 20, 1000}}},
  };
  for (const Case& c : cases)
    for (const Extents& e : c.extents) {
      SCOPED_TRACE(fmt::format("{}: {} x {} x {}", c.name, e.chunks, e.rows, e.n));
      CudaCase test(c.spec(e));
      ASSERT_TRUE(test.ok());
      test.run();
      expectWideAndOnce(test);
      // A norm's gamma is read again for each row: from a cache.
      if (c.spec != normGradient && (c.spec != loss || e.n > 10000))
        expectAsClaimed(test);
    }
}

} // namespace
} // namespace titan::codegen::cuda::testing
