// Prints GFLOP/s of matrix products on the tile grid that the compiler gives them: oneDNN's against
// the generated kernel, on one thread and on all. The figures behind the cost model's choice
// (compiler/Codegen/RATIONALE.md), recorded in bench/results.
//
//   build/dev/bin/titan_gemm_bench [seconds a product] [filter]
#include "compiler/Codegen/CostModel.h"
#include "compiler/Codegen/KernelTable.h"
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/GemmKernel.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Lower/TileGrid.h"
#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/OneDnn.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <time.h>

using namespace titan;
using titan::codegen::testing::KernelRunner;

namespace {

struct Layer {
  int64_t rows, out, in; ///< a linear layer: tokens, features out, features in
};

// GPT-2 at 4 x 64 and 4 x 256 tokens, `char` at 8 x 256, an LSTM of 512 at 32 x 128.
constexpr Layer layers[] = {
    {256, 768, 768},   {256, 2304, 768},  {256, 3072, 768},  {256, 768, 3072},  {256, 50304, 768},
    {1024, 768, 768},  {1024, 2304, 768}, {1024, 3072, 768}, {1024, 768, 3072}, {1024, 50304, 768},
    {2048, 384, 384},  {2048, 1152, 384}, {2048, 1536, 384}, {2048, 384, 1536}, {2048, 256, 384},
    {4096, 2048, 512}, {64, 128, 784},    {64, 256, 256},    {128, 256, 256},
};

/// The three products of a layer's training: y = x W^T, dx = dy W, dW += dy^T x.
enum class Product { Forward, Input, Weight };

Gemm productOf(const Layer& shape, Product product, DType in, DType out,
               const MachineModel& machine) {
  Gemm gemm;
  gemm.a = gemm.b = in;
  gemm.c = out;
  switch (product) {
  case Product::Forward:
    gemm.m = shape.rows, gemm.n = shape.out, gemm.k = shape.in;
    gemm.transposeB = true;
    break;
  case Product::Input:
    gemm.m = shape.rows, gemm.n = shape.in, gemm.k = shape.out;
    break;
  case Product::Weight:
    gemm.m = shape.out, gemm.n = shape.in, gemm.k = shape.rows;
    gemm.transposeA = gemm.accumulate = true;
    break;
  }
  gemm.lda = gemm.transposeA ? gemm.m : gemm.k;
  gemm.ldb = gemm.transposeB ? gemm.k : gemm.n;
  gemm.ldc = gemm.n;
  auto grid = lower::chooseTileGrid(machine, 1, gemm.m, gemm.n, gemm.k, byteSize(in));
  gemm.tileM = grid.tileM;
  gemm.tileN = grid.tileN;
  return gemm;
}

std::string moduleText(const Gemm& g) {
  auto memref = [](int64_t count, DType type) {
    return fmt::format("memref<{}x{}>", count, type == DType::BF16 ? "bf16" : "f32");
  };
  std::string a = memref(g.m * g.k, g.a), b = memref(g.k * g.n, g.b), c = memref(g.m * g.n, g.c);
  return fmt::format("func.func @f(%a: {0}, %b: {1}, %c: {2}) {{\n"
                     "kernel.call #kernel.gemm<batch = 1, m = {3}, n = {4}, k = {5}, lda = {6}, "
                     "ldb = {7}, ldc = {8}, "
                     "strideA = 0, strideB = 0, strideC = 0, transposeA = {9}, transposeB = {10}, "
                     "accumulate = {11}, "
                     "bias = false, relu = false, tileM = {12}, tileN = {13}> "
                     "ins(%a, %b : {0}, {1}) outs(%c : {2})\nreturn\n}}\n",
                     a, b, c, g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.transposeA, g.transposeB,
                     g.accumulate, g.tileM, g.tileN);
}

/// Seconds that this thread has computed: other processes on the machine do not count.
double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double wallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The fastest of the runs that `budget` seconds allow, at least three.
template <typename Run> double fastest(double budget, double (*clock)(), Run&& run) {
  double best = 1e30, end = wallSeconds() + budget;
  for (int i = 0; i < 3 || wallSeconds() < end; ++i) {
    double start = clock();
    run();
    best = std::min(best, clock() - start);
  }
  return best;
}

} // namespace

int main(int argc, char** argv) {
  double budget = argc > 1 ? std::atof(argv[1]) : 0.1;
  std::string filter = argc > 2 ? argv[2] : "";
  Result<OneDnn> library = OneDnn::load();
  if (!library.ok())
    fmt::print("{}\n", library.error().message());
  auto pool = ThreadPool::create(allowedCpus());
  auto alone = ThreadPool::create(1);
  if (!pool.ok() || !alone.ok())
    return 3;
  Result<TargetInfo> target = codegen::resolveCpu("native");
  if (!target.ok())
    return 3;
  const MachineModel machine = codegen::vectorShape(*target).machine;
  const int threads = (*pool)->threads();
  fmt::print("{:34} {:>12} {:>17} {:>17}\n", "GFLOP/s", "tile", "1 thread",
             fmt::format("{} threads", threads));
  fmt::print("{:34} {:>12} {:>8} {:>8} {:>8} {:>8}\n", "", "", "oneDNN", "own", "oneDNN", "own");
  for (auto [in, out] :
       {std::pair(DType::F32, DType::F32), {DType::BF16, DType::F32}, {DType::BF16, DType::BF16}})
    for (const Layer& shape : layers)
      for (Product product : {Product::Forward, Product::Input, Product::Weight}) {
        if (product == Product::Weight && out == DType::BF16)
          continue;
        Gemm gemm = productOf(shape, product, in, out, machine);
        std::string label =
            fmt::format("{}x{}x{}{}{} {}{}", gemm.m, gemm.n, gemm.k, gemm.transposeA ? " At" : "",
                        gemm.transposeB ? " Bt" : "", name(in), out == in ? "" : "-F32");
        if (label.find(filter) == std::string::npos)
          continue;
        const int64_t bytes[] = {gemm.m * gemm.k * byteSize(in), gemm.k * gemm.n * byteSize(in),
                                 gemm.m * gemm.n * byteSize(out)};
        // In huge pages, as a job's.
        Result<Arena> arena = Arena::create(bytes[0] + bytes[1] + bytes[2], **alone);
        if (!arena.ok()) {
          fmt::print("{}\n", arena.error().message());
          return 3;
        }
        char* operands[] = {arena->data(), arena->data() + bytes[0],
                            arena->data() + bytes[0] + bytes[1]};
        std::fill(operands[0], operands[2], 0x3c);
        auto runner = KernelRunner::compile(moduleText(gemm));
        if (!runner.ok()) {
          fmt::print("{}\n", runner.error().message());
          return 4;
        }
        KernelFunction own = (*runner)->kernels()[0].function;
        auto speed = [&](ThreadPool& threads, bool byLibrary) {
          if (byLibrary && (!library.ok() || !library->supports(gemm)))
            return 0.0;
          if (byLibrary)
            library->attach(threads);
          double seconds =
              fastest(budget, threads.threads() == 1 ? threadSeconds : wallSeconds, [&] {
                threads.parallelFor(gemm.units(), 1, [&](int64_t begin, int64_t end) {
                  if (byLibrary)
                    library->run(gemm, operands, begin, end);
                  else
                    own(operands, nullptr, begin, end);
                });
              });
          return 2.0 * static_cast<double>(gemm.m * gemm.n * gemm.k) / seconds * 1e-9;
        };
        fmt::print("{:34} {:>12} {:8.0f} {:8.0f} {:8.0f} {:8.0f}\n", label,
                   fmt::format("{}x{}", gemm.tileM, gemm.tileN), speed(**alone, true),
                   speed(**alone, false), speed(**pool, true), speed(**pool, false));
        std::fflush(stdout);
      }
}
