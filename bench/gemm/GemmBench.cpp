// Prints GFLOP/s of matrix products on the tile grid that the compiler gives them: oneDNN's against
// the generated kernel, on one thread and on all. The figures behind the cost model's choice
// (compiler/Codegen/RATIONALE.md), recorded in bench/results. Convolutions are products over
// patches, which no library's product takes.
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

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
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

/// Of 3 x 3 taps over `samples` images of `size` x `size`, with a border of zeros.
struct Convolution {
  int64_t samples, size, out, in;
};

// The four levels of a ResNet-18 on images of 32 x 32, and its stem.
constexpr Convolution convolutions[] = {
    {32, 32, 64, 64}, {32, 16, 128, 128}, {32, 8, 256, 256}, {32, 4, 512, 512}, {32, 32, 64, 3}};

/// The three products of a layer's training: y = x W^T, dx = dy W, dW += dy^T x.
enum class Product { Forward, Input, Weight };

/// A product, and the matrix of patches that it may read in place of one operand.
struct Problem {
  Gemm gemm;
  std::string patches = "";         ///< as #kernel.gemm prints them
  int64_t elementsOfA, elementsOfB; ///< of the tensors
};

Problem productOf(const Layer& shape, Product product, DType in, DType out,
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
  return {.gemm = gemm, .elementsOfA = gemm.m * gemm.k, .elementsOfB = gemm.k * gemm.n};
}

Problem productOf(const Convolution& shape, Product product, DType in, DType out,
                  const MachineModel& machine) {
  const int64_t taps = 3, positions = shape.samples * shape.size * shape.size;
  // As a linear layer over patches of x, or over those of dy in place of dy.
  Layer layer = {positions, shape.out, taps * taps * shape.in};
  if (product == Product::Input)
    layer = {positions, taps * taps * shape.out, shape.in};
  Problem problem = productOf(layer, product, in, out, machine);
  const int64_t channels = product == Product::Input ? shape.out : shape.in;
  const int64_t padded = shape.size + taps - 1, line = padded * channels;
  problem.patches =
      fmt::format(", {} = <lines = [{}, {}, {}] by [{}, {}, {}], columns = [{}, {}] by [{}, 1], "
                  "offset = 0>",
                  product == Product::Weight ? "patchesB" : "patchesA", shape.samples, shape.size,
                  shape.size, padded * line, line, channels, taps, taps * channels, line);
  (product == Product::Weight ? problem.elementsOfB : problem.elementsOfA) =
      shape.samples * padded * line;
  return problem;
}

std::string moduleText(const Problem& problem) {
  const Gemm& g = problem.gemm;
  auto memref = [](int64_t count, DType type) {
    return fmt::format("memref<{}x{}>", count, type == DType::BF16 ? "bf16" : "f32");
  };
  std::string a = memref(problem.elementsOfA, g.a), b = memref(problem.elementsOfB, g.b),
              c = memref(g.m * g.n, g.c);
  return fmt::format("func.func @f(%a: {0}, %b: {1}, %c: {2}) {{\n"
                     "kernel.call #kernel.gemm<batch = 1, m = {3}, n = {4}, k = {5}, lda = {6}, "
                     "ldb = {7}, ldc = {8}, "
                     "strideA = 0, strideB = 0, strideC = 0, transposeA = {9}, transposeB = {10}, "
                     "accumulate = {11}, "
                     "bias = false, relu = false, tileM = {12}, tileN = {13}{14}> "
                     "ins(%a, %b : {0}, {1}) outs(%c : {2})\nreturn\n}}\n",
                     a, b, c, g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.transposeA, g.transposeB,
                     g.accumulate, g.tileM, g.tileN, problem.patches);
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

/// What products are computed by, and how long each is.
struct Contenders {
  std::unique_ptr<ThreadPool> alone, all;
  Result<OneDnn> library;
  double budget;

  /// GFLOP/s of the library (0 where it has no such product) and of the generated kernel, on one
  /// thread and on all.
  Result<std::array<double, 4>> measure(const Problem& problem);
};

Result<std::array<double, 4>> Contenders::measure(const Problem& problem) {
  const Gemm& gemm = problem.gemm;
  const int64_t bytesOfA = problem.elementsOfA * byteSize(gemm.a),
                bytesOfB = problem.elementsOfB * byteSize(gemm.b),
                bytesOfC = gemm.m * gemm.n * byteSize(gemm.c);
  // In huge pages, as a job's.
  Arena arena = TITAN_TRY(Arena::create(bytesOfA + bytesOfB + bytesOfC, *alone));
  char* operands[] = {arena.data(), arena.data() + bytesOfA, arena.data() + bytesOfA + bytesOfB};
  std::fill(operands[0], operands[2], 0x3c);
  auto runner = TITAN_TRY(KernelRunner::compile(moduleText(problem)));
  KernelFunction own = runner->kernels()[0].function;
  auto speed = [&](ThreadPool& threads, bool byLibrary) {
    if (byLibrary && (!library.ok() || !library->supports(gemm) || !problem.patches.empty()))
      return 0.0;
    if (byLibrary)
      library->attach(threads);
    double seconds = fastest(budget, threads.threads() == 1 ? threadSeconds : wallSeconds, [&] {
      threads.parallelFor(gemm.units(), 1, [&](int64_t begin, int64_t end) {
        if (byLibrary)
          library->run(gemm, operands, begin, end);
        else
          own(operands, nullptr, begin, end);
      });
    });
    return 2.0 * static_cast<double>(gemm.m * gemm.n * gemm.k) / seconds * 1e-9;
  };
  return std::array{speed(*alone, true), speed(*alone, false), speed(*all, true),
                    speed(*all, false)};
}

} // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 2 ? argv[2] : "";
  auto pool = ThreadPool::create(allowedCpus());
  auto alone = ThreadPool::create(1);
  Result<TargetInfo> target = codegen::resolveCpu("native");
  if (!pool.ok() || !alone.ok() || !target.ok())
    return 3;
  Contenders contenders = {.alone = std::move(*alone),
                           .all = std::move(*pool),
                           .library = OneDnn::load(),
                           .budget = argc > 1 ? std::atof(argv[1]) : 0.1};
  if (!contenders.library.ok())
    fmt::print("{}\n", contenders.library.error().message());
  const MachineModel machine = codegen::vectorShape(*target).machine;
  fmt::print("{:43} {:>12} {:>17} {:>17}\n", "GFLOP/s", "tile", "1 thread",
             fmt::format("{} threads", contenders.all->threads()));
  fmt::print("{:43} {:>12} {:>8} {:>8} {:>8} {:>8}\n", "", "", "oneDNN", "own", "oneDNN", "own");
  auto measure = [&](const auto& shape, DType in, DType out) -> Status {
    for (Product product : {Product::Forward, Product::Input, Product::Weight}) {
      if (product == Product::Weight && out == DType::BF16)
        continue;
      const Problem problem = productOf(shape, product, in, out, machine);
      const Gemm& gemm = problem.gemm;
      const std::string label =
          fmt::format("{}x{}x{}{}{}{} {}{}", gemm.m, gemm.n, gemm.k,
                      problem.patches.empty() ? "" : " patches", gemm.transposeA ? " At" : "",
                      gemm.transposeB ? " Bt" : "", name(in), out == in ? "" : "-F32");
      if (label.find(filter) == std::string::npos)
        continue;
      const auto speeds = TITAN_TRY(contenders.measure(problem));
      fmt::print("{:43} {:>12} {:8.0f}\n", label, fmt::format("{}x{}", gemm.tileM, gemm.tileN),
                 fmt::join(speeds, " "));
      std::fflush(stdout);
    }
    return {};
  };
  auto measureAll = [&]() -> Status {
    for (auto [in, out] : {std::pair(DType::F32, DType::F32),
                           {DType::BF16, DType::F32},
                           {DType::BF16, DType::BF16}}) {
      for (const Layer& layer : layers)
        TITAN_TRY(measure(layer, in, out));
      for (const Convolution& convolution : convolutions)
        TITAN_TRY(measure(convolution, in, out));
    }
    return {};
  };
  if (Status status = measureAll(); !status.ok()) {
    fmt::print("{}\n", status.error().message());
    return 4;
  }
}
